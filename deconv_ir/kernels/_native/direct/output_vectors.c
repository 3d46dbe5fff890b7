/* Direct sums whose vectors hold output channels, for rows that fill few vectors of positions:
 *
 *   for each part of the channels:
 *     for each OUT_POSITIONS positions of the tile: sum all taps of OUT_VECTORS vectors
 *   bias and activation, and scatter the vectors to the output
 *
 * The same sums as with vectors of positions, bit by bit.
 */
#include "direct/output_vectors.h"

/* Bytes of weights that stay in the second-level cache while positions pass. */
#define NEAR_WEIGHTS ((int64_t)128 << 10)

/* Weights beyond the second-level cache are prefetched for vectors of positions only. */
int takes_output_vectors(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *t) {
    const struct axis *a = plan->axes;
    for (int i = 0; i < AXES; i++)
        if (a[i].out_stride != 1) return 0;
    /* The last tile has what blocks remain: as many as fill vectors, too. */
    return k->kernels->sum_outputs && !t->compact && t->blocks % OUT_BLOCKS == 0 &&
           k->packing.blocks % OUT_BLOCKS == 0 &&
           k->layer.channels_out == k->packing.blocks * k->kernels->rows &&
           k->packing.group_size * k->kernels->size <= k->layer.machine.level2 &&
           k->layer.element == F32 && rows_are_plain(k, run, plan) && !plan->leaves_out;
}

/* Sum the positions of a plane, from `data` on, over all taps of some channels. */
static void sum_part(const struct context *c, const struct tile *tile, const struct go *go,
                     int64_t block, const struct sub *sub, const float *data, float *sums,
                     int64_t pitch) {
    const int64_t lanes = c->kernels->lanes, rows = c->packing->rows, width = tile->box[2];
    const int64_t step = sub->packed_taps * c->layer->channels_in * rows;
    const float *weights = (const float *)c->k->packed + sub->packed + block * step +
                           go->first * sub->packed_taps * rows;
    const float *bias = go->ends ? c->k->bias : NULL;
    if (bias) bias += tile->group * c->layer->channels_out + block * rows;
    const int64_t count = tile->box[1] * width;
    const float *row = data, *places[OUT_POSITIONS];
    /* Of a plane with fewer positions, the first stands for the others, whose sums nobody reads. */
    for (int64_t i = 0; i < OUT_POSITIONS; i++) places[i] = data;
    for (int64_t at = 0, x = 0; at < count; at += OUT_POSITIONS) {
        for (int64_t i = 0; i < OUT_POSITIONS && at + i < count; i++) {
            places[i] = row + x++;
            if (x == width) {
                x = 0;
                row += c->plan->tiling.pitch;
            }
        }
        c->kernels->sum_outputs(go->count * sub->taps, sub->offsets, places, weights, step,
                                sums + at * lanes, pitch, go->begins, bias);
    }
}

/* Write the sums of one vector of channels at all positions of a plane to the output. */
static void write_vector(const struct context *c, const struct tile *tile, float *sums,
                         char *out) {
    const int64_t lanes = c->kernels->lanes, width = tile->box[2], extent = c->run->extent;
    const int64_t channel = c->run->output[0] * c->run->output[1] * extent;
    const int64_t runs = width == extent ? 1 : tile->box[1];
    const int64_t count = tile->box[1] * width / runs;
    c->kernels->activate(&c->k->epilogue, sums, runs * count * lanes);
    for (int64_t i = 0; i < runs; i++) {
        float *to = (float *)(void *)out + i * extent;
        c->kernels->scatter_channels(sums + i * count * lanes, channel, lanes, count, to);
        add_rows(c, (char *)to, channel * c->kernels->size, lanes, count);
    }
}

void run_output_vectors(const struct context *c, const struct tile *tile, const struct go *go,
                        int64_t b) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t lanes = c->kernels->lanes, rows = c->packing->rows;
    const int64_t block = tile->first_block + b;
    const int64_t pitch = round_up(tile->box[1] * tile->box[2], OUT_POSITIONS) * lanes;
    const struct sub sub = sub_of(c, tile, 0, 0, 0);
    const int64_t fit = most(1, NEAR_WEIGHTS / (OUT_BLOCKS * rows * sub.taps * c->kernels->size));
    float *sums = (float *)(void *)tile->sums;
    if (!go->begins || !go->ends) sums += b * rows * t->box[0] * t->line;
    for (int64_t z = 0; z < tile->box[0]; z++, sums += OUT_VECTORS * pitch) {
        const float *data = (const float *)(const void *)tile->data + z * t->plane;
        struct go part = *go;
        for (int64_t first = 0; first < go->count; first += fit) {
            part.first = go->first + first;
            part.count = least(fit, go->count - first);
            part.begins = go->begins && first == 0;
            part.ends = go->ends && first + fit >= go->count;
            sum_part(c, tile, &part, block, &sub, data + first * t->channel_stride, sums, pitch);
        }
        for (int64_t v = 0; v < OUT_VECTORS && go->ends; v++)
            write_vector(c, tile, sums + v * pitch,
                         out_row(c, tile, 0, block * rows + v * lanes, tile->first[0] + z,
                                 tile->first[1]) + tile->first[2] * c->kernels->size);
    }
}
