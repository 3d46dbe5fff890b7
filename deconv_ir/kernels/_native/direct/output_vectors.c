/* Direct sums whose vectors hold output channels, for rows that fill few vectors of positions:
 *
 *   for each sub-convolution of the last axis, and each part of the channels:
 *     for all positions of the tile's images that read data with the same taps:
 *       for each OUT_POSITIONS of them: sum these taps of OUT_VECTORS vectors
 *   bias and activation, and scatter the vectors to the output
 *
 * The GEMM of a sub-convolution, with rows and columns exchanged:
 *   M  positions that read data with the same taps, OUT_POSITIONS at a time
 *   K  input channels x these taps, `channels` of a tiling at a time
 *   N  output channels of a group, in OUT_VECTORS vectors
 *
 * The sums are bitwise equal to those with vectors of positions.
 */
#include "direct/output_vectors.h"

/* Bytes of weights that stay in the second-level cache while positions are processed. */
#define NEAR_WEIGHTS ((int64_t)128 << 10)
#define NEAR_TAPS (NEAR_WEIGHTS / (int64_t)(OUT_VECTORS * 16 * sizeof(float))) /* of all channels */

#define FEWEST_POSITIONS (2 * OUT_POSITIONS)

/* Weights outside of the second-level cache are prefetched while positions of one image are summed, if
 * these are enough; several images share them. */
int takes_output_vectors(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *t) {
    const struct axis *a = plan->axes;
    /* All sub-convolutions have the same number of positions. */
    for (int i = 0; i < AXES; i++)
        if (a[i].output % a[i].out_stride) return 0;
    /* The last tile has the remaining blocks, which must fill vectors, too. */
    const int64_t weights = k->packing.group_size * k->kernels->size;
    const int64_t positions = t->shape[0] * t->shape[1] * t->shape[2];
    const int shared = t->images > 1 || positions >= FEWEST_POSITIONS;
    const int whole = t->blocks % OUT_BLOCKS == 0 && k->packing.blocks % OUT_BLOCKS == 0 &&
                      k->problem.channels_out == k->packing.blocks * k->kernels->rows;
    return k->kernels->sum_outputs && !t->compact && whole && k->problem.folded == 1 &&
           (weights <= k->problem.machine.sure_level2 || shared) && plan->depth <= NEAR_TAPS &&
           k->problem.element == F32 && !is_streamed(k, run) && !plan->leaves_out && !k->codes;
}

/* Positions of a tile, up to but not including `end`, that read data with the same taps. */
struct stretches {
    int64_t begin[AXES], end[AXES];
};

/* Whether a position reads data, rather than zeros around them, with a tap of an axis. */
static int sees(const struct axis *a, const struct tap_place *tap, int64_t position) {
    const int64_t at = position + tap->offset;
    return at >= 0 && at < divide_up(a->data - a->residue - tap->residue, a->in_stride);
}

static const struct tap_place *taps_of(const struct axis *a, int64_t q, int64_t *count) {
    const int64_t *first = a->pattern_first + a->pattern_of[q];
    *count = first[1] - first[0];
    return a->places + first[0];
}

/* The end of the positions of an axis that read data with the same taps as position `begin`. */
static int64_t end_of_same(const struct direct_context *c, const struct direct_tile *tile,
                           int axis, int64_t q, int64_t begin) {
    const struct axis *a = &c->plan->axes[axis];
    int64_t count, end = begin + 1;
    const struct tap_place *taps = taps_of(a, q, &count);
    for (; end < tile->shape[axis]; end++)
        for (int64_t i = 0; i < count; i++)
            if (sees(a, &taps[i], tile->first[axis] + end) !=
                sees(a, &taps[i], tile->first[axis] + begin))
                return end;
    return end;
}

/* The taps with which the first position of `part` reads data. */
static int64_t find_taps(const struct direct_context *c, const struct direct_tile *tile,
                         const struct sub *sub, const struct stretches *part, int64_t *found) {
    const struct axis *a = c->plan->axes;
    const struct tap_place *taps[AXES];
    int64_t count[AXES], at[AXES], index = 0, taken = 0;
    for (int i = 0; i < AXES; i++) taps[i] = taps_of(&a[i], sub->q[i], &count[i]);
    for (at[0] = 0; at[0] < count[0]; at[0]++)
        for (at[1] = 0; at[1] < count[1]; at[1]++)
            for (at[2] = 0; at[2] < count[2]; at[2]++, index++) {
                int all = 1;
                for (int i = 0; i < AXES; i++)
                    all &= sees(&a[i], &taps[i][at[i]], tile->first[i] + part->begin[i]);
                if (all) found[taken++] = index;
            }
    return taken;
}

/* Weights of OUT_BLOCKS blocks of rows that are prefetched while others are multiplied. */
struct prefetched_weights {
    const float *weights;
    int64_t block_step, length, at, blocks; /* elements of a block; remaining blocks */
};

/* The weights of the next `count` channels, from channel `first` on. */
static struct prefetched_weights ahead_of(const struct direct_context *c, const struct sub *sub,
                                          int64_t block, int64_t first, int64_t count) {
    const int64_t tap = sub->packed_taps * c->packing->rows, step = tap * c->problem->channels_in;
    const float *weights = (const float *)c->k->packed + sub->packed + block * step + first * tap;
    return (struct prefetched_weights){weights, step, count * tap, 0, count > 0 ? OUT_BLOCKS : 0};
}

/* Take up to `count` elements of a block; returns `done` if the weights are exhausted. */
static const float *take_ahead(struct prefetched_weights *ahead, int64_t count, const float *done) {
    if (!ahead->blocks) return done;
    const float *from = ahead->weights + ahead->at;
    ahead->at += count;
    if (ahead->at < ahead->length) return from;
    ahead->at = 0;
    ahead->weights += ahead->block_step;
    ahead->blocks--;
    return from;
}

/* Sum some positions of all images of a tile, whose data begin at `data`. */
static void sum_positions(const struct direct_context *c, const struct direct_tile *tile,
                          const struct input_block *in, int64_t block, const struct sub *sub,
                          const struct stretches *part, const int64_t *taps, int64_t count,
                          const float *data, float *sums, int64_t pitch,
                          struct prefetched_weights *ahead) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t lanes = c->kernels->lanes, rows = c->packing->rows;
    const int64_t stride = c->plan->axes[2].out_stride * lanes;
    const int64_t step = sub->packed_taps * c->problem->channels_in * rows;
    const float *weights = (const float *)c->k->packed + sub->packed + block * step +
                           in->first * sub->packed_taps * rows;
    const float *bias = in->ends ? c->k->bias : NULL;
    if (bias) bias += tile->group * c->problem->channels_out + block * rows;
    int32_t offsets[NEAR_TAPS], places_of_weights[NEAR_TAPS];
    struct out_sums out = {in->count * sub->taps, sub->offsets, NULL, step, pitch, in->begins,
                            weights};
    if (count < sub->taps) {
        out.depth = 0;
        out.offsets = offsets;
        out.weights = places_of_weights;
        for (int64_t channel = 0; channel < in->count; channel++)
            for (int64_t i = 0; i < count; i++) {
                const int64_t k = channel * sub->taps + taps[i];
                offsets[out.depth] = sub->offsets[k];
                places_of_weights[out.depth++] = (int32_t)(k * rows);
            }
    }
    struct out_place places[OUT_POSITIONS];
    int filled = 0;
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = part->begin[0]; z < part->end[0]; z++)
            for (int64_t y = part->begin[1]; y < part->end[1]; y++)
                for (int64_t x = part->begin[2]; x < part->end[2]; x++) {
                    const int64_t row = (image * tile->shape[0] + z) * tile->shape[1] + y;
                    places[filled++] = (struct out_place){
                        data + image * t->image_stride + z * t->plane + y * t->pitch + x,
                        sums + (row * tile->shape[2] + x) * stride};
                    if (filled < OUT_POSITIONS) continue;
                    out.ahead = take_ahead(ahead, out.depth * rows, weights);
                    c->kernels->sum_outputs(&out, places, weights, bias);
                    filled = 0;
                }
    if (!filled) return;
    out.ahead = take_ahead(ahead, out.depth * rows, weights);
    /* The first position fills the unused places. */
    for (; filled < OUT_POSITIONS; filled++) places[filled] = places[0];
    c->kernels->sum_outputs(&out, places, weights, bias);
}

/* Sum all positions of a tile over some channels, skipping taps that read only zeros, or with all
 * taps.  Returns the number of taps of all blocks of positions, and sums nothing without `data`. */
static int64_t sum_part(const struct direct_context *c, const struct direct_tile *tile,
                        const struct input_block *in, int64_t block, const struct sub *sub,
                        int all, const float *data, float *sums, int64_t pitch,
                        struct prefetched_weights *ahead) {
    struct stretches s;
    int64_t cost = 0, taps[NEAR_TAPS];
    for (s.begin[0] = 0; s.begin[0] < tile->shape[0]; s.begin[0] = s.end[0]) {
        s.end[0] = all ? tile->shape[0] : end_of_same(c, tile, 0, sub->q[0], s.begin[0]);
        for (s.begin[1] = 0; s.begin[1] < tile->shape[1]; s.begin[1] = s.end[1]) {
            s.end[1] = all ? tile->shape[1] : end_of_same(c, tile, 1, sub->q[1], s.begin[1]);
            for (s.begin[2] = 0; s.begin[2] < tile->shape[2]; s.begin[2] = s.end[2]) {
                s.end[2] = all ? tile->shape[2] : end_of_same(c, tile, 2, sub->q[2], s.begin[2]);
                const int64_t taken = all ? sub->taps : find_taps(c, tile, sub, &s, taps);
                int64_t count = tile->images;
                for (int i = 0; i < AXES; i++) count *= s.end[i] - s.begin[i];
                cost += divide_up(count, OUT_POSITIONS) * taken;
                if (data)
                    sum_positions(c, tile, in, block, sub, &s, taps, taken, data, sums, pitch,
                                  ahead);
            }
        }
    }
    return cost;
}

/* Write the sums of one vector of channels to the output. */
static void write_vector(const struct direct_context *c, const struct direct_tile *tile,
                         int64_t channel, int64_t qz, int64_t qy, float *sums) {
    const struct axis *a = c->plan->axes;
    const int64_t lanes = c->kernels->lanes, extent = c->run->extent;
    const int64_t width = tile->shape[2] * a[2].out_stride;
    const int64_t planes = tile->images * tile->shape[0];
    const int64_t step = c->run->output[0] * c->run->output[1] * extent;
    const int64_t runs = width == extent && a[1].out_stride == 1 ? 1 : tile->shape[1];
    const int64_t count = tile->shape[1] * width / runs;
    c->kernels->activate(&c->k->epilogue, sums, planes * runs * count * lanes);
    for (int64_t i = 0; i < planes * runs; i++, sums += count * lanes) {
        const int64_t plane = i / runs;
        const int64_t oz = (tile->first[0] + plane % tile->shape[0]) * a[0].out_stride + qz;
        const int64_t oy = (tile->first[1] + i % runs) * a[1].out_stride + qy;
        float *to = (float *)(void *)out_row(c, tile, plane / tile->shape[0], channel, oz, oy) +
                    tile->first[2] * a[2].out_stride;
        c->kernels->scatter_channels(sums, step, lanes, count, to);
        add_rows(c, (char *)to, step * c->kernels->size, lanes, count);
    }
}

void run_output_vectors(const struct direct_context *c, const struct direct_tile *tile,
                        const struct input_block *in, int64_t qz, int64_t qy, int64_t b) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t lanes = c->kernels->lanes, rows = c->packing->rows;
    const int64_t lines = c->plan->axes[2].out_stride;
    const int64_t block = tile->first_block + b;
    const int64_t count = tile->images * tile->shape[0] * tile->shape[1] * tile->shape[2];
    const int64_t pitch = count * lines * lanes;
    float *sums = (float *)(void *)tile->sums;
    if (!in->begins || !in->ends)
        sums += ((qz * subs_along(&c->plan->axes[1]) + qy) * t->blocks + b) * rows * lines *
                t->images * t->shape[0] * t->line;
    for (int64_t qx = 0; qx < lines; qx++) {
        const struct sub sub = sub_of(c, tile, qz, qy, qx);
        const int64_t channel_bytes = OUT_BLOCKS * rows * most(sub.taps, 1) * c->kernels->size;
        const int64_t fit = most(1, NEAR_WEIGHTS / channel_bytes);
        /* A single image has too few positions to divide them. */
        const int all = tile->images == 1 ||
                        sum_part(c, tile, in, block, &sub, 1, NULL, NULL, 0, NULL) <=
                        sum_part(c, tile, in, block, &sub, 0, NULL, NULL, 0, NULL);
        struct input_block part = *in;
        for (int64_t first = 0; first < in->count; first += fit) {
            part.first = in->first + first;
            part.count = least(fit, in->count - first);
            part.begins = in->begins && first == 0;
            part.ends = in->ends && first + fit >= in->count;
            struct prefetched_weights ahead = ahead_of(c, &sub, block, part.first + part.count,
                                          least(fit, in->count - first - part.count));
            sum_part(c, tile, &part, block, &sub, all,
                     (const float *)(const void *)tile->data + first * t->channel_stride,
                     sums + qx * lanes, pitch, &ahead);
        }
    }
    for (int64_t v = 0; v < OUT_VECTORS && in->ends; v++)
        write_vector(c, tile, block * rows + v * lanes, qz, qy, sums + v * pitch);
}
