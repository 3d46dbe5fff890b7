/* Copies of matrices of a stack, whose elements may be apart. */
#include "products/products.h"

#define LEAST_COPIED (1 << 17) /* minimum bytes per thread */
#define COPIED_AT_ONCE 8192    /* elements of a job of copies, about */
#define COPIED_ROWS 256        /* of a piece, at most MOST_DEPTH: their vectors stay in the first-level cache */
#define MOST_INTERLEAVED 8     /* columns that are copied element by element */

/* Copy rows of few elements; elements of a column are neighbours. */
static void interleave(const struct product *p, const float *in, int64_t rows, float *out) {
    const int64_t column = p->a.column;
#define INTERLEAVE(COLUMNS)                                                           \
    for (int64_t r = 0; r < rows; r++)                                                \
        for (int64_t c = 0; c < COLUMNS; c++) out[r * COLUMNS + c] = in[c * column + r]
    if (p->n == 2) INTERLEAVE(2);
    else if (p->n == 3) INTERLEAVE(3);
    else if (p->n == 4) INTERLEAVE(4);
    else INTERLEAVE(p->n);
#undef INTERLEAVE
}

/* Copy some pieces of a stack: rows of a matrix. */
static void copy_pieces(void *context, int64_t job, void *scratch) {
    const struct product *p = context;
    const int64_t end = least(p->pieces, (job + 1) * p->pieces_at_once);
    for (int64_t piece = job * p->pieces_at_once; piece < end; piece++) {
        const int64_t index = piece / p->row_jobs, first = piece % p->row_jobs * COPIED_ROWS;
        const int64_t rows = least(COPIED_ROWS, p->m - first);
        const float *in = matrix_at(p, &p->a, index) + first * p->a.row;
        float *out = (float *)p->out + (index * p->m + first) * p->n;
        if (p->n <= MOST_INTERLEAVED && p->a.row == 1) interleave(p, in, rows, out);
        else pack(p, in, p->a.row, p->a.column, rows, p->n, p->n, scratch, out);
    }
}

/* Faster than NumPy if the elements of columns are neighbours. */
PyObject *module_copy_matrices(PyObject *module, PyObject *arguments) {
    (void)module;
    int held = 0, failed = -1;
    PyObject *given[2];
    struct copy_matrices_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[2];
    struct product p = {0};
    if (PyObject_GetBuffer(given[0], &buffers[0], PyBUF_STRIDED_RO) == 0) held++;
    if (held == 1 && PyObject_GetBuffer(given[1], &buffers[1], PyBUF_CONTIG) == 0) held++;
    if (held == 2 && buffers[0].len == buffers[1].len && take_matrices(&buffers[0], &p.a)) {
        int64_t matrices = 1;
        p.stacked = buffers[0].ndim - 2;
        for (int d = 0; d < p.stacked; d++) matrices *= p.stack[d] = buffers[0].shape[d];
        p.m = buffers[0].shape[p.stacked], p.n = buffers[0].shape[p.stacked + 1];
        p.out = buffers[1].buf;
        p.row_jobs = divide_up(p.m, COPIED_ROWS);
        if (take_kernels(&p, f.isa, ACC_F32)) {
            p.pieces = matrices * p.row_jobs;
            p.pieces_at_once = divide_up(COPIED_AT_ONCE, least(p.m, COPIED_ROWS) * p.n);
            failed = run_unlocked(copy_pieces, &p, divide_up(p.pieces, p.pieces_at_once),
                                  least(f.threads, buffers[0].len / LEAST_COPIED),
                                  least(p.m, COPIED_ROWS) * CACHE_LINE);
        }
    }
    return release_all(failed, buffers, held);
}
