/* Windows whose data are too uneven for minimal filtering, and their direct sums.
 *
 * A transform adds and subtracts the data of a window: its rounding errors are those of the
 * largest of them, in outputs of the window that see smaller ones only.  docs/numerics.md has the
 * bound.  What is decided here, and every sum, depends on the data of one window alone, not on
 * tiles or threads.
 */
#include "winograd/tile.h"

#include <string.h>

/* ------------------------------------------------------------- levels -- */

/* The second smallest of one to four levels, or the only one. */
static int32_t second_smallest(const int32_t *levels, int count) {
    int32_t smallest = levels[0], second = INT32_MAX;
    for (int i = 1; i < count; i++) {
        if (levels[i] < smallest) {
            second = smallest;
            smallest = levels[i];
        } else if (levels[i] < second) {
            second = levels[i];
        }
    }
    return count > 1 ? second : smallest;
}

/* The largest level of a window's data and the typical one: of rows, the second smallest, of
 * these in a plane, and so on.  Zeros and positions without data are left out. */
static void window_levels(const struct wino_axis *axes, const struct stretch *seen,
                          const int64_t *extent, const int32_t *levels, const int64_t *at,
                          int32_t *largest, int32_t *typical) {
    int32_t planes[MOST_POINTS], rows[MOST_POINTS], row[MOST_POINTS];
    int plane_count = 0;
    *largest = *typical = 0;
    for (int pz = 0; pz < axes[0].points; pz++) {
        const int64_t z = at[0] + pz * axes[0].spread;
        if (z < seen[0].before || z >= seen[0].before + seen[0].count) continue;
        int row_count = 0;
        for (int py = 0; py < axes[1].points; py++) {
            const int64_t y = at[1] + py * axes[1].spread;
            if (y < seen[1].before || y >= seen[1].before + seen[1].count) continue;
            const int32_t *line = levels + (z * extent[1] + y) * extent[2];
            int count = 0;
            for (int px = 0; px < axes[2].points; px++) {
                const int64_t x = at[2] + px * axes[2].spread;
                if (x < seen[2].before || x >= seen[2].before + seen[2].count) continue;
                if (line[x] > *largest) *largest = line[x];
                if (line[x] > 0) row[count++] = line[x];
            }
            if (count) rows[row_count++] = second_smallest(row, count);
        }
        if (row_count) planes[plane_count++] = second_smallest(rows, row_count);
    }
    if (plane_count) *typical = second_smallest(planes, plane_count);
}

static inline float level_of(int32_t bits) {
    float level;
    memcpy(&level, &bits, sizeof level);
    return level;
}

static inline int is_uneven(int32_t largest, int32_t typical) {
    if (largest == 0) return 0;
    return !(level_of(largest) <= LARGEST_LEVEL &&
             level_of(largest) <= MOST_UNEVEN * level_of(typical));
}

/* Whether a window is uneven for any of its origins. */
static int window_is_uneven(const struct context *c, const struct stretch *seen,
                            const int64_t *extent, const int32_t *levels, const int64_t *at) {
    const struct wino_axis *a = c->plan->packing->axes;
    for (int64_t oz = 0; oz < a[0].origins; oz++)
        for (int64_t oy = 0; oy < a[1].origins; oy++)
            for (int64_t ox = 0; ox < a[2].origins; ox++) {
                const int64_t from[AXES] = {at[0] + c->plan->origin[0][oz],
                                            at[1] + c->plan->origin[1][oy],
                                            at[2] + c->plan->origin[2][ox]};
                int32_t largest, typical;
                window_levels(a, seen, extent, levels, from, &largest, &typical);
                if (is_uneven(largest, typical)) return 1;
            }
    return 0;
}

/* The image, windows and sublattices of a position of a tile. */
struct place {
    int64_t image, window[AXES], sublattice[AXES];
};

static struct place place_of(const struct context *c, const struct tile *tile, int64_t position) {
    const struct wino_axis *a = c->plan->packing->axes;
    struct place place;
    place.window[2] = position % tile->box[2];
    position /= tile->box[2];
    place.window[1] = position % tile->box[1];
    position /= tile->box[1];
    place.sublattice[2] = position % a[2].spread;
    position /= a[2].spread;
    place.sublattice[1] = position % a[1].spread;
    position /= a[1].spread;
    place.window[0] = position % tile->box[0];
    position /= tile->box[0];
    place.sublattice[0] = position % a[0].spread;
    place.image = position / a[0].spread;
    return place;
}

/* The index of a place among the positions of a tile. */
static int64_t position_of(const struct context *c, const struct tile *tile,
                           const struct place *place) {
    const struct wino_axis *a = c->plan->packing->axes;
    int64_t position = place->image * a[0].spread + place->sublattice[0];
    position = position * tile->box[0] + place->window[0];
    position = position * a[1].spread + place->sublattice[1];
    position = position * a[2].spread + place->sublattice[2];
    position = position * tile->box[1] + place->window[1];
    return position * tile->box[2] + place->window[2];
}

/* What a search for uneven windows needs. */
struct search {
    const struct context *c;
    struct tile *tile;
    struct stretch seen[AXES];
    const int32_t *levels;
    char *marks; /* [position]: whether it was looked at */
};

/* Look at the windows that see the data at `at`, one axis after the other. */
static void look_around(const struct search *s, const int64_t *at, int axis,
                        struct place *place) {
    const struct wino_tiling *t = &s->c->plan->tiling;
    const struct wino_axis *axes = s->c->plan->packing->axes;
    if (axis == AXES) {
        const int64_t position = position_of(s->c, s->tile, place);
        if (s->marks[position]) return;
        s->marks[position] = 1;
        int64_t from[AXES];
        for (int i = 0; i < AXES; i++)
            from[i] = place->window[i] * axes[i].step + place->sublattice[i];
        const int64_t volume = t->extent[0] * t->extent[1] * t->extent[2];
        if (window_is_uneven(s->c, s->seen, t->extent, s->levels + place->image * volume, from))
            s->tile->uneven[s->tile->uneven_count++] = (int32_t)position;
        return;
    }
    const struct wino_axis *a = &axes[axis];
    for (int64_t origin = 0; origin < a->origins; origin++)
        for (int point = 0; point < a->points; point++) {
            const int64_t from =
                at[axis] - s->c->plan->origin[axis][origin] - point * a->spread;
            if (from < 0 || from % a->step >= a->spread) continue;
            place->window[axis] = from / a->step;
            place->sublattice[axis] = from % a->step;
            if (place->window[axis] < s->tile->box[axis])
                look_around(s, at, axis + 1, place);
        }
}

/* The levels of a row of data of one image. */
static const int32_t *row_of(const struct search *s, int64_t image, int64_t z, int64_t y) {
    const int64_t *extent = s->c->plan->tiling.extent;
    const struct stretch *seen = s->seen;
    return s->levels + ((image * extent[0] + seen[0].before + z) * extent[1] +
                        seen[1].before + y) * extent[2] + seen[2].before;
}

/* Look at the windows that see levels from `low` to `high`. */
static void look_for(const struct search *s, int32_t low, int32_t high) {
    const struct stretch *seen = s->seen;
    for (int64_t image = 0; image < s->tile->images; image++)
        for (int64_t z = 0; z < seen[0].count; z++)
            for (int64_t y = 0; y < seen[1].count; y++) {
                const int32_t *row = row_of(s, image, z, y);
                for (int64_t x = 0; x < seen[2].count; x++) {
                    if (row[x] < low || row[x] > high) continue;
                    const int64_t at[AXES] = {seen[0].before + z, seen[1].before + y,
                                              seen[2].before + x};
                    struct place place = {.image = image};
                    look_around(s, at, 0, &place);
                }
            }
}

static inline int32_t bits_of(float level) {
    int32_t bits;
    memcpy(&bits, &level, sizeof bits);
    return bits;
}

void wino_find_uneven(const struct context *c, struct tile *tile, const float *fills,
                      int64_t count) {
    const struct wino_tiling *t = &c->plan->tiling;
    int32_t *levels = (int32_t *)(void *)tile->levels;
    if (fills != tile->levels) memcpy(levels, fills, (size_t)t->level_size * sizeof *levels);
    for (int64_t fill = 1; fill < count; fill++) {
        const int32_t *others = (const int32_t *)(const void *)(fills + fill * t->level_size);
        for (int64_t i = 0; i < t->level_size; i++)
            levels[i] = others[i] > levels[i] ? others[i] : levels[i];
    }
    tile->uneven_count = 0;
    struct search s = {c, tile, {{0, 0, 0}}, levels, (char *)(tile->uneven + t->positions)};
    for (int i = 0; i < AXES; i++) s.seen[i] = wino_stretch(c, tile, i);
    int32_t largest = 0, smallest = INT32_MAX; /* but for zeros */
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = 0; z < s.seen[0].count; z++)
            for (int64_t y = 0; y < s.seen[1].count; y++) {
                const int32_t *row = row_of(&s, image, z, y);
                for (int64_t x = 0; x < s.seen[2].count; x++) {
                    const int32_t nonzero = row[x] > 0 ? row[x] : INT32_MAX;
                    largest = row[x] > largest ? row[x] : largest;
                    smallest = nonzero < smallest ? nonzero : smallest;
                }
            }
    if (!is_uneven(largest, smallest)) return;
    /* An uneven window has levels beyond the smallest by the factor, and others below the
     * largest: of these two kinds, those are looked for that are fewer. */
    const int32_t above = least(bits_of(MOST_UNEVEN * level_of(smallest)), bits_of(LARGEST_LEVEL));
    const int32_t below = bits_of(level_of(largest) / MOST_UNEVEN);
    int64_t high = 0, low = 0;
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = 0; z < s.seen[0].count; z++)
            for (int64_t y = 0; y < s.seen[1].count; y++) {
                const int32_t *row = row_of(&s, image, z, y);
                for (int64_t x = 0; x < s.seen[2].count; x++) {
                    high += row[x] >= above;
                    low += row[x] > 0 && row[x] <= below;
                }
            }
    memset(s.marks, 0, (size_t)tile->positions);
    if (level_of(largest) <= LARGEST_LEVEL && low < high) look_for(&s, 1, below);
    else look_for(&s, above, INT32_MAX);
}

/* --------------------------------------------------------- direct sums -- */

/* Where the data of a tap of one result are, in elements from its channel's first; or none. */
#define NO_DATA INT64_MIN

/* Some results of one phase, of all channels that a job has. */
struct piece {
    const struct context *c;
    const struct tile *tile;
    int64_t phase[AXES], taps[AXES], depth; /* taps; these of all channels */
    int64_t packed;                         /* weight at which the phase begins */
    int64_t count;                          /* results */
    const char **image;                     /* [result]: the data of its image, or NULL */
    char **out;                             /* [result]: where channel 0 of the group goes */
    int64_t *data;                          /* [tap][result] */
    float *panel, *sums;                    /* [tap of a channel][result], [channel][result] */
    char *raw;                              /* [result] */
};

static int64_t bytes_of_results(int64_t width) {
    return width * (int64_t)(sizeof(char *) + sizeof(char *) + sizeof(float));
}

int64_t wino_direct_size(const struct kernels *kernels, const struct wino_packing *p,
                         int64_t width) {
    const int64_t channels = p->units / p->phases + MAX_ROWS;
    const int64_t bytes = bytes_of_results(width) +
                          wino_most_taps(p) * width * (int64_t)sizeof(int64_t) +
                          (wino_go(kernels) + channels) * width * (int64_t)sizeof(float);
    return divide_up(bytes, (int64_t)sizeof(float)) + LINE;
}

/* The phase of a piece, and room for what it needs. */
static struct piece piece_make(const struct context *c, const struct tile *tile, int64_t phase,
                               void *scratch) {
    const struct wino_axis *a = c->plan->packing->axes;
    const struct packing *d = c->direct;
    const int64_t width = c->plan->tiling.width;
    struct piece p = {.c = c, .tile = tile, .depth = c->layer->channels_in};
    int64_t taps = 1, packed = 0;
    for (int i = AXES - 1; i >= 0; i--) {
        p.phase[i] = phase % a[i].stride;
        phase /= a[i].stride;
        p.taps[i] = a[i].phase[p.phase[i]].taps;
        taps *= p.taps[i];
    }
    for (int i = 0; i < AXES; i++)
        packed = packed * d->phases[i].count + a[i].phase[p.phase[i]].packed;
    p.depth *= taps;
    p.packed = tile->group * d->group_size + d->phase_start[packed];
    p.image = scratch;
    p.out = (char **)(p.image + width);
    p.data = (int64_t *)(void *)(p.out + width);
    p.panel = (float *)(void *)(p.data + taps * width);
    p.sums = p.panel + wino_go(c->kernels) * width;
    p.raw = (char *)(p.sums + (c->layer->channels_out + MAX_ROWS) * width);
    return p;
}

/* Where a tap of one axis finds the data of a result, or -1. */
static int64_t tap_position(const struct context *c, int axis, int64_t phase, int64_t tap,
                            int64_t output) {
    const struct phases *phases = &c->direct->phases[axis];
    const int64_t packed = c->plan->packing->axes[axis].phase[phase].packed;
    const struct tap *t = &phases->taps[phases->first[packed] + tap];
    const int64_t pad = c->run->pads_begin[axis], stride = phases->count;
    const int64_t at = c->layer->forward
                           ? output + c->layer->dilations[axis] * t->kernel - pad
                           : output / stride + floor_divide(phase + pad, stride) - t->shift;
    return at >= 0 && at < c->run->data[axis] ? at : -1;
}

/* Where the data of the results from `first` on are, and where these go. */
static void piece_locate(struct piece *p, int64_t first) {
    const struct context *c = p->c;
    const struct tile *tile = p->tile;
    const struct run *run = c->run;
    const struct wino_axis *a = c->plan->packing->axes;
    const int64_t width = c->plan->tiling.width;
    const int64_t size = element_size((enum element)c->layer->element);
    const int64_t outputs = a[0].outputs * a[1].outputs * a[2].outputs;
    p->count = least(width, tile->uneven_count * outputs - first);
    for (int64_t n = 0; n < width; n++) {
        p->image[n] = NULL;
        if (n >= p->count) continue;
        const struct place place = place_of(c, tile, tile->uneven[(first + n) / outputs]);
        int64_t j = (first + n) % outputs, at[AXES];
        int exists = 1;
        for (int i = AXES - 1; i >= 0; i--) {
            at[i] = wino_output(&a[i], p->phase[i], tile->first[i] + place.window[i],
                                place.sublattice[i], j % a[i].outputs);
            j /= a[i].outputs;
            exists &= at[i] >= 0 && at[i] < run->output[i];
        }
        if (!exists) continue;
        const int64_t image = tile->first_image + place.image, group = tile->group;
        p->image[n] = (const char *)c->arrays->data +
                      (image * run->image_step +
                       group * c->layer->channels_in * run->channel_step) * size;
        p->out[n] = (char *)c->arrays->out +
                    ((((image * c->layer->groups + group) * c->layer->channels_out) *
                          run->output[0] + at[0]) * run->output[1] + at[1]) *
                        run->output[2] * size + at[2] * size;
        int64_t *to = p->data + n;
        for (int64_t z = 0; z < p->taps[0]; z++)
            for (int64_t y = 0; y < p->taps[1]; y++)
                for (int64_t x = 0; x < p->taps[2]; x++, to += width) {
                    const int64_t from[AXES] = {tap_position(c, 0, p->phase[0], z, at[0]),
                                                tap_position(c, 1, p->phase[1], y, at[1]),
                                                tap_position(c, 2, p->phase[2], x, at[2])};
                    *to = NO_DATA;
                    if (from[0] >= 0 && from[1] >= 0 && from[2] >= 0)
                        *to = from[0] * run->step[0] + from[1] * run->step[1] +
                              from[2] * run->step[2];
                }
    }
}

/* The data of one tap of one channel. */
static void piece_copy(const struct piece *p, int64_t channel, const int64_t *data, float *to) {
    const struct context *c = p->c;
    const enum element element = (enum element)c->layer->element;
    const int64_t width = c->plan->tiling.width, size = element_size(element);
    const int64_t ahead = channel * c->run->channel_step;
    char *raw = element == F32 ? (char *)to : p->raw;
    memset(raw, 0, (size_t)(width * size));
    for (int64_t n = 0; n < p->count; n++) {
        if (!p->image[n] || data[n] == NO_DATA) continue;
        const char *from = p->image[n] + (ahead + data[n]) * size;
        if (size == 4) memcpy(raw + n * 4, from, 4);
        else memcpy(raw + n * 2, from, 2);
    }
    if (element != F32) c->kernels->load(element, raw, 1, width, to);
}

/* Sum a piece for the channels of some blocks of rows, of a fixed number of taps in a go. */
static void piece_sum(const struct piece *p, int64_t first_block, int64_t last_block) {
    const struct context *c = p->c;
    const struct packing *d = c->direct;
    const int64_t width = c->plan->tiling.width, step = wino_go(c->kernels);
    const int64_t taps = p->depth / c->layer->channels_in;
    const float *packed = (const float *)c->arrays->packed + p->packed, *bias = c->arrays->bias;
    if (bias) bias += p->tile->group * c->layer->channels_out;
    for (int64_t first = 0; first < p->depth; first += step) {
        const int64_t count = least(step, p->depth - first);
        const int ends = first + count == p->depth;
        for (int64_t k = 0; k < count; k++)
            piece_copy(p, (first + k) / taps, p->data + (first + k) % taps * width,
                       p->panel + k * width);
        for (int64_t block = first_block; block < last_block; block++) {
            const int rows = packing_rows(d, block);
            const int64_t channel = packing_channel(d, block);
            c->kernels->table[rows][width / c->kernels->lanes](
                count, c->plan->offsets, p->panel, packed + p->depth * channel + first * rows,
                p->sums + channel * width, width, 1, first == 0,
                ends && bias ? bias + channel : NULL, ends ? c->epilogue : NULL);
        }
    }
}

struct uneven {
    const struct context *context;
    const struct tile *tile;
};

static int64_t pieces_of_phase(const struct context *c, const struct tile *tile) {
    const struct wino_axis *a = c->plan->packing->axes;
    return divide_up(tile->uneven_count * a[0].outputs * a[1].outputs * a[2].outputs,
                     c->plan->tiling.width);
}

static void sum_piece(void *argument, int64_t index, void *scratch) {
    const struct uneven *uneven = argument;
    const struct context *c = uneven->context;
    const struct tile *tile = uneven->tile;
    const struct wino_packing *packing = c->plan->packing;
    const struct packing *d = c->direct;
    const int64_t width = c->plan->tiling.width, pieces = pieces_of_phase(c, tile);
    const enum element element = (enum element)c->layer->element;
    /* The thread's own, where a tile has its sums. */
    const int64_t away = (char *)scratch - (char *)tile->block;
    struct piece p = piece_make(c, tile, index / pieces, (char *)tile->zeros + away);
    piece_locate(&p, index % pieces * width);
    /* The units that the job has: other jobs have the others. */
    const int64_t begin = tile->first_chunk * packing->chunk_units;
    const int64_t end =
        least((tile->first_chunk + tile->chunks) * packing->chunk_units, packing->units);
    const int64_t of_channel = p.phase[0] * packing->axes[1].stride + p.phase[1];
    const int64_t first = most(0, divide_up(begin - of_channel, packing->phases));
    const int64_t last = divide_up(end - of_channel, packing->phases);
    if (first >= last) return;
    int64_t first_block = 0, last_block = 0;
    while (packing_channel(d, first_block + 1) <= first) first_block++;
    while (packing_channel(d, last_block) < last) last_block++;
    piece_sum(&p, first_block, last_block);
    const int64_t volume = c->run->output[0] * c->run->output[1] * c->run->output[2];
    for (int64_t n = 0; n < p.count; n++)
        for (int64_t channel = first; p.image[n] && channel < last; channel++)
            c->kernels->store(element, p.sums + channel * width + n, 1,
                              p.out[n] + channel * volume * element_size(element));
}

void wino_sum_uneven(const struct context *c, const struct tile *tile, void *scratch) {
    const struct wino_axis *a = c->plan->packing->axes;
    struct uneven uneven = {c, tile};
    /* What went past the caches must not come after what is written over it. */
    if (c->streamed) finish_streams();
    parallel_pieces(sum_piece, &uneven,
                    a[0].stride * a[1].stride * a[2].stride * pieces_of_phase(c, tile), scratch);
}
