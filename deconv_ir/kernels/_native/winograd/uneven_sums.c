/* Direct sums of the windows whose data are too uneven for Winograd's transforms.
 *
 * The GEMM of a piece:
 *   M  output channels of a group
 *   K  input channels x taps
 *   N  results of one sub-convolution, at any positions, up to the width of a panel
 */
#include "winograd/tile.h"

#include <string.h>

/* The offset of a tap's data for one result, in elements from its channel's first, or this
 * value. */
#define NO_DATA INT64_MIN

/* Some results of one sub-convolution, for all channels of a job. */
struct piece {
    const struct wino_tile *tile;
    int64_t sub[AXES], taps[AXES], depth; /* depth: taps of all channels */
    int64_t packed;                         /* first weight of the sub-convolution */
    int64_t count;                          /* results */
    const char **image;                     /* [result]: the data of its image, or NULL */
    char **out;                             /* [result]: address of channel 0 of the group */
    int64_t *data;                          /* [tap][result] */
    float *panel, *sums;                    /* [tap of a channel][result], [channel][result] */
    char *raw;                              /* [result] */
    float *weights;                         /* [tap][row], if the filter has codes */
};

int64_t wino_direct_size(const struct kernel *k, const struct wino_packing *p, int64_t width) {
    const int64_t channels = p->units / p->subs + MAX_ROWS;
    const int64_t wide = 2 + wino_most_taps(p), narrow = 1 + wino_go(k->kernels) + channels;
    const int64_t weights = k->codes ? wino_go(k->kernels) * MAX_ROWS + MOST_LANES : 0;
    return width * (2 * wide + narrow) + CACHE_LINE + weights; /* pointers and offsets are two floats */
}

/* The sub-convolution of a piece, and its scratch. */
static struct piece piece_make(const struct wino_tile *tile, int64_t sub, void *scratch) {
    const struct wino_context *c = tile->c;
    const struct wino_axis *a = c->plan->packing->axes;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width;
    struct piece p = {.tile = tile, .depth = c->problem->channels_in};
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
    p.raw = (char *)(p.sums + (c->problem->channels_out + MAX_ROWS) * width);
    p.weights = (float *)(void *)p.raw + width;
    return p;
}

/* The data position of a tap of one axis for a result, or -1. */
static int64_t tap_position(const struct wino_context *c, int axis, int64_t sub, int64_t tap,
                            int64_t output) {
    const struct subs *subs = &c->k->packing.subs[axis];
    const int64_t packed = c->plan->packing->axes[axis].sub[sub].packed;
    const struct tap *t = &subs->taps[subs->first[packed] + tap];
    const int64_t pad = c->run->pads_begin[axis], stride = subs->count;
    const int64_t at = c->problem->forward
                           ? output + c->problem->dilations[axis] * t->kernel - pad
                           : output / stride + floor_divide(sub + pad, stride) - t->shift;
    return at >= 0 && at < c->run->data[axis] ? at : -1;
}

/* Finds the data and the addresses of the results from `first` on. */
static void piece_locate(struct piece *p, int64_t first) {
    const struct wino_context *c = p->tile->c;
    const struct wino_tile *tile = p->tile;
    const struct run *run = c->run;
    const struct wino_axis *a = c->plan->packing->axes;
    const int64_t width = c->plan->tiling.width;
    const int64_t size = element_size((enum element)c->problem->element);
    const int64_t outputs = a[0].outputs * a[1].outputs * a[2].outputs;
    p->count = least(width, tile->uneven_count * outputs - first);
    for (int64_t n = 0; n < width; n++) {
        p->image[n] = NULL;
        if (n >= p->count) continue;
        const struct window_place place =
            wino_place_of(c, tile, tile->uneven[(first + n) / outputs]);
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
                       group * c->problem->channels_in * run->channel_step) * size;
        p->out[n] = c->out +
                    ((((image * c->problem->groups + group) * c->problem->channels_out) *
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

/* Copies the data of one tap of one channel. */
static void piece_copy(const struct piece *p, int64_t channel, const int64_t *data, float *to) {
    const struct wino_context *c = p->tile->c;
    const enum element element = (enum element)c->problem->element;
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

/* Sum a piece for the channels of some blocks of rows, with a fixed number of taps at a time. */
static void piece_sum(const struct piece *p, int64_t first_block, int64_t last_block) {
    const struct wino_context *c = p->tile->c;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width, step = wino_go(c->kernels);
    const int64_t taps = p->depth / c->problem->channels_in;
    const float *packed = (const float *)c->k->packed + p->packed, *bias = c->k->bias;
    if (bias) bias += p->tile->group * c->problem->channels_out;
    for (int64_t first = 0; first < p->depth; first += step) {
        const int64_t count = least(step, p->depth - first);
        const int ends = first + count == p->depth;
        for (int64_t k = 0; k < count; k++)
            piece_copy(p, (first + k) / taps, p->data + (first + k) % taps * width,
                       p->panel + k * width);
        for (int64_t block = first_block; block < last_block; block++) {
            const int rows = packing_rows(d, block);
            const int64_t channel = packing_channel(d, block);
            const float *weights = packed + p->depth * channel + first * rows;
            if (c->k->codes) {
                unpack_codes(c->k, p->packed + p->depth * channel, p->tile->group, block, taps, first, first + count,
                             p->weights);
                weights = p->weights;
            }
            c->kernels->table[rows][width / c->kernels->lanes](
                count, c->plan->offsets, p->panel, weights,
                p->sums + channel * width, width, 1, first == 0,
                ends && bias ? bias + channel : NULL, ends ? &c->k->epilogue : NULL, weights_ahead(weights));
        }
    }
}

static int64_t pieces_of_sub(const struct wino_tile *tile) {
    const struct wino_axis *a = tile->c->plan->packing->axes;
    return divide_up(tile->uneven_count * a[0].outputs * a[1].outputs * a[2].outputs,
                     tile->c->plan->tiling.width);
}

static void sum_piece(void *argument, int64_t index, void *scratch) {
    const struct wino_tile *tile = argument;
    const struct wino_context *c = tile->c;
    const struct packing *d = &c->k->packing;
    const int64_t width = c->plan->tiling.width, pieces = pieces_of_sub(tile);
    const enum element element = (enum element)c->problem->element;
    /* Use the thread's own scratch, at the offset of the tile's sums. */
    const int64_t away = (char *)scratch - (char *)tile->block;
    struct piece p = piece_make(tile, index / pieces, (char *)tile->zeros + away);
    piece_locate(&p, index % pieces * width);
    int64_t first, last; /* other jobs have the other channels */
    wino_channels_of(c, tile, p.sub, &first, &last);
    if (first >= last) return;
    int64_t first_block = 0, last_block = 0;
    while (packing_channel(d, first_block + 1) <= first) first_block++;
    while (packing_channel(d, last_block) < last) last_block++;
    piece_sum(&p, first_block, last_block);
    const int64_t volume = c->run->output[0] * c->run->output[1] * c->run->output[2];
    for (int64_t n = 0; n < p.count; n++)
        for (int64_t channel = first; p.image[n] && channel < last; channel++) {
            char *result = p.out[n] + channel * volume * element_size(element);
            c->kernels->store(element, p.sums + channel * width + n, 1, result);
            if (c->run->addition) add_to(c->run->addition, result, result, 1);
        }
}

void wino_sum_uneven(struct wino_tile *tile, void *scratch) {
    const struct wino_axis *a = tile->c->plan->packing->axes;
    /* Non-temporal stores must be complete before the same results are overwritten. */
    if (tile->c->streamed) finish_streams();
    parallel_pieces(sum_piece, tile,
                    a[0].stride * a[1].stride * a[2].stride * pieces_of_sub(tile), scratch);
}
