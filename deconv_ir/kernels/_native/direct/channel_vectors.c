/* Depthwise layers of many channels, which vectors hold side by side:
 *
 *   for each vector of channels of a job:
 *     gather the data of the tile: [position][channel], with zeros around them
 *     for each sub-convolution, some rows at a time:
 *       sum their taps, in order, then bias and activation, and scatter them to the output
 *
 * The GEMM of a sub-convolution, one for each lane of a vector:
 *   M  1: the output channel
 *   K  taps of the sub-convolution
 *   N  positions v of some rows of the tile, a few at a time
 *
 * The sums are bitwise equal to those channel by channel.
 */
#include "direct/channel_vectors.h"
#include "direct/direct.h"

#include <string.h>

/* The gathered data of one tile, in scratch. */
struct gathered_tile {
    float *weights, *bias;
    int32_t *places; /* [row][column] of the data that the tile reads: vectors of a plane */
    int32_t *taps;   /* 0, 1, 2 ...: places of the weights */
    struct stretch rows, columns; /* of the data */
    int64_t first_channel, channels;
};

/* The stretch of an axis that a tile reads, if all positions modulo the stride are read. */
static struct stretch seen_along(const struct direct_context *c, const struct direct_tile *tile,
                                 int axis) {
    const struct axis *a = &c->plan->axes[axis];
    const int64_t first = tile->first[axis] + a->low;
    const int64_t last = tile->first[axis] + tile->shape[axis] + a->high;
    return stretch_make(first * a->in_stride, last * a->in_stride, a->data);
}

static void find_places(const struct direct_context *c, struct gathered_tile *g) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *row = &c->plan->axes[1], *column = &c->plan->axes[2];
    const int64_t count = g->columns.count;
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = g->columns.before + i;
        g->places[i] =
            (int32_t)(x % column->in_stride * t->residue_stride + x / column->in_stride);
    }
    /* The first row comes last: the others are derived from it without divisions. */
    for (int64_t row_index = g->rows.count - 1; row_index >= 0; row_index--) {
        const int64_t y = g->rows.before + row_index;
        const int32_t line =
            (int32_t)(y % row->in_stride * column->residues * t->residue_stride +
                      y / row->in_stride * t->pitch);
        for (int64_t i = 0; i < count; i++)
            g->places[row_index * count + i] = g->places[i] + line;
    }
}

/* A row of elements that are not side by side. */
static void gather_apart(const struct direct_context *c, const struct gathered_tile *g,
                         const float *from, const int32_t *places, float *to) {
    const int64_t lanes = c->kernels->lanes;
    for (int64_t lane = 0; lane < g->channels; lane++, from += c->run->channel_step)
        for (int64_t x = 0; x < g->columns.count; x++)
            to[places[x] * lanes + lane] = from[x * c->run->step[2]];
}

/* Gather the data of the channels, into zeros or over those of other channels. */
static void gather(const struct direct_context *c, const struct direct_tile *tile,
                   const struct gathered_tile *g) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t *step = c->run->step, lanes = c->kernels->lanes;
    const float *from = (const float *)c->data + tile->first_image * c->run->image_step +
                        g->first_channel * c->run->channel_step + g->rows.begin * step[1] +
                        g->columns.begin * step[2];
    /* Rows without gaps between them are one long row. */
    const int joined = step[2] == 1 && step[1] == g->columns.count;
    const int64_t runs = joined ? 1 : g->rows.count;
    const int64_t count = joined ? g->rows.count * g->columns.count : g->columns.count;
    for (int64_t residue = 0; residue < a[0].residues; residue++) {
        const struct stretch z = stretch_of(c, tile, 0, a[0].residue + residue);
        for (int64_t i = 0; i < z.count; i++) {
            const int64_t plane = (z.begin + i) * a[0].in_stride + a[0].residue + residue;
            float *to = (float *)tile->data +
                        (residue * a[1].residues * a[2].residues * t->residue_stride +
                         (z.before + i) * t->plane) * lanes;
            for (int64_t run = 0; run < runs; run++) {
                const float *row = from + plane * step[0] + run * step[1];
                const int32_t *places = g->places + run * count;
                if (step[2] == 1)
                    c->kernels->gather_channels(row, c->run->channel_step, g->channels, count,
                                                places, to);
                else gather_apart(c, g, row, places, to);
            }
        }
    }
}

/* The weights of a sub-convolution: [tap][channel]. */
static void gather_weights(const struct direct_context *c, const struct gathered_tile *g,
                           const struct sub *sub) {
    const float *packed = (const float *)c->k->packed + sub->packed;
    c->kernels->gather_channels(packed, c->packing->group_size, g->channels, sub->taps, g->taps,
                                g->weights);
}

/* Sum one sub-convolution of a plane, some rows at a time: a vector of positions or more. */
static void sum_plane(const struct direct_context *c, const struct direct_tile *tile,
                      const struct gathered_tile *g, const struct sub *sub, int64_t z) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t lanes = c->kernels->lanes, count = tile->shape[2];
    const int64_t ys = positions_along(tile, &a[1], 1, sub->q[1]);
    const int64_t some = least(ys, divide_up(lanes, count));
    const int64_t pitch = a[1].out_stride * c->run->extent;
    const int64_t channel = a[0].output * a[1].output * c->run->extent;
    const int64_t runs = pitch == count ? 1 : some;
    const struct channel_rows rows = {sub->taps, sub->offsets, some, count, t->pitch, count};
    const float *data = (const float *)tile->data + z * t->plane * lanes;
    float *out = (float *)out_row(c, tile, 0, 0, (tile->first[0] + z) * a[0].out_stride + sub->q[0],
                                  tile->first[1] * a[1].out_stride + sub->q[1]) + tile->first[2];
    float *sums = (float *)tile->sums;
    for (int64_t y = 0; y < ys; y += some) {
        const int64_t row = least(y, ys - some);
        c->kernels->sum_vectors(&rows, data + row * t->pitch * lanes, g->weights, g->bias,
                                &c->k->epilogue, sums);
        const int64_t length = runs > 1 ? count : some * count;
        for (int64_t run = 0; run < runs; run++) {
            float *to = out + (row + run) * pitch;
            c->kernels->scatter_channels(sums + run * count * lanes, channel, g->channels, length,
                                         to);
            for (int64_t i = 0; c->run->addition && i < g->channels; i++, to += channel)
                add_to(c->run->addition, (char *)to, to, length);
        }
    }
}

/* Bytes of data that stay in the first-level cache: streams of more channels than that cache has
 * ways are slow if they come from a farther level each time. */
#define NEAR_BYTES ((int64_t)32 << 10)

int takes_channel_vectors(const struct kernel *k, const struct run *run, const struct plan *plan,
                          const struct tiling *t) {
    const struct axis *a = plan->axes;
    const int64_t lanes = k->kernels->lanes;
    int64_t positions = plan->residues;
    for (int i = 0; i < AXES; i++) {
        if (t->compact || t->shape[i] < a[i].last - a[i].first) return 0;
        positions *= t->shape[i] + a[i].high - a[i].low;
    }
    if (t->shape[2] >= lanes || positions * lanes * k->kernels->size > NEAR_BYTES) return 0;
    /* Most lanes of all vectors are used. */
    return k->kernels->sum_vectors && k->problem.channels_in == 1 && k->problem.channels_out == 1 &&
           4 * k->problem.groups >= 3 * round_up(k->problem.groups, lanes) &&
           k->problem.element == F32 && rows_are_plain(k, run, plan) &&
           a[1].residues == a[1].in_stride && a[2].residues == a[2].in_stride;
}

int64_t channel_vectors_bytes(const struct kernel *k, const struct plan *plan,
                              const struct tiling *t) {
    const int64_t rows = t->extent[1] * plan->axes[1].in_stride;
    const int64_t columns = t->extent[2] * plan->axes[2].in_stride;
    return (plan->depth + 1) * t->vectors * k->kernels->size +
           (plan->depth + rows * columns) * (int64_t)sizeof(int32_t);
}

void run_channel_vectors(const struct direct_context *c, struct direct_tile *tile) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t lanes = c->kernels->lanes;
    const int64_t end = least(tile->group + t->groups, c->problem->groups);
    struct gathered_tile g = {.weights = (float *)tile->panel + lanes, .bias = (float *)tile->panel,
                         .rows = seen_along(c, tile, 1), .columns = seen_along(c, tile, 2)};
    g.taps = (int32_t *)(g.weights + c->plan->depth * lanes);
    g.places = g.taps + c->plan->depth;
    for (int64_t k = 0; k < c->plan->depth; k++) g.taps[k] = (int32_t)k;
    find_places(c, &g);
    memset(tile->data, 0, (size_t)t->data_bytes);
    memset(g.bias, 0, (size_t)(lanes * c->kernels->size));
    for (; tile->group < end; tile->group += lanes) {
        g.first_channel = tile->group;
        g.channels = least(lanes, end - tile->group);
        gather(c, tile, &g);
        if (c->k->bias)
            memcpy(g.bias, (const float *)c->k->bias + tile->group,
                   (size_t)g.channels * sizeof *g.bias);
        for (int64_t qz = 0; qz < subs_along(&a[0]); qz++)
            for (int64_t qy = 0; qy < subs_along(&a[1]); qy++) {
                const struct sub sub = sub_of(c, tile, qz, qy, 0);
                gather_weights(c, &g, &sub);
                for (int64_t z = 0; z < positions_along(tile, &a[0], 0, qz); z++)
                    sum_plane(c, tile, &g, &sub, z);
            }
    }
}
