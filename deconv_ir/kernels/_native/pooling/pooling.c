/* Max and average pooling of up to three axes, and means of any windows, in f32. */
#include "pooling/pooling.h"

#include "simd/windows.h"

/* Elements that a job reads; minimum number of elements per thread. */
#define JOB_ELEMENTS 16384
#define LEAST_SHARED 32768
#define MOST_EXTENT ((int64_t)1 << 40)

struct window_axis {
    int64_t data, output, kernel, stride, dilation, pad;
};

struct pooling {
    const struct pooling_functions *functions;
    struct window_axis axes[AXES];
    const float *data;
    float *out;
    const float *divisors[AXES]; /* by output; NULL: no division */
    float neutral;
    int64_t line;        /* elements of a padded row */
    int64_t rows_of_job, jobs_of_plane;
};

/* The taps [first, last) of a window that are inside the data. */
static void taps_within(const struct window_axis *a, int64_t output, int64_t *first,
                        int64_t *last) {
    const int64_t begin = output * a->stride - a->pad;
    *first = begin < 0 ? divide_up(-begin, a->dilation) : 0;
    *last = begin < a->data ? least(a->kernel, divide_up(a->data - begin, a->dilation)) : 0;
}

static void pool_row(const struct pooling *p, const float *plane, int64_t z, int64_t y,
                     float *line, float *out) {
    const struct window_axis *a = p->axes;
    float *inside = line + a[2].pad;
    int64_t first_z, last_z, first_y, last_y;
    taps_within(&a[0], z, &first_z, &last_z);
    taps_within(&a[1], y, &first_y, &last_y);
    int begins = 1;
    for (int64_t i = first_z; i < last_z; i++)
        for (int64_t j = first_y; j < last_y; j++, begins = 0) {
            const int64_t at_z = z * a[0].stride - a[0].pad + i * a[0].dilation;
            const int64_t at_y = y * a[1].stride - a[1].pad + j * a[1].dilation;
            p->functions->combine(plane + (at_z * a[1].data + at_y) * a[2].data, a[2].data,
                                  begins, inside);
        }
    if (begins)
        for (int64_t i = 0; i < a[2].data; i++) inside[i] = p->neutral;
    p->functions->slide(line, a[2].stride, a[2].kernel, a[2].dilation, a[2].output, out);
    if (!p->divisors[0]) return;
    const float outer = p->divisors[0][z] * p->divisors[1][y];
    for (int64_t x = 0; x < a[2].output; x++) out[x] /= outer * p->divisors[2][x];
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct pooling *p = context;
    const struct window_axis *a = p->axes;
    const int64_t plane = job / p->jobs_of_plane, rows = a[0].output * a[1].output;
    const int64_t first = job % p->jobs_of_plane * p->rows_of_job;
    const float *data = p->data + plane * a[0].data * a[1].data * a[2].data;
    float *out = p->out + (plane * rows + first) * a[2].output, *line = scratch;
    for (int64_t i = 0; i < p->line; i++) line[i] = p->neutral;
    for (int64_t row = first; row < least(rows, first + p->rows_of_job); row++) {
        pool_row(p, data, row / a[1].output, row % a[1].output, line, out);
        out += a[2].output;
    }
}

static int is_small(int64_t value) { return value >= 0 && value <= MOST_EXTENT; }

/* Whether the extents are valid: products of all numbers do not overflow. */
static int take_axes(struct pooling *p, const Py_buffer *data, const Py_buffer *out) {
    if (data->ndim != AXES + 1 || out->ndim != AXES + 1 || data->itemsize != 4 ||
        out->itemsize != 4 || data->shape[0] != out->shape[0] || data->len == 0 || out->len == 0)
        return 0;
    for (int i = 0; i < AXES; i++) {
        struct window_axis *a = &p->axes[i];
        a->data = data->shape[i + 1], a->output = out->shape[i + 1];
        if (!is_small(a->kernel) || !is_small(a->stride) || !is_small(a->dilation) ||
            !is_small(a->pad) || a->kernel < 1 || a->stride < 1 || a->dilation < 1 ||
            (__int128)a->output * a->stride > MOST_EXTENT)
            return 0;
    }
    const struct window_axis *x = &p->axes[2];
    __int128 line = (__int128)(round_up(x->output, p->functions->lanes) +
                               p->functions->lanes) * x->stride +
                    (__int128)(x->kernel - 1) * x->dilation + x->pad + x->data;
    if (line > MOST_EXTENT) return 0;
    p->line = (int64_t)line;
    return 1;
}

/* divisors: by output, in f32 */
PyObject *module_pool(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[5];
    struct pool_fields f;
    if (take_call(arguments, 5, given, &f, sizeof f)) return NULL;
    struct pooling p = {.neutral = 0};
    struct window_axis *a = p.axes;
    for (int i = 0; i < AXES; i++)
        a[i] = (struct window_axis){.kernel = f.kernel[i], .stride = f.strides[i],
                                    .dilation = f.dilations[i], .pad = f.pads_begin[i]};
    const int count = given[2] == Py_None ? 2 : 5;
    Py_buffer buffers[5] = {0};
    int good = take_arrays(given, count, 1 << 1, buffers) && isa_available(f.isa) &&
               f.pooled >= 0 && f.pooled < POOLINGS;
    if (good) p.functions = BY_ISA(f.isa, functions_pooling) + f.pooled;
    good = good && take_axes(&p, &buffers[0], &buffers[1]);
    for (int i = 2; i < count; i++) {
        good = good && buffers[i].len == 4 * buffers[1].shape[i - 1];
        p.divisors[i - 2] = buffers[i].buf;
    }
    if (good) {
        p.data = buffers[0].buf, p.out = buffers[1].buf;
        if (f.pooled == POOLED_MAX) p.neutral = -__builtin_inff();
        const int64_t planes = buffers[0].shape[0], elements = buffers[0].len / 4;
        const int64_t rows = a[0].output * a[1].output;
        p.rows_of_job = most(1, least(rows, rows * JOB_ELEMENTS / most(1, elements / planes)));
        p.jobs_of_plane = divide_up(rows, p.rows_of_job);
        failed = run_unlocked(do_job, &p, planes * p.jobs_of_plane,
                              least(f.threads, elements / LEAST_SHARED),
                              p.line * (int64_t)sizeof(float));
    }
    return release_all(failed, buffers, 5);
}

/* A window of an axis: elements from begin to before end. */
struct window {
    int64_t begin, end;
};

struct averaging {
    const struct pooling_functions *functions;
    const struct window *windows[AXES];
    int64_t data[AXES], output[AXES];
    const float *from;
    float *out;
};

static void average_plane(void *context, int64_t job, void *scratch) {
    const struct averaging *a = context;
    const int64_t width = a->data[2], rows = a->data[1], columns = a->output[2];
    const float *plane = a->from + job * a->data[0] * rows * width;
    float *out = a->out + job * a->output[0] * a->output[1] * columns, *line = scratch;
    for (int64_t row = 0; row < a->output[0] * a->output[1]; row++, out += columns) {
        const struct window z = a->windows[0][row / a->output[1]];
        const struct window y = a->windows[1][row % a->output[1]];
        for (int64_t i = z.begin; i < z.end; i++)
            for (int64_t j = y.begin; j < y.end; j++)
                a->functions->combine(plane + (i * rows + j) * width, width,
                                      i == z.begin && j == y.begin, line);
        const float outer = (float)(z.end - z.begin) * (float)(y.end - y.begin);
        for (int64_t x = 0; x < columns; x++) {
            const struct window w = a->windows[2][x];
            float sum = line[w.begin];
            for (int64_t i = w.begin + 1; i < w.end; i++) sum += line[i];
            out[x] = sum / (outer * (float)(w.end - w.begin));
        }
    }
}

/* Whether windows are inside the data, and not empty. */
static int take_windows(const Py_buffer *windows, int64_t data, int64_t output) {
    if (windows->itemsize != 8 || windows->len != output * (int64_t)sizeof(struct window)) return 0;
    const struct window *w = windows->buf;
    for (int64_t i = 0; i < output; i++)
        if (w[i].begin < 0 || w[i].begin >= w[i].end || w[i].end > data) return 0;
    return 1;
}

PyObject *module_average_windows(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[5];
    struct average_windows_fields f;
    if (take_call(arguments, 5, given, &f, sizeof f)) return NULL;
    struct averaging a = {0};
    Py_buffer buffers[5] = {0};
    const Py_buffer *data = buffers, *out = buffers + 1;
    int good = take_arrays(given, 5, 1 << 1, buffers) && isa_available(f.isa) &&
               data->ndim == AXES + 1 && out->ndim == AXES + 1 && data->itemsize == 4 &&
               out->itemsize == 4 && data->shape[0] == out->shape[0] && data->len && out->len;
    for (int i = 0; good && i < AXES; i++) {
        a.data[i] = data->shape[i + 1], a.output[i] = out->shape[i + 1];
        a.windows[i] = buffers[i + 2].buf;
        good = take_windows(&buffers[i + 2], a.data[i], a.output[i]);
    }
    if (good) {
        a.functions = BY_ISA(f.isa, functions_pooling) + POOLED_SUM;
        a.from = data->buf, a.out = out->buf;
        const int64_t line = a.data[2] * (int64_t)sizeof(float);
        failed = run_unlocked(average_plane, &a, data->shape[0],
                              least(f.threads, (data->len + out->len) / 4 / LEAST_SHARED), line);
    }
    return release_all(failed, buffers, 5);
}
