/* Products of rows in f32 with a matrix of codes of four bits, which stays as it is in the file. */
#include "products/products.h"

#include "simd/codes.h"

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

/* Whether the arrays fit each other: [M, K], [N, K / 2], [CODES], twice [N, groups], [M, N], [N]. */
static int take(struct coded_product *p, const Py_buffer *b, int has_bias) {
    struct coded_matrix *m = &p->matrix;
    if (b[0].ndim != 2 || b[1].ndim != 2 || b[3].ndim != 2 || b[5].ndim != 2) return 0;
    p->m = b[0].shape[0], p->n = b[1].shape[0], m->k = b[0].shape[1];
    const int64_t groups = b[3].shape[1];
    if (p->m < 1 || p->n < 1 || groups < 1 || m->k % groups) return 0;
    m->group = m->k / groups;
    if (b[2].len != sizeof m->base) return 0;
    memcpy(m->base, b[2].buf, sizeof m->base);
    p->rows = b[0].buf, m->codes = b[1].buf, m->scales = b[3].buf, m->zeros = b[4].buf;
    p->out = b[5].buf, p->bias = has_bias ? b[6].buf : NULL;
    return m->group % CODE_STEP == 0 && m->group > 0 && b[1].shape[1] == m->k / 2 &&
           b[0].itemsize == 4 && b[1].itemsize == 1 && b[3].itemsize == 4 &&
           b[3].shape[0] == p->n && b[4].len == b[3].len && b[5].itemsize == 4 &&
           b[5].shape[0] == p->m && b[5].shape[1] == p->n &&
           (!has_bias || b[6].len == p->n * (int64_t)sizeof(float));
}

/* All arrays are contiguous. */
PyObject *module_multiply_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[7];
    struct multiply_codes_fields f;
    if (take_call(arguments, 7, given, &f, sizeof f)) return NULL;
    const int has_bias = given[6] != Py_None;
    struct coded_product p = {.matrix = {.halves = f.halves != 0}};
    Py_buffer buffers[7] = {0};
    if (take_arrays(given, 6 + has_bias, 1 << 5, buffers) && isa_available(f.isa) &&
        take(&p, buffers, has_bias)) {
        p.functions = BY_ISA(f.isa, &functions_coded);
        const int64_t work = p.m * p.n * p.matrix.k;
        const int64_t threads = threads_within(least(f.threads, work / LEAST_CODED));
        p.columns_of_job = divide_up(p.n, threads > 1 ? least(p.n, threads * JOBS_OF_THREAD) : 1);
        failed = run_unlocked(do_job, &p, divide_up(p.n, p.columns_of_job), threads,
                              least(p.m, MOST_CODED_ROWS) * p.matrix.k * (int64_t)sizeof(float));
    }
    return release_all(failed, buffers, 7);
}
