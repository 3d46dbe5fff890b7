/* Windows whose data are too uneven for Winograd's transforms, and their direct sums.
 *
 * A transform adds and subtracts the data of a window: its rounding errors are those of the
 * largest of them, in outputs of the window that see smaller ones only.  docs/numerics.md has the
 * bound.  What is decided here, and every sum, depends on the data of one window alone, not on
 * tiles or threads.
 */
#include "winograd/tile.h"

#include <string.h>

/* ------------------------------------------------------------- levels -- */

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

/* Whether a window that has data of the largest level is uneven for one of its results. */
static inline int is_uneven(int32_t largest, int32_t level) {
    return !(level_of(largest) <= LARGEST_LEVEL &&
             level_of(largest) <= MOST_UNEVEN * level_of(level));
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
    place.sublattice[2] = position % a[2].dilation;
    position /= a[2].dilation;
    place.sublattice[1] = position % a[1].dilation;
    position /= a[1].dilation;
    place.window[0] = position % tile->box[0];
    position /= tile->box[0];
    place.sublattice[0] = position % a[0].dilation;
    place.image = position / a[0].dilation;
    return place;
}

/* The index of a place among the positions of a tile. */
static int64_t position_of(const struct context *c, const struct tile *tile,
                           const struct place *place) {
    const struct wino_axis *a = c->plan->packing->axes;
    int64_t position = place->image * a[0].dilation + place->sublattice[0];
    position = position * tile->box[0] + place->window[0];
    position = position * a[1].dilation + place->sublattice[1];
    position = position * a[2].dilation + place->sublattice[2];
    position = position * tile->box[1] + place->window[1];
    return position * tile->box[2] + place->window[2];
}

/* Levels of a row that are compared together: a bit for each. */
#define BITS 64
/* Rows of data that a result sees. */
#define MOST_ROWS ((3 * MOST_AXIS_PARTS) * (3 * MOST_AXIS_PARTS))
/* Windows on the list. */
#define LISTED INT32_MAX

/* A search for uneven windows, and for results that see only zeros. */
struct search {
    const struct context *c;
    struct tile *tile;
    const int32_t *levels; /* [image][z][y][x] */
    int32_t *windows;      /* [position]: its largest level, 0 before it is known, or LISTED */
    int32_t below;         /* levels of results that may be part of an uneven window */
    uint64_t *low;         /* [image][z][y][word]: bits of the levels that are no higher */
    int64_t words;         /* of a row, and one more */
    int64_t sub[AXES];
    int64_t tap[AXES];     /* where the first tap finds data: from the result on */
    /* Where the windows of a position have data, once each. */
    int64_t seen[AXES][MOST_AXIS_SUBS * MOST_POINTS];
    int64_t seen_count[AXES];
    float *values; /* [channel]: of results that see only zeros; NULL before they are known */
};

static int64_t level_at(const struct search *s, int64_t image, const int64_t *at) {
    const int64_t *extent = s->c->plan->tiling.extent;
    return ((image * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
}

static void find_seen(struct search *s) {
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

/* The largest level of the data that the windows of a place see. */
static int32_t largest_level(const struct search *s, const struct place *place) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    int64_t at[AXES];
    int32_t largest = 0;
    for (int i = 0; i < AXES; i++)
        at[i] = place->window[i] * axes[i].step + place->sublattice[i];
    const int32_t *levels = s->levels + level_at(s, place->image, at);
    const int64_t *extent = s->c->plan->tiling.extent;
    for (int64_t z = 0; z < s->seen_count[0]; z++)
        for (int64_t y = 0; y < s->seen_count[1]; y++) {
            const int32_t *row = levels + (s->seen[0][z] * extent[1] + s->seen[1][y]) * extent[2];
            for (int64_t x = 0; x < s->seen_count[2]; x++)
                largest = row[s->seen[2][x]] > largest ? row[s->seen[2][x]] : largest;
        }
    return largest;
}

/* The output channels of a sub-convolution of which a job has units. */
static void channels_of(const struct context *c, const struct tile *tile, const int64_t *sub,
                        int64_t *first, int64_t *last) {
    const struct wino_packing *p = c->plan->packing;
    const int64_t begin = tile->first_chunk * p->chunk_units;
    const int64_t end = least((tile->first_chunk + tile->chunks) * p->chunk_units, p->units);
    const int64_t of_channel = sub[0] * p->axes[1].stride + sub[1];
    *first = most(0, divide_up(begin - of_channel, p->subs));
    *last = divide_up(end - of_channel, p->subs);
}

/* A result that sees only zeros is its bias, activated: Winograd left it the rounding
 * errors of its neighbours. */
static void write_bias(struct search *s, const struct place *place, const int64_t *output) {
    const struct context *c = s->c;
    const struct wino_axis *axes = c->plan->packing->axes;
    const int64_t channels = c->layer->channels_out, *extent = c->run->output;
    const int64_t volume = extent[0] * extent[1] * extent[2];
    const enum element element = (enum element)c->layer->element;
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
        c->transforms->activate(&c->k->epilogue, s->values, channels);
        if (c->streamed) finish_streams();
    }
    channels_of(c, s->tile, s->sub, &first, &last);
    const int64_t image = s->tile->first_image + place->image;
    int64_t to = (image * c->layer->groups + s->tile->group) * channels + first;
    to = to * volume + (at[0] * extent[1] + at[1]) * extent[2] + at[2];
    for (int64_t i = first; i < last; i++, to += volume)
        c->kernels->store(element, &s->values[i], 1,
                          c->out + to * element_size(element));
}

/* Look at a result of the sub-convolution, `at` in the tile. */
static void look_at(struct search *s, int64_t image, const int64_t *at, int32_t level) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    struct place place = {.image = image};
    int64_t output[AXES];
    for (int i = 0; i < AXES; i++) {
        const int64_t within = at[i] % axes[i].step;
        place.window[i] = at[i] / axes[i].step;
        place.sublattice[i] = within % axes[i].dilation;
        output[i] = within / axes[i].dilation;
    }
    const int64_t position = position_of(s->c, s->tile, &place);
    int32_t *window = &s->windows[position];
    if (*window == LISTED) return;
    if (*window == 0) *window = largest_level(s, &place);
    if (*window == 0) return;
    if (level == 0 && level_of(*window) <= LARGEST_LEVEL) {
        write_bias(s, &place, output);
    } else if (is_uneven(*window, level)) {
        *window = LISTED;
        s->tile->uneven[s->tile->uneven_count++] = (int32_t)position;
    }
}

/* Mark the levels that are low. */
static void find_low(struct search *s) {
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

/* Look at the results of a row of one sub-convolution whose taps see low levels only: the level of
 * a result is the largest of these. */
static void look_along(struct search *s, int64_t image, int64_t z, int64_t y) {
    const struct wino_axis *axes = s->c->plan->packing->axes;
    const int64_t *extent = s->c->plan->tiling.extent;
    const int64_t count = s->tile->box[2] * axes[2].step;
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
                    LINE / (int64_t)sizeof(float));
}

static void look_everywhere(struct search *s) {
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
            for (int64_t z = 0; z < s->tile->box[0] * a[0].step; z++)
                for (int64_t y = 0; y < s->tile->box[1] * a[1].step; y++)
                    look_along(s, image, z, y);
    }
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
    struct search s = {.c = c, .tile = tile, .levels = levels};
    s.windows = tile->uneven + t->positions;
    s.below = level_of(largest) <= LARGEST_LEVEL ? bits_of(level_of(largest) / MOST_UNEVEN)
                                                 : INT32_MAX;
    s.low = (uint64_t *)(void *)(s.windows + t->positions);
    s.words = divide_up(t->extent[2], BITS) + 1;
    memset(s.windows, 0, (size_t)tile->positions * sizeof *s.windows);
    find_seen(&s);
    find_low(&s);
    look_everywhere(&s);
}

/* --------------------------------------------------------- direct sums -- */

/* The GEMM of a piece: M output channels of a group, K input channels x taps, N results of one
 * sub-convolution, wherever they are, as many as a panel is wide. */

/* Where the data of a tap of one result are, in elements from its channel's first; or none. */
#define NO_DATA INT64_MIN

/* Some results of one sub-convolution, of all channels that a job has. */
struct piece {
    const struct tile *tile;
    int64_t sub[AXES], taps[AXES], depth; /* taps; these of all channels */
    int64_t packed;                         /* weight at which the sub-convolution begins */
    int64_t count;                          /* results */
    const char **image;                     /* [result]: the data of its image, or NULL */
    char **out;                             /* [result]: where channel 0 of the group goes */
    int64_t *data;                          /* [tap][result] */
    float *panel, *sums;                    /* [tap of a channel][result], [channel][result] */
    char *raw;                              /* [result] */
};

int64_t wino_direct_size(const struct kernels *kernels, const struct wino_packing *p,
                         int64_t width) {
    const int64_t channels = p->units / p->subs + MAX_ROWS;
    const int64_t wide = 2 + wino_most_taps(p), narrow = 1 + wino_go(kernels) + channels;
    return width * (2 * wide + narrow) + LINE; /* pointers and offsets are two floats */
}

/* The sub-convolution of a piece, and room for what it needs. */
static struct piece piece_make(const struct tile *tile, int64_t sub, void *scratch) {
    const struct context *c = tile->c;
    const struct wino_axis *a = c->plan->packing->axes;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width;
    struct piece p = {.tile = tile, .depth = c->layer->channels_in};
    int64_t taps = 1, packed = 0;
    for (int i = AXES - 1; i >= 0; i--) {
        p.sub[i] = sub % a[i].stride;
        sub /= a[i].stride;
        p.taps[i] = a[i].sub[p.sub[i]].taps;
        taps *= p.taps[i];
    }
    for (int i = 0; i < AXES; i++)
        packed = packed * d->subs[i].count + a[i].sub[p.sub[i]].packed;
    p.depth *= taps;
    p.packed = tile->group * d->group_size + d->sub_start[packed];
    p.image = scratch;
    p.out = (char **)(p.image + width);
    p.data = (int64_t *)(void *)(p.out + width);
    p.panel = (float *)(void *)(p.data + taps * width);
    p.sums = p.panel + wino_go(c->kernels) * width;
    p.raw = (char *)(p.sums + (c->layer->channels_out + MAX_ROWS) * width);
    return p;
}

/* Where a tap of one axis finds the data of a result, or -1. */
static int64_t tap_position(const struct context *c, int axis, int64_t sub, int64_t tap,
                            int64_t output) {
    const struct subs *subs = &c->k->packing.subs[axis];
    const int64_t packed = c->plan->packing->axes[axis].sub[sub].packed;
    const struct tap *t = &subs->taps[subs->first[packed] + tap];
    const int64_t pad = c->run->pads_begin[axis], stride = subs->count;
    const int64_t at = c->layer->forward
                           ? output + c->layer->dilations[axis] * t->kernel - pad
                           : output / stride + floor_divide(sub + pad, stride) - t->shift;
    return at >= 0 && at < c->run->data[axis] ? at : -1;
}

/* Where the data of the results from `first` on are, and where these go. */
static void piece_locate(struct piece *p, int64_t first) {
    const struct context *c = p->tile->c;
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
            at[i] = wino_output(&a[i], p->sub[i], tile->first[i] + place.window[i],
                                place.sublattice[i], j % a[i].outputs);
            j /= a[i].outputs;
            exists &= at[i] >= 0 && at[i] < run->output[i];
        }
        if (!exists) continue;
        const int64_t image = tile->first_image + place.image, group = tile->group;
        p->image[n] = c->data +
                      (image * run->image_step +
                       group * c->layer->channels_in * run->channel_step) * size;
        p->out[n] = c->out +
                    ((((image * c->layer->groups + group) * c->layer->channels_out) *
                          run->output[0] + at[0]) * run->output[1] + at[1]) *
                        run->output[2] * size + at[2] * size;
        int64_t *to = p->data + n;
        for (int64_t z = 0; z < p->taps[0]; z++)
            for (int64_t y = 0; y < p->taps[1]; y++)
                for (int64_t x = 0; x < p->taps[2]; x++, to += width) {
                    const int64_t from[AXES] = {tap_position(c, 0, p->sub[0], z, at[0]),
                                                tap_position(c, 1, p->sub[1], y, at[1]),
                                                tap_position(c, 2, p->sub[2], x, at[2])};
                    *to = NO_DATA;
                    if (from[0] >= 0 && from[1] >= 0 && from[2] >= 0)
                        *to = from[0] * run->step[0] + from[1] * run->step[1] +
                              from[2] * run->step[2];
                }
    }
}

/* The data of one tap of one channel. */
static void piece_copy(const struct piece *p, int64_t channel, const int64_t *data, float *to) {
    const struct context *c = p->tile->c;
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
    const struct context *c = p->tile->c;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width, step = wino_go(c->kernels);
    const int64_t taps = p->depth / c->layer->channels_in;
    const float *packed = (const float *)c->k->packed + p->packed, *bias = c->k->bias;
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
                ends && bias ? bias + channel : NULL, ends ? &c->k->epilogue : NULL);
        }
    }
}

static int64_t pieces_of_sub(const struct tile *tile) {
    const struct wino_axis *a = tile->c->plan->packing->axes;
    return divide_up(tile->uneven_count * a[0].outputs * a[1].outputs * a[2].outputs,
                     tile->c->plan->tiling.width);
}

static void sum_piece(void *argument, int64_t index, void *scratch) {
    const struct tile *tile = argument;
    const struct context *c = tile->c;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width, pieces = pieces_of_sub(tile);
    const enum element element = (enum element)c->layer->element;
    /* The thread's own, where a tile has its sums. */
    const int64_t away = (char *)scratch - (char *)tile->block;
    struct piece p = piece_make(tile, index / pieces, (char *)tile->zeros + away);
    piece_locate(&p, index % pieces * width);
    int64_t first, last; /* other jobs have the other channels */
    channels_of(c, tile, p.sub, &first, &last);
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

void wino_sum_uneven(struct tile *tile, void *scratch) {
    const struct wino_axis *a = tile->c->plan->packing->axes;
    /* What went past the caches must not come after what is written over it. */
    if (tile->c->streamed) finish_streams();
    parallel_pieces(sum_piece, tile,
                    a[0].stride * a[1].stride * a[2].stride * pieces_of_sub(tile), scratch);
}
