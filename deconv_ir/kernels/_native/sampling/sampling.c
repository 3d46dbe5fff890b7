/* GridSample of f32. */
#include "sampling/sampling.h"

#include "simd/planes.h"

/* Minimum number of outputs per thread. */
#define LEAST_SHARED 16384
#define MOST_SAMPLED_EXTENT (1 << 24) /* whose indices f32 represents */

struct sampling {
    const struct sampling_functions *functions;
    struct sampled_axis rows, columns;
    int64_t channels, positions, blocks;
    const float *data, *grid;
    float *out;
};

struct scratch {
    struct samples samples;
    struct axis_taps columns, rows;
    float position[2][SAMPLED_POSITIONS]; /* x, y */
};

static void take_samples(const struct sampling *s, const float *grid, int64_t count,
                         struct scratch *scratch) {
    const int64_t mode = s->columns.mode, along = mode == NEAREST ? 1 : mode == BILINEAR ? 2 : 4;
    const int64_t whole = round_up(count, MOST_SAMPLED_LANES);
    float *x = scratch->position[0], *y = scratch->position[1];
    for (int64_t i = 0; i < count; i++) x[i] = grid[2 * i], y[i] = grid[2 * i + 1];
    /* The rest of the last vector reads the middle of the plane. */
    for (int64_t i = count; i < whole; i++) x[i] = y[i] = 0;
    scratch->samples.taps = along * along, scratch->samples.weighs = mode != NEAREST;
    s->functions->take_axis(&s->columns, x, whole, &scratch->columns);
    s->functions->take_axis(&s->rows, y, whole, &scratch->rows);
    s->functions->combine(&scratch->rows, &scratch->columns, along, s->columns.extent, whole,
                          &scratch->samples);
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct sampling *s = context;
    const int64_t image = job / s->blocks, first = job % s->blocks * SAMPLED_POSITIONS;
    const int64_t count = least(SAMPLED_POSITIONS, s->positions - first);
    const int64_t plane = s->rows.extent * s->columns.extent;
    take_samples(s, s->grid + (image * s->positions + first) * 2, count, scratch);
    const struct samples *samples = &((const struct scratch *)scratch)->samples;
    const float *data = s->data + image * s->channels * plane;
    float *out = s->out + image * s->channels * s->positions + first;
    for (int64_t c = 0; c < s->channels; c++, data += plane, out += s->positions)
        s->functions->sample(samples, data, count, out);
}

static int take(struct sampling *s, const Py_buffer *buffers) {
    const Py_buffer *data = buffers, *grid = buffers + 1, *out = buffers + 2;
    for (int i = 0; i < 3; i++)
        if (buffers[i].ndim != 4 || buffers[i].itemsize != 4 || buffers[i].len == 0 ||
            buffers[i].shape[0] != data->shape[0])
            return 0;
    const int64_t height = data->shape[2], width = data->shape[3];
    s->channels = data->shape[1], s->rows.extent = height, s->columns.extent = width;
    s->positions = grid->shape[1] * grid->shape[2];
    s->blocks = divide_up(s->positions, SAMPLED_POSITIONS);
    s->data = data->buf, s->grid = grid->buf, s->out = out->buf;
    return grid->shape[3] == 2 && out->shape[1] == s->channels &&
           out->shape[2] == grid->shape[1] && out->shape[3] == grid->shape[2] &&
           height <= MOST_SAMPLED_EXTENT && width <= MOST_SAMPLED_EXTENT &&
           height * width <= INT32_MAX && s->rows.mode >= 0 && s->rows.mode < MODES &&
           s->rows.beyond >= 0 && s->rows.beyond < BEYONDS;
}

/* all in f32 */
PyObject *module_sample(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct sample_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    const struct sampled_axis axis = {.mode = f.mode, .beyond = f.beyond, .align = f.align != 0};
    struct sampling s = {.rows = axis, .columns = axis};
    Py_buffer buffers[3] = {0};
    if (take_arrays(given, 3, 1 << 2, buffers) && isa_available(f.isa) && take(&s, buffers)) {
        s.functions = BY_ISA(f.isa, &functions_sampling);
        failed = run_unlocked(do_job, &s, buffers[0].shape[0] * s.blocks,
                              least(f.threads, buffers[2].len / 4 / LEAST_SHARED),
                              (int64_t)sizeof(struct scratch));
    }
    return release_all(failed, buffers, 3);
}
