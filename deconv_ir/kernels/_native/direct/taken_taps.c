/* Skips taps with which a tile reads only the zeros around the data, as with large dilations. Sums
 * begin with 0, so products with these zeros would not change them.
 *
 * Taps are skipped along the first two axes, where the used taps are neighbours.  On the last axis,
 * the positions of a vector read data with different taps.
 */
#include "direct/direct.h"

#include <string.h>

/* Tiles skip taps if a tap reads data from less than this share of an axis's positions. */
#define MOST_SEEN 0.875

/* The taps of an axis that read data from some positions: from `begin` to `end`. */
struct range {
    int64_t begin, end;
};

/* The positions, from `low` up to `high`, from which a tap reads data. */
static struct range seen_from(const struct axis *a, const struct tap_place *place, int64_t low,
                              int64_t high) {
    const int64_t extent = divide_up(a->data - a->residue - place->residue, a->in_stride);
    const int64_t begin = most(low, -place->offset);
    return (struct range){begin, most(begin, least(high, extent - place->offset))};
}

int plan_leaves_out(const struct kernel *k, const struct plan *plan) {
    const struct axis *a = plan->axes;
    int found = 0;
    if (k->problem.folded > 1 || k->codes) return 0;
    for (int i = 0; i < AXES; i++)
        if (a[i].patterns != 1 || a[i].out_stride != 1) return 0;
    for (int i = 0; i < AXES - 1; i++)
        for (int64_t t = 0; t < a[i].pattern_first[1]; t++) {
            const struct range seen = seen_from(&a[i], &a[i].places[t], a[i].first, a[i].last);
            const double all = (double)(a[i].last - a[i].first);
            found |= (double)(seen.end - seen.begin) < MOST_SEEN * all;
        }
    return found;
}

/* The share of the pairs of a tap and a tile of an axis in which the tap reads data. */
static double axis_share(const struct axis *a, int64_t positions) {
    const int64_t taps = a->pattern_first[1], tiles = divide_up(a->last - a->first, positions);
    double pairs = 0;
    for (int64_t t = 0; t < taps; t++) {
        const struct range seen = seen_from(a, &a->places[t], a->first, a->last);
        if (seen.begin < seen.end)
            pairs += (double)(divide_up(seen.end - a->first, positions) -
                              (seen.begin - a->first) / positions);
    }
    return taps && tiles ? pairs / ((double)taps * (double)tiles) : 1;
}

double taken_share(const struct plan *plan, const struct tiling *t) {
    if (!plan->leaves_out || t->depthwise) return 1;
    return axis_share(&plan->axes[0], t->shape[0]) * axis_share(&plan->axes[1], t->shape[1]);
}

void taken_sizes(const struct kernel *k, const struct plan *plan, struct tiling *t) {
    t->weights_bytes = t->offsets_bytes = 0;
    if ((!plan->leaves_out && !k->codes && !k->problem.longer) || t->vectors > 1) return;
    const int64_t step = least(t->channels, k->packing.channel_block);
    const int64_t subs = k->codes ? least(plan->axes[2].out_stride, SUBS_TOGETHER) : 1;
    const int64_t block = subs * k->packing.rows * step * plan->depth * k->kernels->size;
    t->weights_bytes =
        round_up(least(most(SECOND_LEVEL_SHARE, block), t->blocks * block), CACHE_LINE) +
        CACHE_LINE;
    if (!plan->leaves_out) return;
    t->offsets_bytes =
        round_up((t->channels * plan->depth + AHEAD) * (int64_t)sizeof(int32_t), CACHE_LINE);
}

/* The taps of an axis that a tile uses: from the first to the last that reads data. */
static struct range take_axis(const struct axis *a, int64_t first, int64_t positions) {
    struct range taken = {0, 0};
    for (int64_t t = 0; t < a->pattern_first[1]; t++) {
        const struct range seen = seen_from(a, &a->places[t], first, first + positions);
        if (seen.begin >= seen.end) continue;
        if (taken.begin == taken.end) taken.begin = t;
        taken.end = t + 1;
    }
    return taken;
}

/* Copy the taps of each channel that a tile uses; `size` bytes each. */
static void copy_taken(const struct taken_taps *taken, const char *from, int64_t channels,
                       int64_t size, char *to) {
    const int64_t bytes = taken->run * size;
    for (int64_t channel = 0; channel < channels; channel++, from += taken->taps * size)
        for (int64_t run = 0; run < taken->runs; run++, to += bytes)
            memcpy(to, from + (taken->first + run * taken->step) * size, (size_t)bytes);
}

void take_taps(const struct direct_context *c, struct direct_tile *tile) {
    const struct axis *a = c->plan->axes;
    const struct tiling *t = &c->plan->tiling;
    struct range taken[AXES - 1];
    int64_t taps[AXES];
    for (int i = 0; i < AXES; i++) {
        tile->low[i] = a[i].low;
        tile->high[i] = a[i].high;
        taps[i] = a[i].pattern_first[1];
    }
    tile->leaves_out = 0;
    if (!c->plan->leaves_out || t->depthwise) return;
    for (int i = 0; i < AXES - 1; i++) {
        taken[i] = take_axis(&a[i], tile->first[i], tile->shape[i]);
        tile->leaves_out |= taken[i].end - taken[i].begin < taps[i];
    }
    if (!tile->leaves_out) return;
    for (int i = 0; i < AXES - 1; i++)
        for (int64_t at = taken[i].begin; at < taken[i].end; at++) {
            const int64_t offset = a[i].places[at].offset;
            tile->low[i] = at == taken[i].begin ? offset : least(tile->low[i], offset);
            tile->high[i] = at == taken[i].begin ? offset : most(tile->high[i], offset);
        }
    const struct range z = taken[0], y = taken[1];
    tile->taken = (struct taken_taps){
        .taps = taps[0] * taps[1] * taps[2],
        .first = (z.begin * taps[1] + y.begin) * taps[2],
        .runs = z.end - z.begin,
        .run = (y.end - y.begin) * taps[2],
        .step = taps[1] * taps[2],
    };
    const int64_t count = t->channels * tile->taken.runs * tile->taken.run;
    copy_taken(&tile->taken, (const char *)c->plan->offsets[0], t->channels, sizeof(int32_t),
               (char *)tile->offsets);
    memset(tile->offsets + count, 0, AHEAD * sizeof(int32_t));
}

void take_weights(const struct direct_context *c, const struct direct_tile *tile,
                  const struct input_block *in, const struct sub *sub, int64_t block, char *to) {
    const int64_t size = c->kernels->size, rows = packing_rows(c->packing, block);
    const int64_t channel = packing_channel(c->packing, block);
    const int64_t at = sub->packed + tile->taken.taps * (c->problem->channels_in * channel +
                                                         in->first * rows);
    copy_taken(&tile->taken, (const char *)c->k->packed + at * size, in->count, rows * size, to);
}
