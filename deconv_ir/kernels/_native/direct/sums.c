/* Direct sums: blocks of rows of sub-convolutions, over the channels of a tile.
 *
 * The GEMM of a sub-convolution; only the data of a tile are copied for it:
 *   M  output channels of a group, in blocks of the micro-kernel's rows
 *   K  input channels x taps of the sub-convolution, `step` channels at a time
 *   N  positions v of the tile, in vectors; a tap is a constant distance in the data
 */
#include "direct/direct.h"

#include <stdlib.h>
#include <string.h>

struct sub sub_of(const struct direct_context *c, const struct direct_tile *tile, int64_t qz,
                  int64_t qy, int64_t qx) {
    const struct axis *a = c->plan->axes;
    const struct packing *p = c->packing;
    const int64_t q[AXES] = {qz, qy, qx};
    struct sub sub = {{qz, qy, qx}, NULL, 1, 1, 1, 0};
    int64_t list = 0, packed = 0;
    for (int i = 0; i < AXES; i++) {
        const int64_t pattern = a[i].pattern_of[q[i]];
        list = list * a[i].patterns + pattern;
        packed = packed * p->subs[i].count + a[i].sub_of[q[i]];
        const int64_t taps = a[i].pattern_first[pattern + 1] - a[i].pattern_first[pattern];
        sub.taps *= taps;
        if (i < AXES - 1) sub.row_taps *= taps;
    }
    sub.offsets = c->plan->offsets[list];
    sub.packed = tile->group * p->group_size + p->sub_start[packed];
    sub.packed_taps = sub.taps;
    if (tile->leaves_out) {
        const int64_t taken = tile->taken.runs * tile->taken.run;
        sub.row_taps = sub.row_taps * taken / sub.taps;
        sub.taps = taken;
        sub.offsets = tile->offsets;
    }
    return sub;
}

#define MOST_JOINED 64 /* taps of joined groups whose zeros are left out */

/* Sum four rows of four joined groups, whose codes are in two pairs: rows 0 and 1 have weights for the first pair
 * alone, rows 2 and 3 for the second.  Returns 0, and sums nothing, for other rows. */
static int sum_joined(const struct direct_context *c, int rows, int64_t taps, const int32_t *offsets,
                      int64_t positions, const char *data, const char *packed, char *sums, int64_t row_stride) {
    const uint32_t(*weights)[4] = (const void *)packed;
    uint32_t own[2][MOST_JOINED][2];
    if (c->problem->element != I16X2 || c->problem->channels_in != 2 || c->k->bias || rows != 4 || positions < 2 ||
        taps > MOST_JOINED)
        return 0;
    for (int64_t pair = 0; pair < 2; pair++)
        for (int64_t tap = 0; tap < taps; tap++, weights++) {
            const uint32_t *ones = *weights + 2 * pair, *others = *weights + 2 * (1 - pair);
            if (others[0] | others[1]) return 0;
            memcpy(own[pair][tap], ones, sizeof own[pair][tap]);
        }
    for (int64_t pair = 0; pair < 2; pair++)
        sum_rows(c->kernels, 2, positions, taps, offsets + pair * taps, data, (const char *)own[pair],
                 sums + 2 * pair * row_stride * c->kernels->size, row_stride, 1, NULL, NULL);
    return 1;
}

/* The start of the sums of a block of rows. */
static char *sums_of(const struct direct_context *c, const struct sweep *sweep, int64_t sub_index,
                     int64_t block_index) {
    const struct packing *p = c->packing;
    const int64_t first = packing_channel(p, sweep->first_block);
    const int64_t place =
        sweep->together
            ? (packing_channel(p, sweep->first_block + block_index) - first) * sweep->row_stride
            : sub_index * sweep->sub_stride + block_index * sweep->block_stride;
    return sweep->sums + place * c->kernels->size;
}

/* An addend of sums in the output is added in registers. */
static const struct epilogue *epilogue_of(const struct direct_context *c,
                                          const struct sweep *sweep) {
    return sweep->together && c->run->addition ? &c->run->addition->epilogue : &c->k->epilogue;
}

#define FETCHED_AT_ONCE 16 /* cache lines: more would wait for each other */
#define FEW_STEPS 4        /* of positions of a micro-kernel */
#define SHORTEST_DEPTH 96  /* terms, so that loading and storing sums takes little time */

/* Like sum_rows(), while codes are fetched. */
static void sum_fetching(const struct microkernels *kernels, int rows, int64_t positions, int64_t depth,
                         const int32_t *offsets, const char *data, const char *weights, char *sums,
                         int64_t row_stride, int begins, const void *bias, const struct epilogue *finish,
                         struct fetched_codes codes) {
    const int64_t lines = divide_up(codes.bytes, CACHE_LINE * FETCHED_AT_ONCE);
    const int64_t pieces = most(1, least(lines, depth / SHORTEST_DEPTH));
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t first = i * depth / pieces, last = (i + 1) * depth / pieces;
        const int ends = i + 1 == pieces;
        fetch_codes(codes, i, pieces);
        sum_rows(kernels, rows, positions, last - first, offsets + first, data,
                 weights + first * rows * kernels->size, sums, row_stride, begins && i == 0, ends ? bias : NULL,
                 ends ? finish : NULL);
    }
}

/* Sum one block of rows of one sub-convolution at some positions, over some channels; `taken` has
 * its weights if they are copied, or is NULL. */
static void sum_block(const struct direct_context *c, const struct direct_tile *tile,
                      const struct input_block *in, const struct sweep *sweep, int64_t sub_index,
                      int64_t block_index, int64_t at, int64_t positions, const char *taken,
                      struct fetched_codes fetched) {
    const struct packing *p = c->packing;
    const int64_t size = c->kernels->size;
    const struct sub *sub = &sweep->subs[sub_index];
    const int64_t block = sweep->first_block + block_index, channel = packing_channel(p, block);
    const int rows = packing_rows(p, block);
    const int64_t packed =
        sub->packed + sub->packed_taps * (c->problem->channels_in * channel + in->first * rows);
    const char *bias = c->k->bias;
    if (bias) bias += (tile->group * c->problem->channels_out + channel) * size;
    const int64_t depth = in->count * sub->taps;
    const char *data = sweep->data + at * size;
    const char *weights = (const char *)c->k->packed + packed * size;
    if (taken) weights = taken;
    char *sums = sums_of(c, sweep, sub_index, block_index) + at * size;
    const int32_t *offsets = sweep->offsets ? sweep->offsets : sub->offsets;
    /* Functions of many instructions are faster on long rows: see activate_blocks(). */
    const struct epilogue *finish = epilogue_of(c, sweep);
    if (finish->activation == ACT_FUNCTION)
        finish = finish->addend ? &c->run->addition->alone : NULL;
    if (!in->ends) finish = NULL;
    if (!in->ends) bias = NULL;
    if (c->problem->longer && sub->taps)
        sum_parts(c, sub, block, in->count, positions, data, weights, sums, sweep->row_stride, in->begins,
                  bias, finish);
    else if (fetched.bytes)
        sum_fetching(c->kernels, rows, positions, depth, offsets, data, weights, sums, sweep->row_stride, in->begins,
                     bias, finish, fetched);
    else if (in->count != c->problem->channels_in ||
             !sum_joined(c, rows, sub->taps, offsets, positions, data, weights, sums, sweep->row_stride))
        sum_rows(c->kernels, rows, positions, depth, offsets, data, weights, sums, sweep->row_stride, in->begins,
                 bias, finish);
}

/* Unpack the weights of a block of rows of a sub-convolution, [channel][tap][row]. */
static void unpack_weights(const struct direct_context *c, const struct direct_tile *tile,
                           const struct input_block *in, const struct sub *sub, int64_t block,
                           char *to) {
    const int64_t packed = sub->packed + sub->packed_taps * c->problem->channels_in *
                                             packing_channel(c->packing, block);
    const int64_t taps = sub->packed_taps;
    unpack_codes(c->k, packed, tile->group, block, taps, in->first * taps, (in->first + in->count) * taps,
                 (float *)(void *)to);
}

static void copy_weights(const struct direct_context *c, const struct direct_tile *tile,
                         const struct input_block *in, const struct sub *sub, int64_t block, char *to) {
    if (c->problem->longer) part_weights(c, in, sub, block, to);
    else if (tile->leaves_out) take_weights(c, tile, in, sub, block, to);
    else unpack_weights(c, tile, in, sub, block, to);
}

/* The codes that are unpacked after those of a block of rows: `blocks` blocks later, or of the next `channels` input
 * channels, or of the next sweep. */
static struct fetched_codes next_codes(const struct direct_context *c, const struct input_block *all,
                                       const struct sweep *sweep, int64_t sub_index, int64_t block, int64_t blocks,
                                       int64_t first, int64_t channels) {
    const struct packing *p = c->packing;
    const struct sub *sub = &sweep->subs[sub_index];
    block += blocks;
    if (block >= sweep->blocks && first + channels < all->count) {
        block %= blocks;
        first += channels;
    } else if (block >= sweep->blocks) {
        first = 0;
    }
    block += sweep->first_block;
    if (block >= p->blocks) return (struct fetched_codes){NULL, 0};
    first += all->first;
    const int64_t rows = packing_rows(p, block), taps = sub->packed_taps;
    const int64_t packed = sub->packed + taps * (c->problem->channels_in * packing_channel(p, block) + first * rows);
    const int64_t count = least(channels, c->problem->channels_in - first);
    return (struct fetched_codes){(const char *)c->k->packed + packed_size(c->k, packed),
                                  packed_size(c->k, count * taps * rows)};
}

/* Sum some blocks of rows of some sub-convolutions.
 *
 * The data of a block of channels, at the positions of one micro-kernel, fit into the first-level
 * cache.  These data are multiplied by the weights of all sub-convolutions and blocks of rows
 * before the next positions are read.  Weights are read in order and can be prefetched; the data
 * are scattered over many cache lines and cannot. */
void sum_blocks(const struct direct_context *c, const struct direct_tile *tile,
                const struct input_block *all, const struct sweep *sweep) {
    const struct packing *p = c->packing;
    const int64_t size = c->kernels->size, lanes = c->kernels->lanes;
    const int64_t columns = c->kernels->columns[p->rows];
    int64_t taps = 1;
    for (int64_t i = 0; i < sweep->sub_count; i++) taps = most(taps, sweep->subs[i].taps);
    const int64_t fit = most(FIRST_LEVEL_SHARE / most(sweep->channel_bytes, 1), 1);
    const int64_t channels = least(most(all->count, 1), p->channel_block);
    const int several = all->count > channels;
    /* One block of rows reads its data once, so positions are not limited; and if all channels fit,
     * more positions may fit as well. */
    const int64_t alone = !several && sweep->blocks * sweep->sub_count == 1;
    const int64_t wide = several ? 1 : most(fit / channels, 1);
    const int64_t step = alone ? round_up(sweep->positions, lanes) : wide * columns * lanes;
    /* Unpacked weights that are used at few positions stay in the first-level cache. */
    const int64_t near = c->k->codes && sweep->positions <= FEW_STEPS * columns * lanes;
    const int64_t weights = most((near ? FIRST_LEVEL_SHARE * 3 / 2 : SECOND_LEVEL_SHARE) /
                                     (channels * taps * p->rows * size * sweep->sub_count), 1);
    const int copied = tile->leaves_out || c->k->codes || c->problem->longer;
    struct sweep part = *sweep;
    struct input_block in = *all;
    for (int64_t first = 0; first == 0 || first < all->count; first += channels) {
        in.first = all->first + first;
        in.count = least(channels, all->count - first);
        in.begins = all->begins && first == 0;
        in.ends = all->ends && first + channels >= all->count;
        part.data = sweep->data + first * sweep->channel_step * size;
        for (int64_t from = 0; from < sweep->blocks; from += weights) {
            const int64_t end = least(from + weights, sweep->blocks);
            const int64_t block_bytes = p->rows * in.count * taps * size;
            for (int64_t b = from; copied && b < end; b++)
                for (int64_t sub = 0; sub < sweep->sub_count; sub++)
                    copy_weights(c, tile, &in, &sweep->subs[sub], sweep->first_block + b,
                                 tile->weights + ((b - from) * sweep->sub_count + sub) * block_bytes);
            for (int64_t at = 0, some; at < sweep->positions; at += some) {
                some = least(step, sweep->positions - at);
                for (int64_t sub = 0; sub < sweep->sub_count; sub++)
                    for (int64_t b = from; b < end; b++) {
                        struct fetched_codes fetched = {NULL, 0};
                        if (c->k->codes) {
                            fetched = next_codes(c, all, sweep, sub, b, end - from, first, channels);
                            const int64_t begin = at * fetched.bytes / sweep->positions;
                            fetched.at += begin;
                            fetched.bytes = (at + some) * fetched.bytes / sweep->positions - begin;
                        }
                        sum_block(c, tile, &in, &part, sub, b, at, some,
                                  copied ? tile->weights + ((b - from) * sweep->sub_count + sub) *
                                                               block_bytes
                                         : NULL, fetched);
                    }
            }
        }
    }
}

void activate_blocks(const struct direct_context *c, const struct input_block *in,
                     const struct sweep *sweep) {
    const struct epilogue *epilogue = epilogue_of(c, sweep);
    if (!in->ends || epilogue->activation != ACT_FUNCTION) return;
    const int joined = sweep->row_stride == sweep->positions;
    for (int64_t sub = 0; sub < sweep->sub_count; sub++)
        for (int64_t b = 0; b < sweep->blocks; b++) {
            const int rows = packing_rows(c->packing, sweep->first_block + b);
            char *row = sums_of(c, sweep, sub, b);
            for (int r = 0; r < (joined ? 1 : rows); r++) {
                c->kernels->activate(epilogue, row, sweep->positions * (joined ? rows : 1));
                row += sweep->row_stride * c->kernels->size;
            }
        }
}
