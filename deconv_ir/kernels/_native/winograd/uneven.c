/* Windows whose data are too uneven for Winograd's transforms.
 *
 * A transform adds and subtracts the data of a window: outputs that depend only on small elements
 * get rounding errors of the size of the largest element.  docs/numerics.md has the bound.  Each
 * decision, and every sum, depends on the data of one window alone, not on tiles or threads.
 */
#include "winograd/tile.h"

#include <string.h>

static inline float level_of(int32_t bits) {
    float level;
    memcpy(&level, &bits, sizeof level);
    return level;
}

static inline int32_t bits_of(float level) {
    int32_t bits;
    memcpy(&bits, &level, sizeof bits);
    return bits;
}

/* Whether a window with this largest level is uneven for a result with `level`. */
static inline int is_uneven(int32_t largest, int32_t level) {
    return !(level_of(largest) <= LARGEST_LEVEL &&
             level_of(largest) <= MOST_UNEVEN * level_of(level));
}

struct window_place wino_place_of(const struct wino_context *c, const struct wino_tile *tile,
                                int64_t position) {
    const struct wino_axis *a = c->plan->packing->axes;
    struct window_place place;
    place.window[2] = position % tile->shape[2];
    position /= tile->shape[2];
    place.window[1] = position % tile->shape[1];
    position /= tile->shape[1];
    place.sublattice[2] = position % a[2].dilation;
    position /= a[2].dilation;
    place.sublattice[1] = position % a[1].dilation;
    position /= a[1].dilation;
    place.window[0] = position % tile->shape[0];
    position /= tile->shape[0];
    place.sublattice[0] = position % a[0].dilation;
    place.image = position / a[0].dilation;
    return place;
}

/* The index of a place among the positions of a tile. */
static int64_t position_of(const struct wino_context *c, const struct wino_tile *tile,
                           const struct window_place *place) {
    const struct wino_axis *a = c->plan->packing->axes;
    int64_t position = place->image * a[0].dilation + place->sublattice[0];
    position = position * tile->shape[0] + place->window[0];
    position = position * a[1].dilation + place->sublattice[1];
    position = position * a[2].dilation + place->sublattice[2];
    position = position * tile->shape[1] + place->window[1];
    return position * tile->shape[2] + place->window[2];
}

/* Levels of a row that are compared together: a bit for each. */
#define BITS 64
/* Maximum number of rows of data that a result reads. */
#define MOST_ROWS ((3 * MOST_AXIS_PARTS) * (3 * MOST_AXIS_PARTS))
/* Mark of a window on the list. */
#define LISTED INT32_MAX

/* A search for uneven windows, and for results that depend only on zeros. */
struct window_search {
    const struct wino_context *c;
    struct wino_tile *tile;
    const int32_t *levels; /* [image][z][y][x] */
    int32_t *windows;      /* [position]: its largest level, or LISTED */
    int32_t below;         /* levels of results that may be part of an uneven window */
    uint64_t *low;         /* [image][z][y][word]: a bit for each level that is at most `below` */
    int64_t words;         /* number of words of a row, plus one */
    int64_t sub[AXES];
    int64_t tap[AXES];     /* the data of the first tap, relative to the result */
    /* The distinct data positions that the windows of a place read. */
    int64_t seen[AXES][MOST_AXIS_SUBS * MOST_POINTS];
    int64_t seen_count[AXES];
    float *values; /* [channel]: results that depend only on zeros; NULL: not known yet */
};

static int64_t level_at(const struct window_search *s, int64_t image, const int64_t *at) {
    const int64_t *extent = s->c->plan->tiling.extent;
    return ((image * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
}

static void find_seen(struct window_search *s) {
    for (int i = 0; i < AXES; i++) {
        const struct wino_axis *a = &s->c->plan->packing->axes[i];
        for (int64_t origin = 0; origin < a->origins; origin++)
            for (int point = 0; point < a->points; point++) {
                const int64_t at = s->c->plan->origin[i][origin] + point * a->dilation;
                int64_t k = 0;
                while (k < s->seen_count[i] && s->seen[i][k] != at) k++;
                s->seen[i][k] = at;
                s->seen_count[i] = most(s->seen_count[i], k + 1);
            }
    }
}

/* The largest level of the data that windows of a place read; `low` levels are at most `below`. */
static int32_t largest_level(const struct window_search *s, const struct window_place *place,
                             int32_t below, int64_t *low) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    int64_t at[AXES];
    int32_t largest = 0;
    for (int i = 0; i < AXES; i++)
        at[i] = place->window[i] * axes[i].step + place->sublattice[i];
    const int32_t *levels = s->levels + level_at(s, place->image, at);
    const int64_t *extent = s->c->plan->tiling.extent;
    *low = 0;
    for (int64_t z = 0; z < s->seen_count[0]; z++)
        for (int64_t y = 0; y < s->seen_count[1]; y++) {
            const int32_t *row = levels + (s->seen[0][z] * extent[1] + s->seen[1][y]) * extent[2];
            for (int64_t x = 0; x < s->seen_count[2]; x++) {
                const int32_t level = row[s->seen[2][x]];
                largest = level > largest ? level : largest;
                *low += level <= below;
            }
        }
    return largest;
}

/* The bound of low levels in a window with this largest level. */
static int32_t low_level(int32_t largest) {
    return level_of(largest) <= LARGEST_LEVEL ? bits_of(level_of(largest) / MOST_UNEVEN)
                                              : INT32_MAX;
}

static void list_window(struct window_search *s, int64_t position) {
    s->windows[position] = LISTED;
    s->tile->uneven[s->tile->uneven_count++] = (int32_t)position;
}

/* Find the largest level of each window, and list the windows whose largest level is an outlier:
 * half of the other nonzero levels are low. */
static void look_at_windows(struct window_search *s) {
    const int64_t all = s->seen_count[0] * s->seen_count[1] * s->seen_count[2];
    for (int64_t position = 0; position < s->tile->positions; position++) {
        const struct window_place place = wino_place_of(s->c, s->tile, position);
        int64_t zeros, low;
        const int32_t largest = largest_level(s, &place, 0, &zeros);
        s->windows[position] = largest;
        if (zeros == all) continue;
        largest_level(s, &place, low_level(largest), &low);
        if (2 * (low - zeros) >= all - zeros) list_window(s, position);
    }
}

/* Find the output channels whose units, of one sub-convolution, a job has. */
void wino_channels_of(const struct wino_context *c, const struct wino_tile *tile,
                      const int64_t *sub,
                        int64_t *first, int64_t *last) {
    const struct wino_packing *p = c->plan->packing;
    const int64_t begin = tile->first_chunk * p->chunk_units;
    const int64_t end = least((tile->first_chunk + tile->chunks) * p->chunk_units, p->units);
    const int64_t of_channel = sub[0] * p->axes[1].stride + sub[1];
    *first = most(0, divide_up(begin - of_channel, p->subs));
    *last = divide_up(end - of_channel, p->subs);
}

/* A result that depends only on zeros is its bias, activated: Winograd's result has the rounding
 * errors of its neighbours. */
static void write_bias(struct window_search *s, const struct window_place *place,
                       const int64_t *output) {
    const struct wino_context *c = s->c;
    const struct wino_axis *axes = c->plan->packing->axes;
    const int64_t channels = c->problem->channels_out, *extent = c->run->output;
    const int64_t volume = extent[0] * extent[1] * extent[2];
    const enum element element = (enum element)c->problem->element;
    const float *biases = c->k->bias;
    int64_t at[AXES], first, last;
    for (int i = 0; i < AXES; i++) {
        at[i] = wino_output(&axes[i], s->sub[i], s->tile->first[i] + place->window[i],
                            place->sublattice[i], output[i]);
        if (at[i] < 0 || at[i] >= extent[i]) return;
    }
    if (!s->values) {
        /* Sums are not needed any more. */
        s->values = s->tile->sums;
        for (int64_t i = 0; i < channels; i++)
            s->values[i] = biases ? biases[s->tile->group * channels + i] : 0;
        c->kernels->activate(&c->k->epilogue, s->values, channels);
        if (c->streamed) finish_streams();
    }
    wino_channels_of(c, s->tile, s->sub, &first, &last);
    const int64_t image = s->tile->first_image + place->image;
    int64_t to = (image * c->problem->groups + s->tile->group) * channels + first;
    to = to * volume + (at[0] * extent[1] + at[1]) * extent[2] + at[2];
    for (int64_t i = first; i < last; i++, to += volume) {
        char *result = c->out + to * element_size(element);
        c->kernels->store(element, &s->values[i], 1, result);
        if (c->run->addition) add_to(c->run->addition, result, result, 1);
    }
}

/* Check a result of the sub-convolution, at position `at` in the tile. */
static void look_at(struct window_search *s, int64_t image, const int64_t *at, int32_t level) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    struct window_place place = {.image = image};
    int64_t output[AXES];
    for (int i = 0; i < AXES; i++) {
        const int64_t within = at[i] % axes[i].step;
        place.window[i] = at[i] / axes[i].step;
        place.sublattice[i] = within % axes[i].dilation;
        output[i] = within / axes[i].dilation;
    }
    const int64_t position = position_of(s->c, s->tile, &place);
    const int32_t window = s->windows[position];
    if (window == 0 || window == LISTED) return;
    if (level == 0 && level_of(window) <= LARGEST_LEVEL) write_bias(s, &place, output);
    else if (is_uneven(window, level)) list_window(s, position);
}

/* Mark the levels that are low. */
static void find_low(struct window_search *s) {
    const int64_t *extent = s->c->plan->tiling.extent;
    const int64_t rows = s->tile->images * extent[0] * extent[1];
    uint64_t *low = s->low;
    const int32_t *levels = s->levels;
    for (int64_t row = 0; row < rows; row++, levels += extent[2]) {
        for (int64_t first = 0; first < extent[2]; first += BITS) {
            const int64_t some = least(BITS, extent[2] - first);
            uint64_t word = 0;
            for (int64_t i = 0; i < some; i++)
                word |= (uint64_t)(levels[first + i] <= s->below) << i;
            *low++ = word;
        }
        *low++ = 0;
    }
}

/* Check the results of a row of one sub-convolution whose taps read only low levels: the level of a
 * result is the largest of these. */
static void look_along(struct window_search *s, int64_t image, int64_t z, int64_t y) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    const int64_t *extent = s->c->plan->tiling.extent;
    const int64_t count = s->tile->shape[2] * axes[2].step;
    const int32_t *row[MOST_ROWS];
    const uint64_t *low[MOST_ROWS];
    const int64_t taps = axes[2].sub[s->sub[2]].taps, dilation = axes[2].dilation;
    int rows = 0;
    for (int tz = 0; tz < axes[0].sub[s->sub[0]].taps; tz++)
        for (int ty = 0; ty < axes[1].sub[s->sub[1]].taps; ty++, rows++) {
            const int64_t at = (image * extent[0] + z + s->tap[0] + tz * axes[0].dilation) *
                                   extent[1] + y + s->tap[1] + ty * axes[1].dilation;
            row[rows] = s->levels + at * extent[2] + s->tap[2];
            low[rows] = s->low + at * s->words;
        }
    for (int64_t first = 0; first < count; first += BITS) {
        uint64_t found = count - first < BITS ? (UINT64_C(1) << (count - first)) - 1 : UINT64_MAX;
        for (int64_t tap = 0; tap < taps && found; tap++) {
            const int64_t at = first + s->tap[2] + tap * dilation, word = at / BITS;
            const int shift = (int)(at % BITS);
            for (int i = 0; i < rows; i++) {
                found &= low[i][word] >> shift |
                         (shift ? low[i][word + 1] << (BITS - shift) : 0);
            }
        }
        for (; found; found &= found - 1) {
            const int64_t at[AXES] = {z, y, first + __builtin_ctzll(found)};
            int32_t level = 0;
            for (int i = 0; i < rows; i++)
                for (int64_t tap = 0; tap < taps; tap++)
                    level = row[i][at[2] + tap * dilation] > level ? row[i][at[2] + tap * dilation]
                                                                 : level;
            look_at(s, image, at, level);
        }
    }
}

int64_t wino_search_size(const struct wino_tiling *t) {
    /* The list of windows, their levels, and the bits of low ones. */
    const int64_t rows = t->images * t->extent[0] * t->extent[1];
    return round_up(2 * t->positions + 2 * rows * (divide_up(t->extent[2], BITS) + 1),
                    CACHE_LINE / (int64_t)sizeof(float));
}

static void look_everywhere(struct window_search *s) {
    const struct wino_axis *a = s->c->plan->packing->axes;
    const int64_t subs = a[0].stride * a[1].stride * a[2].stride;
    for (int64_t sub = 0; sub < subs; sub++) {
        s->sub[0] = sub / a[2].stride / a[1].stride;
        s->sub[1] = sub / a[2].stride % a[1].stride;
        s->sub[2] = sub % a[2].stride;
        for (int i = 0; i < AXES; i++)
            s->tap[i] = s->c->plan->origin[i][a[i].sub[s->sub[i]].alignment] +
                        a[i].sub[s->sub[i]].first * a[i].dilation;
        for (int64_t image = 0; image < s->tile->images; image++)
            for (int64_t z = 0; z < s->tile->shape[0] * a[0].step; z++)
                for (int64_t y = 0; y < s->tile->shape[1] * a[1].step; y++)
                    look_along(s, image, z, y);
    }
}

void wino_find_uneven(const struct wino_context *c, struct wino_tile *tile, const float *fills,
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
    struct stretch seen[AXES];
    for (int i = 0; i < AXES; i++) seen[i] = wino_stretch(c, tile, i);
    int32_t largest = 0, smallest = INT32_MAX;
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = 0; z < seen[0].count; z++)
            for (int64_t y = 0; y < seen[1].count; y++) {
                const int32_t *row =
                    levels + ((image * t->extent[0] + seen[0].before + z) * t->extent[1] +
                              seen[1].before + y) * t->extent[2] + seen[2].before;
                for (int64_t x = 0; x < seen[2].count; x++) {
                    largest = row[x] > largest ? row[x] : largest;
                    smallest = row[x] < smallest ? row[x] : smallest;
                }
            }
    if (largest == 0 || !is_uneven(largest, smallest)) return;
    struct window_search s = {.c = c, .tile = tile, .levels = levels};
    s.windows = tile->uneven + t->positions;
    s.below = low_level(largest);
    s.low = (uint64_t *)(void *)(s.windows + t->positions);
    s.words = divide_up(t->extent[2], BITS) + 1;
    find_seen(&s);
    look_at_windows(&s);
    find_low(&s);
    look_everywhere(&s);
}
