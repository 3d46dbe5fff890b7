/* Filters of codes: jobs unpack and transform the weights of a chunk, in f32, since few digits of codes are lost.
 *
 * A block of rows of the packed filter is unpacked and transformed for some input channels, to
 * [point][channel][row], and copied to the places of the chunk's rows.
 */
#include "winograd/winograd.h"

#include <string.h>

/* The output channels of a chunk, and the blocks of rows that have them, up to `last`. */
struct chunk_part {
    int64_t first_unit, units, first_block, last_block;
};

static struct chunk_part part_of(const struct kernel *k, const struct wino_packing *p, int64_t chunk) {
    const struct packing *d = &k->packing;
    const int64_t first = chunk * p->chunk_units, units = least(p->chunk_units, p->units - first);
    struct chunk_part part = {first, units, 0, 0};
    while (packing_channel(d, part.first_block + 1) <= first / p->subs) part.first_block++;
    part.last_block = part.first_block;
    while (packing_channel(d, part.last_block + 1) <= (first + units - 1) / p->subs) part.last_block++;
    return part;
}

void wino_fetch_codes(const struct kernel *k, const struct wino_packing *p, int64_t group, int64_t chunk,
                      int64_t piece, int64_t pieces) {
    const struct chunk_part part = part_of(k, p, chunk);
    for (int64_t sub = 0; sub < wino_subs(&k->packing); sub++) {
        const int64_t begin = wino_packed_at(k, group, sub, part.first_block);
        const int64_t end = wino_packed_at(k, group, sub, part.last_block + 1);
        const struct fetched_codes codes = {(const char *)k->packed + packed_size(k, begin),
                                            packed_size(k, end - begin)};
        fetch_codes(codes, piece, pieces);
    }
}

/* The place of a row's weight of the first channel at a point, or NULL, and floats from channel to channel. */
struct place {
    float *to;
    int64_t step;
};

static int64_t rows_of(const struct wino_packing *p) { return p->chunk_units * p->axes[2].stride; }

static int64_t weights_of_chunk(const struct wino_packing *p) {
    int64_t weights = 0;
    for (int64_t i = 0; i < p->layout_count; i++) weights = most(weights, p->layouts[i].weights);
    return round_up(weights + p->alignments * p->points * CODES_GAP, MOST_LANES);
}

static int64_t transformed_size(const struct kernel *k, const struct wino_packing *p) {
    return wino_unpacked_channels(k) * p->points * MAX_ROWS;
}

int64_t wino_chunk_size(const struct kernel *k, const struct wino_packing *p) {
    const int64_t places = rows_of(p) * p->points * (int64_t)(sizeof(struct place) / sizeof(float));
    return weights_of_chunk(p) + wino_block_size(k) + transformed_size(k, p) + round_up(places, MOST_LANES);
}

/* The alignment of a sub-convolution. */
static int64_t alignment_of(const struct wino_packing *p, const int64_t q[AXES]) {
    int64_t alignment = 0;
    for (int i = 0; i < AXES; i++)
        alignment = alignment * p->axes[i].alignments + p->axes[i].sub[q[i]].alignment;
    return alignment;
}

static void sub_at(const struct wino_packing *p, int64_t unit, int64_t last, int64_t q[AXES]) {
    q[0] = unit % p->subs / p->axes[1].stride;
    q[1] = unit % p->axes[1].stride;
    q[2] = last;
}

/* Find the places of all rows, [row][point]. */
static void places_make(const struct kernel *k, const struct wino_packing *p, const struct wino_layout *layout,
                        int64_t first_unit, float *out, struct place *places) {
    const int64_t last = p->axes[2].stride, rows = layout->count * last;
    for (int64_t alignment = 0; alignment < p->alignments; alignment++)
        for (int64_t point = 0; point < p->points; point++) {
            const int64_t all = layout->rows[alignment * p->points + point], depth = p->depth[point];
            const int64_t blocks = wino_blocks(all, k->kernels);
            int64_t line = 0, block = 0, begin = 0, end = blocks ? wino_block_first(all, blocks, 1) : 0;
            for (int64_t row = 0; row < rows; row++) {
                int64_t q[AXES];
                sub_at(p, first_unit + row / last, row % last, q);
                if (p->alignments > 1 && alignment_of(p, q) != alignment) continue;
                struct place *place = &places[row * p->points + point];
                place->to = NULL;
                if (layout->line[row * p->points + point] < 0) continue;
                if (line == end) {
                    begin = end;
                    end = wino_block_first(all, blocks, ++block + 1);
                }
                place->to = out + begin * depth + (line - begin);
                place->step = end - begin;
                line++;
            }
            out += all * depth + CODES_GAP;
        }
}

/* Copy lanes of [channel][MAX_ROWS] to `count` contiguous rows. */
static inline void copy_lanes(const float *from, int64_t channels, const int64_t count, float *to, int64_t step) {
    for (int64_t i = 0; i < channels; i++, from += MAX_ROWS, to += step)
        memcpy(to, from, (size_t)count * sizeof *to);
}

/* Copy the weights at a point of the rows of a block to their places. */
static void copy_point(const float *from, int64_t channels, struct place *const *rows, int64_t count, int64_t point,
                       int64_t before) {
    for (int64_t row = 0, some; row < count; row += some) {
        const struct place place = rows[row] ? rows[row][point] : (struct place){NULL, 0};
        some = 1;
        if (!place.to) continue;
        while (row + some < count && rows[row + some] && rows[row + some][point].to == place.to + some &&
               rows[row + some][point].step == place.step)
            some++;
        float *to = place.to + before * place.step;
        if (some == MAX_ROWS) copy_lanes(from + row, channels, MAX_ROWS, to, place.step);
        else if (some == 1) copy_lanes(from + row, channels, 1, to, place.step);
        else copy_lanes(from + row, channels, some, to, place.step);
    }
}

/* Whether the rows of a block are contiguous at all points, and those after them are written later. */
static int are_together(const struct wino_packing *p, struct place *const *rows, int64_t count) {
    if (count < MAX_ROWS && p->parts > 1) return 0;
    for (int64_t row = 0; row < count; row++)
        for (int64_t point = 0; point < p->points; point++)
            if (!rows[row] || rows[row][point].to != rows[0][point].to + row || rows[row][point].step != count ||
                !rows[row][point].to)
                return 0;
    return 1;
}

void wino_transform_codes(const struct kernel *k, const struct wino_packing *p, int64_t group, int64_t chunk,
                          float *scratch) {
    const struct packing *d = &k->packing;
    const struct transforms *transforms =
        transforms_for((enum isa)k->problem.isa, (enum element)k->problem.element);
    const struct wino_layout *layout = wino_layout_of(p, chunk);
    const struct chunk_part part = part_of(k, p, chunk);
    const int64_t last = p->axes[2].stride, step = wino_unpacked_channels(k);
    float *room = scratch + weights_of_chunk(p), *transformed = room + wino_block_size(k);
    struct place *places = (struct place *)(void *)(transformed + transformed_size(k, p));
    places_make(k, p, layout, part.first_unit, scratch, places);
    for (int64_t sub = 0; sub < p->subs * last; sub++) {
        int64_t q[AXES], packed = 0;
        sub_at(p, sub / last, sub % last, q);
        for (int i = 0; i < AXES; i++) packed = packed * d->subs[i].count + p->axes[i].sub[q[i]].packed;
        for (int64_t block = part.first_block; block <= part.last_block; block++) {
            const int64_t rows = packing_rows(d, block);
            struct place *of_rows[MAX_ROWS];
            for (int64_t row = 0; row < rows; row++) {
                const int64_t unit = (packing_channel(d, block) + row) * p->subs + sub / last - part.first_unit;
                of_rows[row] = unit < 0 || unit >= part.units ? NULL : places + (unit * last + sub % last) * p->points;
            }
            const int together = are_together(p, of_rows, rows);
            for (int64_t first = 0; first < p->channels; first += step) {
                const int64_t count = least(step, p->channels - first);
                const float *weights = wino_block_weights(k, group, packed, block, first, count, room);
                for (int64_t i = 0; i < p->parts; i++) {
                    struct wino_taps taps;
                    wino_taps_make(&k->problem, p, q, i, &taps);
                    float *to[MOST_VALUES];
                    for (int64_t point = 0; point < p->points; point++) {
                        const int64_t before = p->at_depth[i][point] * p->channels + first;
                        to[point] = together && p->at_depth[i][point] >= 0 ? of_rows[0][point].to + before * rows
                                                                           : transformed + point * count * MAX_ROWS;
                    }
                    transforms->weights_of_block(&taps, weights, rows, count, wino_taps_of(k, packed) * rows, to,
                                                 together ? rows : MAX_ROWS);
                    for (int64_t point = 0; point < p->points && !together; point++) {
                        const int64_t before = p->at_depth[i][point];
                        if (before >= 0)
                            copy_point(to[point], count, of_rows, rows, point, before * p->channels + first);
                    }
                }
            }
        }
    }
}
