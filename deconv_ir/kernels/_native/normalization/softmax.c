/* SoftMax and LogSoftmax along an axis, in f32, on several threads. */
#include "normalization/normalization.h"

#include "simd/rows.h"

/* Elements of a job. */
#define JOB_ELEMENTS 16384

struct softmax {
    const struct row_functions *functions;
    const float *data;
    float *out;
    int64_t outer, count, inner; /* extents before, along and after the axis */
    int64_t at_once, jobs;       /* lists of a job; jobs of an outer index, or of all rows */
    int logarithm;
};

static void do_rows(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct softmax *s = context;
    const int64_t end = least(s->outer, (job + 1) * s->at_once);
    for (int64_t row = job * s->at_once; row < end; row += SOFTMAX_ROWS)
        s->functions->softmax_rows(s->data + row * s->count, least(SOFTMAX_ROWS, end - row),
                                   s->count, s->logarithm, s->out + row * s->count);
}

static void do_columns(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct softmax *s = context;
    const int64_t column = job % s->jobs * s->at_once;
    const int64_t first = job / s->jobs * s->count * s->inner + column;
    s->functions->softmax_columns(s->data + first, s->count, s->inner,
                                  least(s->at_once, s->inner - column), s->logarithm,
                                  s->out + first);
}

PyObject *module_softmax(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[2];
    struct softmax_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    struct softmax s = {.logarithm = f.logarithm != 0};
    Py_buffer buffers[2] = {0};
    const Py_buffer *data = &buffers[0], *out = &buffers[1];
    if (take_arrays(given, 2, 1 << 1, buffers) && isa_available(f.isa) && data->ndim == 3 &&
        data->itemsize == 4 && out->itemsize == 4 && out->len == data->len && data->len > 0) {
        s.functions = row_functions_of(f.isa);
        s.data = data->buf, s.out = out->buf;
        s.outer = data->shape[0], s.count = data->shape[1], s.inner = data->shape[2];
        const int rows = s.inner == 1;
        const int64_t lists = most(1, JOB_ELEMENTS / s.count);
        s.at_once = round_up(lists, rows ? SOFTMAX_ROWS : s.functions->lanes);
        s.jobs = divide_up(rows ? s.outer : s.inner, s.at_once);
        failed = run_unlocked(rows ? do_rows : do_columns, &s, rows ? s.jobs : s.jobs * s.outer,
                              least(f.threads, data->len / 4 / JOB_ELEMENTS), 0);
    }
    return release_all(failed, buffers, 2);
}
