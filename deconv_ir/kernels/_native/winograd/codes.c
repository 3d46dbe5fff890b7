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
    return most(wino_unpacked_channels(k), 2 * MOST_ALTERNATING) * p->points * MAX_ROWS;
}

int64_t wino_chunk_size(const struct kernel *k, const struct wino_packing *p) {
    const int64_t places = rows_of(p) * (p->points * (int64_t)(sizeof(struct place) / sizeof(float)) + 1);
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

/* Find the places of all rows, [row][point], behind which their alignments are kept. */
static void places_make(const struct kernel *k, const struct wino_packing *p, const struct wino_layout *layout,
                        int64_t first_unit, float *out, struct place *places) {
    const int64_t last = p->axes[2].stride, rows = layout->count * last;
    int16_t *of_row = (int16_t *)(void *)(places + rows * p->points);
    for (int64_t row = 0; row < rows; row++) {
        int64_t q[AXES];
        sub_at(p, first_unit + row / last, row % last, q);
        of_row[row] = (int16_t)alignment_of(p, q);
    }
    for (int64_t alignment = 0; alignment < p->alignments; alignment++)
        for (int64_t point = 0; point < p->points; point++) {
            const int64_t all = layout->rows[alignment * p->points + point], depth = p->depth[point];
            const int64_t blocks = wino_blocks(all, k->kernels);
            int64_t line = 0, block = 0, begin = 0, end = blocks ? wino_block_first(all, blocks, 1) : 0;
            for (int64_t row = 0; row < rows; row++) {
                if (of_row[row] != alignment) continue;
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

/* A block of rows of the packed filter, in a chunk. */
struct chunk_block {
    const struct kernel *k;
    const struct wino_packing *p;
    const struct chunk_part *part;
    struct place *places;
    float *room, *transformed; /* scratch */
    int64_t group, block;
};

/* Find the places of the rows of a block, for a sub-convolution; NULL: it is not in the chunk. */
static void find_rows(const struct chunk_block *b, int64_t sub, struct place **rows) {
    const struct packing *d = &b->k->packing;
    const int64_t last = b->p->axes[2].stride;
    for (int64_t row = 0; row < packing_rows(d, b->block); row++) {
        const int64_t channel = packing_channel(d, b->block) + row;
        const int64_t unit = channel * b->p->subs + sub / last - b->part->first_unit;
        const int exists = unit >= 0 && unit < b->part->units;
        rows[row] = exists ? b->places + (unit * last + sub % last) * b->p->points : NULL;
    }
}

/* A sub-convolution of the packed filter, and its taps. */
struct packed_sub {
    int64_t packed, taps;
    struct wino_taps parts[MOST_PARTS];
};

static void sub_make(const struct chunk_block *b, int64_t sub, struct packed_sub *out) {
    const int64_t last = b->p->axes[2].stride;
    int64_t q[AXES];
    sub_at(b->p, sub / last, sub % last, q);
    out->packed = 0;
    for (int i = 0; i < AXES; i++)
        out->packed = out->packed * b->k->packing.subs[i].count + b->p->axes[i].sub[q[i]].packed;
    out->taps = wino_taps_of(b->k, out->packed);
    for (int64_t i = 0; i < b->p->parts; i++) wino_taps_make(&b->k->problem, b->p, q, i, &out->parts[i]);
}

/* Transform some channels of a sub-convolution, and copy them to their places. */
static void transform_sub(const struct chunk_block *b, const struct packed_sub *sub, int64_t first, int64_t count,
                          struct place *const *of_rows, int together) {
    const struct wino_packing *p = b->p;
    const int64_t rows = packing_rows(&b->k->packing, b->block);
    const float *weights = wino_block_weights(b->k, b->group, sub->packed, b->block, first, count, b->room);
    for (int64_t i = 0; i < p->parts; i++) {
        float *to[MOST_VALUES];
        for (int64_t point = 0; point < p->points; point++) {
            const int64_t before = p->at_depth[i][point];
            to[point] = together && before >= 0 ? of_rows[0][point].to + (before * p->channels + first) * rows
                                                : b->transformed + point * count * MAX_ROWS;
        }
        wino_transforms(b->k)->weights_of_block(&sub->parts[i], weights, rows, count, sub->taps * rows, to,
                                                together ? rows : MAX_ROWS);
        for (int64_t point = 0; point < p->points && !together; point++) {
            const int64_t before = p->at_depth[i][point];
            if (before >= 0) copy_point(to[point], count, of_rows, rows, point, before * p->channels + first);
        }
    }
}

/* Whether the rows of a block alternate between `subs` sub-convolutions, and fill whole blocks of rows at all points. */
static int do_alternate(const struct chunk_block *b, int64_t subs, struct place *const rows[][MAX_ROWS]) {
    const struct wino_packing *p = b->p;
    for (int64_t i = 0; i < subs * MAX_ROWS; i++) {
        const struct place *row = rows[i % subs][i / subs], *first = rows[i / MAX_ROWS * MAX_ROWS % subs]
                                                                        [i / MAX_ROWS * MAX_ROWS / subs];
        for (int64_t point = 0; point < p->points; point++)
            if (!row || !first || !row[point].to || row[point].to != first[point].to + i % MAX_ROWS ||
                row[point].step != MAX_ROWS)
                return 0;
    }
    return 1;
}

/* Transform some channels of `all` sub-convolutions, whose rows alternate. */
static void transform_alternating(const struct chunk_block *b, int64_t all, const struct packed_sub *subs, int64_t first,
                                  int64_t count, struct place *const rows[][MAX_ROWS]) {
    const struct wino_packing *p = b->p;
    const int64_t of_point = count * MAX_ROWS, step = p->points * of_point;
    for (int64_t sub = 0; sub < all; sub++) {
        float *to[MOST_VALUES];
        for (int64_t point = 0; point < p->points; point++)
            to[point] = b->transformed + sub * step + point * of_point;
        const float *weights = wino_block_weights(b->k, b->group, subs[sub].packed, b->block, first, count, b->room);
        wino_transforms(b->k)->weights_of_block(subs[sub].parts, weights, MAX_ROWS, count, subs[sub].taps * MAX_ROWS,
                                                to, MAX_ROWS);
    }
    for (int64_t point = 0; point < p->points; point++) {
        float *to[MOST_ALTERNATING];
        for (int64_t i = 0; i < all; i++)
            to[i] = rows[i * MAX_ROWS % all][i * MAX_ROWS / all][point].to + first * MAX_ROWS;
        wino_transforms(b->k)->interleave_rows(b->transformed + point * of_point, all, step, count, to);
    }
}

/* Transform a block of rows, if those of the `count` sub-convolutions of an alignment alternate; returns whether they
 * do. */
static int try_alternating(const struct chunk_block *b, int64_t count, const int64_t *numbers) {
    const int64_t some = most(wino_unpacked_channels(b->k) / MOST_ALTERNATING / 2 * 2, 2);
    struct place *rows[MOST_ALTERNATING][MAX_ROWS];
    struct packed_sub subs[MOST_ALTERNATING];
    if ((count != 2 && count != MOST_ALTERNATING) || b->p->parts > 1 ||
        packing_rows(&b->k->packing, b->block) != MAX_ROWS)
        return 0;
    for (int64_t i = 0; i < count; i++) find_rows(b, numbers[i], rows[i]);
    if (!do_alternate(b, count, rows)) return 0;
    for (int64_t i = 0; i < count; i++) sub_make(b, numbers[i], &subs[i]);
    for (int64_t first = 0; first < b->p->channels; first += some)
        transform_alternating(b, count, subs, first, least(some, b->p->channels - first), rows);
    return 1;
}

/* Transform a block of rows of one sub-convolution. */
static void transform_rows(const struct chunk_block *b, int64_t number) {
    const int64_t some = wino_unpacked_channels(b->k);
    struct place *rows[MAX_ROWS];
    struct packed_sub sub;
    find_rows(b, number, rows);
    sub_make(b, number, &sub);
    const int together = are_together(b->p, rows, packing_rows(&b->k->packing, b->block));
    for (int64_t first = 0; first < b->p->channels; first += some)
        transform_sub(b, &sub, first, least(some, b->p->channels - first), rows, together);
}

/* Find the sub-convolutions of an alignment: those up to MOST_ALTERNATING are listed.  Returns their number. */
static int64_t subs_of_alignment(const struct wino_packing *p, int64_t alignment, int64_t *numbers) {
    const int64_t last = p->axes[2].stride;
    int64_t count = 0;
    for (int64_t sub = 0; sub < p->subs * last; sub++) {
        int64_t q[AXES];
        sub_at(p, sub / last, sub % last, q);
        if (alignment_of(p, q) != alignment) continue;
        if (count < MOST_ALTERNATING) numbers[count] = sub;
        count++;
    }
    return count;
}

void wino_transform_codes(const struct kernel *k, const struct wino_packing *p, int64_t group, int64_t chunk,
                          float *scratch) {
    const struct chunk_part part = part_of(k, p, chunk);
    struct chunk_block b = {k, p, &part, NULL, scratch + weights_of_chunk(p), NULL, group, 0};
    b.transformed = b.room + wino_block_size(k);
    b.places = (struct place *)(void *)(b.transformed + transformed_size(k, p));
    places_make(k, p, wino_layout_of(p, chunk), part.first_unit, scratch, b.places);
    for (int64_t alignment = 0; alignment < p->alignments; alignment++) {
        int64_t numbers[MOST_ALTERNATING];
        const int64_t count = subs_of_alignment(p, alignment, numbers);
        for (b.block = part.first_block; b.block <= part.last_block; b.block++) {
            if (try_alternating(&b, count, numbers)) continue;
            for (int64_t sub = 0; sub < p->subs * p->axes[2].stride; sub++) {
                int64_t q[AXES];
                sub_at(p, sub / p->axes[2].stride, sub % p->axes[2].stride, q);
                if (alignment_of(p, q) == alignment) transform_rows(&b, sub);
            }
        }
    }
}
