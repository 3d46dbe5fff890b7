/* Decisions that depend only on the weights of a layer: whether they are transformed, and the scale
 * of each channel of the data when windows are compared.
 *
 * A window's rounding errors are proportional to its largest tap: docs/numerics.md has the bounds.
 */
#include "winograd/winograd.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest magnitude of a weight of each input channel and row, for a block of rows of one
 * group's packed filter: [channel in][MAX_ROWS]. */
static void magnitudes(const struct kernel *k, int64_t group, int64_t block, float *largest, float *room) {
    const struct packing *d = &k->packing;
    const int64_t ins = k->problem.channels_in, outs = k->problem.channels_out;
    const int64_t rows = packing_rows(d, block);
    const struct transforms *transforms = wino_transforms(k);
    memset(largest, 0, (size_t)(ins * MAX_ROWS) * sizeof *largest);
    for (int64_t sub = 0; sub < d->subs[0].count * d->subs[1].count * d->subs[2].count; sub++) {
        const int64_t taps = (d->sub_start[sub + 1] - d->sub_start[sub]) / (ins * outs);
        for (int64_t first = 0, count; first < ins; first += count) {
            count = least(wino_unpacked_channels(k), ins - first);
            const float *from = wino_block_weights(k, group, sub, block, first, count, room);
            for (int64_t i = first; i < first + count; i++, from += taps * rows)
                transforms->raise_taps(from, taps, rows, largest + i * MAX_ROWS);
        }
    }
}

/* Computes a channel's largest share in an output channel: scaling a channel, and its weights by
 * the inverse, does not change levels. */
int wino_scales_make(const struct kernel *k, struct wino_packing *p) {
    const int64_t ins = k->problem.channels_in;
    /* Vectors may read beyond the last channel. */
    p->scales = calloc((size_t)(k->problem.groups * ins + MOST_LANES), sizeof *p->scales);
    float *largest = malloc((size_t)(ins * MAX_ROWS + wino_block_size(k)) * sizeof *largest);
    const struct transforms *transforms = wino_transforms(k);
    const int failed = !p->scales || !largest, judges = !problem_has_codes(&k->problem);
    for (int64_t group = 0; group < k->problem.groups && judges && !failed; group++) {
        float *scales = p->scales + group * ins;
        for (int64_t i = 0; i < ins; i++) scales[i] = 1;
        for (int64_t block = 0; block < k->packing.blocks; block++) {
            magnitudes(k, group, block, largest, largest + ins * MAX_ROWS);
            float whole[MAX_ROWS] = {0};
            transforms->raise_taps(largest, ins, MAX_ROWS, whole);
            for (int64_t i = 0; i < ins * MAX_ROWS; i++) {
                /* For a row of zeros the scale is NaN, which is not larger. */
                const float scale = largest[i] / whole[i % MAX_ROWS] * LARGEST_SCALE;
                float *to = scales + i / MAX_ROWS;
                *to = scale > *to ? scale : *to;
            }
        }
    }
    free(largest);
    return failed ? -1 : 0;
}

/* Finds the largest magnitude of each input channel's weights in a packed sub-convolution. */
static void largest_of_channels(const struct kernel *k, int64_t group, int64_t sub, int64_t taps,
                                float *largest, float *room) {
    const struct packing *d = &k->packing;
    const struct transforms *transforms = wino_transforms(k);
    for (int64_t block = 0; block < d->blocks; block++)
        for (int64_t first = 0, count; first < k->problem.channels_in; first += count) {
            const int64_t weights = taps * packing_rows(d, block);
            count = least(wino_unpacked_channels(k), k->problem.channels_in - first);
            const float *from = wino_block_weights(k, group, sub, block, first, count, room);
            for (int64_t i = first; i < first + count; i++, from += weights) {
                const float found = transforms->largest(from, weights);
                if (!(found <= largest[i])) largest[i] = found;
            }
        }
}

/* Computes the sum of magnitudes of each tap of a packed sub-convolution over the input channels,
 * [tap][channel out], relative to the largest of each input channel. */
static void sum_taps(const struct kernel *k, int64_t group, int64_t sub, int64_t taps,
                     const float *largest, float *sums, float *room) {
    const struct packing *d = &k->packing;
    const int64_t outs = k->problem.channels_out;
    const struct transforms *transforms = wino_transforms(k);
    memset(sums, 0, (size_t)(taps * outs) * sizeof *sums);
    for (int64_t block = 0; block < d->blocks; block++) {
        const int64_t rows = packing_rows(d, block);
        float *to = sums + packing_channel(d, block);
        for (int64_t first = 0, count; first < k->problem.channels_in; first += count) {
            count = least(wino_unpacked_channels(k), k->problem.channels_in - first);
            const float *from = wino_block_weights(k, group, sub, block, first, count, room);
            for (int64_t i = first; i < first + count; i++, from += taps * rows) {
                const float factor = 1 / fmaxf(largest[i], FLT_MIN);
                transforms->add_taps(from, taps, rows, factor, to, outs);
            }
        }
    }
}

/* Whether these sums have a similar size for each output channel. */
static int is_even(const float *sums, int64_t taps, int64_t outs) {
    for (int64_t o = 0; o < outs; o++) {
        float smallest = INFINITY, largest = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            smallest = fminf(smallest, sums[tap * outs + o]);
            largest = fmaxf(largest, sums[tap * outs + o]);
        }
        if (largest > MOST_UNEVEN_TAPS * smallest) return 0;
    }
    return 1;
}

#define MOST_DATA 255 /* of a code */

/* The bits by which the sums of any codes can be shifted, plus one; 0: they have more than 32. */
static int room_of_sums(const struct kernel *k) {
    const struct packing *d = &k->packing;
    const int64_t ins = k->problem.channels_in, outs = k->problem.channels_out;
    const int64_t subs = d->subs[0].count * d->subs[1].count * d->subs[2].count;
    int64_t largest = 0;
    for (int64_t group = 0; group < k->problem.groups; group++)
        for (int64_t sub = 0; sub < subs; sub++) {
            const int16_t *pair = (const int16_t *)k->packed +
                                  2 * (group * d->group_size + d->sub_start[sub]);
            const int64_t terms = (d->sub_start[sub + 1] - d->sub_start[sub]) / outs;
            for (int64_t block = 0; block < d->blocks; block++) {
                int64_t above[MAX_ROWS] = {0}, below[MAX_ROWS] = {0};
                for (int64_t i = 0; i < terms; i++)
                    for (int row = 0; row < packing_rows(d, block); row++, pair += 2) {
                        above[row] += (pair[0] > 0 ? pair[0] : 0) + (pair[1] > 0 ? pair[1] : 0);
                        below[row] -= (pair[0] < 0 ? pair[0] : 0) + (pair[1] < 0 ? pair[1] : 0);
                    }
                for (int row = 0; row < MAX_ROWS; row++)
                    largest = most(largest, most(above[row], below[row]));
            }
        }
    int room = 0;
    while (room < 31 && largest <= (INT32_MAX >> room) / MOST_DATA) room++;
    return ins > 0 ? room : 0;
}

int wino_takes_weights(const struct kernel *k) {
    const struct packing *d = &k->packing;
    const int64_t ins = k->problem.channels_in, outs = k->problem.channels_out;
    const int64_t subs = d->subs[0].count * d->subs[1].count * d->subs[2].count;
    if (problem_has_codes(&k->problem)) return room_of_sums(k);
    const int64_t sums = d->group_size / ins;
    float *largest = malloc((size_t)(ins + sums + wino_block_size(k)) * sizeof *largest);
    if (!largest) return OUT_OF_MEMORY;
    float *room = largest + ins + sums;
    int takes = 1;
    for (int64_t group = 0; group < k->problem.groups && takes; group++) {
        memset(largest, 0, (size_t)ins * sizeof *largest);
        for (int64_t sub = 0; sub < subs; sub++)
            largest_of_channels(k, group, sub, (d->sub_start[sub + 1] - d->sub_start[sub]) / (ins * outs),
                                largest, room);
        takes = wino_transforms(k)->largest(largest, ins) <= LARGEST_WEIGHT;
        for (int64_t sub = 0; sub < subs && takes; sub++) {
            const int64_t taps = (d->sub_start[sub + 1] - d->sub_start[sub]) / (ins * outs);
            if (taps == 1) continue; /* nothing to compare with */
            sum_taps(k, group, sub, taps, largest, largest + ins, room);
            takes = is_even(largest + ins, taps, outs);
        }
    }
    free(largest);
    return takes;
}
