/* Standardised rows and sums of rows, in f32, on several threads. */
#include "normalization/normalization.h"

#include "simd/rows.h"

/* Minimum number of elements per thread. */
#define LEAST_SHARED 16384

struct rows {
    const struct row_functions *functions;
    int64_t count, at_once; /* elements of a row; rows of a job */
    int64_t rows;
    int64_t inner, channels; /* elements that share scale and bias; numbers of these */
    const float *data, *scale, *bias;
    float *out;
    float eps;
    int inside, divides; /* eps is added inside the root; whether to divide at all */
    int mean;            /* not the sum */
};

static void standardize_row(const struct rows *r, int64_t row) {
    const float *data = r->data + row * r->count;
    float *out = r->out + row * r->count;
    float how[4] = {(float)(r->functions->sum(data, r->count) / (double)r->count), 1, 1, 0};
    if (r->divides) {
        const double variance = r->functions->squares(data, r->count, how[0]) / (double)r->count;
        how[1] = __builtin_sqrtf((float)variance + (r->inside ? r->eps : 0));
        if (!r->inside) how[1] += r->eps;
    }
    for (int64_t i = 0; i < r->count; i += r->inner) {
        if (r->scale) {
            const int64_t channel = (row * r->count + i) / r->inner % r->channels;
            how[2] = r->scale[channel];
            how[3] = r->bias[channel];
        }
        r->functions->standardize(data + i, r->inner, how, r->divides, out + i);
    }
}

static void do_standardize(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct rows *r = context;
    for (int64_t row = job * r->at_once; row < least(r->rows, (job + 1) * r->at_once); row++)
        standardize_row(r, row);
}

static void do_sum(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct rows *r = context;
    for (int64_t row = job * r->at_once; row < least(r->rows, (job + 1) * r->at_once); row++) {
        const float sum = (float)r->functions->sum(r->data + row * r->count, r->count);
        r->out[row] = r->mean ? sum / (float)r->count : sum;
    }
}

static int run(struct rows *r, job_function function, int64_t threads) {
    const int64_t all = r->rows * r->count;
    r->at_once = most(1, LEAST_SHARED / most(1, r->count));
    const int64_t shared = most(1, all / LEAST_SHARED);
    return run_unlocked(function, r, divide_up(r->rows, r->at_once), least(threads, shared), 0);
}

/* Get buffers of f32; the second is written to. */
static int take_buffers(PyObject *const *given, int count, int64_t isa, Py_buffer *buffers) {
    int good = take_arrays(given, count, 1 << 1, buffers) && isa_available(isa);
    for (int i = 0; i < count; i++) good = good && buffers[i].itemsize == 4;
    return good;
}

PyObject *module_standardize(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[4];
    struct standardize_fields f;
    if (take_call(arguments, 4, given, &f, sizeof f)) return NULL;
    struct rows r = {.eps = (float)f.eps, .inside = f.inside != 0, .divides = f.divides != 0};
    Py_buffer buffers[4] = {0};
    const int scales = given[2] != Py_None;
    int good = take_buffers(given, scales ? 4 : 2, f.isa, buffers);
    good = good && f.row > 0 && f.inner > 0 && f.row % f.inner == 0 &&
           buffers[0].len == buffers[1].len && buffers[0].len / 4 % f.row == 0;
    good = good && (!scales || (buffers[2].len == buffers[3].len && buffers[2].len > 0));
    if (good) {
        r.functions = row_functions_of(f.isa);
        r.count = f.row, r.inner = f.inner, r.rows = buffers[0].len / 4 / f.row;
        r.data = buffers[0].buf, r.out = buffers[1].buf;
        if (scales) {
            r.scale = buffers[2].buf, r.bias = buffers[3].buf;
            r.channels = buffers[2].len / 4;
        }
        failed = run(&r, do_standardize, f.threads);
    }
    return release_all(failed, buffers, 4);
}

PyObject *module_sum_rows(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[2];
    struct sum_rows_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[2] = {0};
    int good = take_buffers(given, 2, f.isa, buffers);
    good = good && buffers[1].len > 0 && buffers[0].len % buffers[1].len == 0;
    if (good) {
        struct rows r = {.functions = row_functions_of(f.isa),
                         .count = buffers[0].len / buffers[1].len,
                         .rows = buffers[1].len / 4,
                         .data = buffers[0].buf,
                         .out = buffers[1].buf,
                         .mean = f.mean != 0};
        failed = run(&r, do_sum, f.threads);
    }
    return release_all(failed, buffers, 2);
}
