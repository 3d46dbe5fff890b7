/* GridSample of f32.  Positions are computed here, without fused multiply-adds: their integer parts
 * are those of the formulas of the document, rounded step by step. */
#include "sampling/sampling.h"

#include "simd/planes.h"

#include <math.h>

/* Minimum number of outputs per thread. */
#define LEAST_SHARED 16384
#define MOST_AXIS_TAPS 4
#define MOST_SAMPLED_EXTENT (1 << 24) /* whose indices f32 represents */


struct sampling {
    sampling_function sample;
    int64_t mode, beyond;
    int align;
    int64_t channels, height, width, positions, blocks;
    const float *data, *grid;
    float *out;
};

/* The taps of positions along an axis; index -1: outside, where elements are 0. */
struct axis_taps {
    int32_t index[MOST_AXIS_TAPS][SAMPLED_POSITIONS];
    float weight[MOST_AXIS_TAPS][SAMPLED_POSITIONS];
};

struct scratch {
    struct samples samples;
    struct axis_taps columns, rows;
};

/* Rounds to the nearest integer, ties to even.  Written so that compilers vectorise it. */
static inline float nearest(float x) {
    const float size = fabsf(x), rounded = copysignf((size + 0x1p23f) - 0x1p23f, x);
    return size < 0x1p23f ? rounded : x;
}

static inline float floored(float x) {
    const float whole = nearest(x);
    return whole > x ? whole - 1 : whole;
}

static float floored_modulo(float x, float period) {
    const float rest = fmodf(x, period);
    return rest < 0 ? rest + period : rest;
}

/* Mirror an index at the centres, or at the outer edges, of the end elements. */
static float reflected(float index, int64_t extent, int align) {
    if (align) {
        if (extent == 1) return 0;
        const float last = (float)(extent - 1), period = 2 * last;
        index = fmodf(fabsf(index), period);
        return index > last ? period - index : index;
    }
    const float period = (float)(2 * extent);
    index = floored_modulo(index + 0.5f, period);
    return (index > (float)extent ? period - index : index) - 0.5f;
}

/* Find the elements of a tap at `index`, which is overwritten. */
static void take_elements(const struct sampling *s, float *index, int64_t count, int64_t extent,
                          int32_t *taken) {
    if (s->beyond == REFLECTION && s->mode == BICUBIC)
        for (int64_t x = 0; x < count; x++) index[x] = reflected(index[x], extent, s->align);
    const float end = (float)extent, last = end - 1;
    const int32_t outside = s->beyond == ZEROS ? -1 : 0;
    for (int64_t x = 0; x < count; x++) {
        /* NaN selects the first element. */
        const float above = index[x] > 0 ? index[x] : 0;
        const int32_t element = (int32_t)(above < last ? above : last);
        const int32_t inside = -(index[x] >= 0 && index[x] < end);
        taken[x] = element | (~inside & outside);
    }
}

/* Four neighbours, weighted by the cubic convolution kernel with a = -0.75. */
static inline void weigh_cubic(float t, int64_t x, float weight[][SAMPLED_POSITIONS]) {
    const float a = -0.75f;
    weight[0][x] = a * ((t - 1) * (t - 1)) * t;
    weight[1][x] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2][x] = (((-a - 2) * t + (2 * a + 3)) * t - a) * t;
    weight[3][x] = -a * t * t * (t - 1);
}

/* Compute the taps along an axis of positions from -1 to 1, which lie two floats apart. */
static void take_axis(const struct sampling *s, const float *grid, int64_t count, int64_t extent,
                      struct axis_taps *taps) {
    const float span = (float)(s->align ? extent - 1 : extent), shift = s->align ? 0.0f : 1.0f;
    float index[SAMPLED_POSITIONS], tap[SAMPLED_POSITIONS];
    for (int64_t x = 0; x < count; x++) index[x] = ((grid[2 * x] + 1) * span - shift) / 2;
    if (s->beyond == REFLECTION && s->mode != BICUBIC)
        for (int64_t x = 0; x < count; x++) index[x] = reflected(index[x], extent, s->align);
    if (s->mode == NEAREST) {
        for (int64_t x = 0; x < count; x++) index[x] = nearest(index[x]);
        take_elements(s, index, count, extent, taps->index[0]);
        return;
    }
    const int along = s->mode == BILINEAR ? 2 : 4;
    for (int64_t x = 0; x < count; x++) {
        const float first = floored(index[x]), rest = index[x] - first;
        index[x] = first;
        if (along == 2) taps->weight[0][x] = 1 - rest, taps->weight[1][x] = rest;
        else weigh_cubic(rest, x, taps->weight);
    }
    for (int i = 0; i < along; i++) {
        const float before = along == 2 ? 0.0f : 1.0f;
        for (int64_t x = 0; x < count; x++) tap[x] = index[x] + ((float)i - before);
        take_elements(s, tap, count, extent, taps->index[i]);
    }
}

static void take_samples(const struct sampling *s, const float *grid, int64_t count,
                         struct scratch *scratch) {
    const int along = s->mode == NEAREST ? 1 : s->mode == BILINEAR ? 2 : 4;
    struct samples *samples = &scratch->samples;
    struct axis_taps *columns = &scratch->columns, *rows = &scratch->rows;
    samples->taps = along * along, samples->weighs = s->mode != NEAREST;
    take_axis(s, grid, count, s->width, columns);
    take_axis(s, grid + 1, count, s->height, rows);
    const int32_t width = (int32_t)s->width;
    for (int t = 0; t < along * along; t++) {
        const int r = t / along, c = t % along;
        const int64_t to = t * SAMPLED_POSITIONS;
        for (int64_t x = 0; x < count; x++) {
            const int32_t row = rows->index[r][x], column = columns->index[c][x];
            const int32_t inside = ~((row | column) >> 31);
            samples->mask[to + x] = inside;
            samples->index[to + x] = (row * width + column) & inside;
        }
        for (int64_t x = 0; samples->weighs && x < count; x++)
            samples->weight[to + x] = rows->weight[r][x] * columns->weight[c][x];
        /* The rest of the last vector reads the first element. */
        for (int64_t x = count; x < round_up(count, MOST_SAMPLED_LANES); x++)
            samples->index[to + x] = samples->mask[to + x] = 0, samples->weight[to + x] = 0;
    }
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct sampling *s = context;
    const int64_t image = job / s->blocks, first = job % s->blocks * SAMPLED_POSITIONS;
    const int64_t count = least(SAMPLED_POSITIONS, s->positions - first);
    const int64_t plane = s->height * s->width;
    take_samples(s, s->grid + (image * s->positions + first) * 2, count, scratch);
    const struct samples *samples = &((const struct scratch *)scratch)->samples;
    const float *data = s->data + image * s->channels * plane;
    float *out = s->out + image * s->channels * s->positions + first;
    for (int64_t c = 0; c < s->channels; c++, data += plane, out += s->positions)
        s->sample(samples, data, count, out);
}

static int take(struct sampling *s, const Py_buffer *buffers) {
    const Py_buffer *data = buffers, *grid = buffers + 1, *out = buffers + 2;
    for (int i = 0; i < 3; i++)
        if (buffers[i].ndim != 4 || buffers[i].itemsize != 4 || buffers[i].len == 0 ||
            buffers[i].shape[0] != data->shape[0])
            return 0;
    s->channels = data->shape[1], s->height = data->shape[2], s->width = data->shape[3];
    s->positions = grid->shape[1] * grid->shape[2];
    s->blocks = divide_up(s->positions, SAMPLED_POSITIONS);
    s->data = data->buf, s->grid = grid->buf, s->out = out->buf;
    return grid->shape[3] == 2 && out->shape[1] == s->channels &&
           out->shape[2] == grid->shape[1] && out->shape[3] == grid->shape[2] &&
           s->height <= MOST_SAMPLED_EXTENT && s->width <= MOST_SAMPLED_EXTENT &&
           s->height * s->width <= INT32_MAX && s->mode >= 0 && s->mode < MODES &&
           s->beyond >= 0 && s->beyond < BEYONDS;
}

/* all in f32 */
PyObject *module_sample(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct sample_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    struct sampling s = {.mode = f.mode, .beyond = f.beyond, .align = f.align != 0};
    Py_buffer buffers[3] = {0};
    if (take_arrays(given, 3, 1 << 2, buffers) && isa_available(f.isa) && take(&s, buffers)) {
        s.sample = BY_ISA(f.isa, function_sampling);
        failed = run_unlocked(do_job, &s, buffers[0].shape[0] * s.blocks,
                              least(f.threads, buffers[2].len / 4 / LEAST_SHARED),
                              (int64_t)sizeof(struct scratch));
    }
    return release_all(failed, buffers, 3);
}
