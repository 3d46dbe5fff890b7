/* Products with a matrix of codes of four bits, which stays as it is in the file.  Few rows are multiplied by
 * values that are looked up in registers, more rows by panels that are unpacked. */
#include "products/products.h"

#include "simd/functions.h"

#include <string.h>

#define LEAST_CODED (1 << 17) /* minimum multiply-adds per thread */
#define JOBS_OF_THREAD 4

struct coded_product {
    const struct coded_functions *functions;
    struct coded_matrix matrix;
    const float *rows, *bias;
    float *out;
    int64_t m, n, columns_of_job;
};

static void do_job(void *context, int64_t job, void *scratch) {
    const struct coded_product *p = context;
    const int64_t k = p->matrix.k, first = job * p->columns_of_job;
    for (int64_t row = 0; row < p->m; row += MOST_CODED_ROWS) {
        const int64_t count = least(MOST_CODED_ROWS, p->m - row);
        p->functions->pack_rows(p->rows + row * k, count, k, scratch);
        p->functions->multiply(&p->matrix, scratch, count, first,
                               least(p->n, first + p->columns_of_job), p->bias,
                               p->out + row * p->n, p->n);
    }
}

/* Take scales or zeros: [N, groups] of f16 or f32. */
static int take_factors(const Py_buffer *b, int64_t count, const void **factors, int *are_halves) {
    *factors = b->buf;
    *are_halves = b->itemsize == 2;
    return (b->itemsize == 2 || b->itemsize == 4) && b->len == count * b->itemsize;
}

/* Whether the arrays fit each other: [M, K], [N, K / 2], [CODES], twice [N, groups], [N], [M, N]. */
static int take(struct coded_product *p, const Py_buffer *b) {
    struct coded_matrix *m = &p->matrix;
    if (b[0].ndim != 2 || b[1].ndim != 2 || b[3].ndim != 2 || b[6].ndim != 2) return 0;
    p->m = b[0].shape[0], p->n = b[1].shape[0], m->k = b[0].shape[1];
    const int64_t groups = b[3].shape[1];
    if (p->m < 1 || p->n < 1 || groups < 1 || m->k % groups) return 0;
    m->group = m->k / groups;
    if (b[2].len != sizeof m->base) return 0;
    memcpy(m->base, b[2].buf, sizeof m->base);
    p->rows = b[0].buf, m->codes = b[1].buf, p->bias = b[5].buf, p->out = b[6].buf;
    if (b[4].buf && !take_factors(&b[4], p->n * groups, &m->zeros, &m->half_zeros)) return 0;
    return m->group % CODE_STEP == 0 && m->group > 0 && b[1].shape[1] == m->k / 2 &&
           b[0].itemsize == 4 && b[1].itemsize == 1 && b[3].shape[0] == p->n &&
           take_factors(&b[3], p->n * groups, &m->scales, &m->half_scales) &&
           b[6].itemsize == 4 && b[6].shape[0] == p->m && b[6].shape[1] == p->n &&
           (!b[5].buf || b[5].len == p->n * (int64_t)sizeof(float));
}

/* Multiply few rows by the codes themselves. */
static int multiply_few(struct coded_product *p, int64_t most_threads) {
    const int64_t work = p->m * p->n * p->matrix.k;
    const int64_t threads = threads_within(least(most_threads, work / LEAST_CODED));
    p->columns_of_job = divide_up(p->n, threads > 1 ? least(p->n, threads * JOBS_OF_THREAD) : 1);
    return run_unlocked(do_job, p, divide_up(p->n, p->columns_of_job), threads,
                        least(p->m, MOST_CODED_ROWS) * p->matrix.k * (int64_t)sizeof(float));
}

/* Multiply by panels, which are unpacked block by block. */
static int multiply_many(const struct coded_product *p, const Py_buffer *rows, int64_t isa,
                         const struct epilogue *finish, int64_t threads) {
    struct product all = {.m = p->m, .k = p->matrix.k, .n = p->n, .bias = p->bias, .out = p->out};
    if (!take_matrices(rows, &all.a) || !take_kernels(&all, isa, ACC_F32)) return -1;
    all.coded = &p->matrix, all.decodes = p->functions, all.finish = finish;
    const int lanes = p->functions->lanes;
    for (int i = 0; i < MOST_DEPTH; i++)
        all.unpacked[i] = i / (2 * lanes) * 2 * lanes + i % lanes * 2 + i / lanes % 2;
    return run_product(&all, threads_within(threads));
}

/* All arrays are contiguous. */
PyObject *module_multiply_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1, good = 1;
    PyObject *given[7];
    struct multiply_codes_fields f;
    if (take_call(arguments, 7, given, &f, sizeof f)) return NULL;
    struct epilogue finish = EPILOGUE_OF(f);
    struct coded_product p = {.matrix = {.halves = f.halves != 0}};
    Py_buffer buffers[7] = {0};
    for (int i = 0; good && i < 7; i++) /* zeros and bias may be missing */
        if ((i != 4 && i != 5) || given[i] != Py_None)
            good = !PyObject_GetBuffer(given[i], &buffers[i],
                                       i == 0   ? PyBUF_C_CONTIGUOUS
                                       : i == 6 ? PyBUF_CONTIG
                                                : PyBUF_CONTIG_RO);
    if (good && isa_available(f.isa) && take(&p, buffers) &&
        epilogue_take(&finish, f.isa, 1, f.activation, f.function)) {
        p.functions = BY_ISA(f.isa, &functions_coded);
        if (f.looks_up) failed = multiply_few(&p, f.threads);
        else
            failed = multiply_many(&p, &buffers[0], f.isa, f.activation ? &finish : NULL,
                                   f.threads);
    }
    return release_all(failed, buffers, 7);
}
