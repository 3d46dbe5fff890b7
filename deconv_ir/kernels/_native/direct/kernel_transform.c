/* The filter, in the order in which the micro-kernel reads it: the GEMM's A,
 *   M  output channels of a group, in blocks of rows
 *   K  input channels x taps of a sub-convolution
 * as [group][sub-convolution][block of rows][K][row].
 */
#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int subs_make(const struct layer *layer, int axis, struct subs *subs) {
    const int64_t stride = layer->strides[axis], dilation = layer->dilations[axis];
    const int64_t kernel = layer->kernel[axis];
    subs->count = layer->forward ? 1 : stride;
    subs->first = calloc((size_t)subs->count + 1, sizeof *subs->first);
    subs->taps = calloc((size_t)kernel, sizeof *subs->taps);
    if (!subs->first || !subs->taps) return -1;
    int64_t used = 0;
    for (int64_t r = 0; r < subs->count; r++) {
        subs->first[r] = used;
        for (int64_t k = 0; k < kernel; k++)
            if (layer->forward || dilation * k % stride == r)
                subs->taps[used++] = (struct tap){k, dilation * k / stride};
    }
    subs->first[subs->count] = used;
    return 0;
}

/* Bytes of data that stay in the first-level cache while weights pass. */
#define FIRST_LEVEL_SHARE ((int64_t)16 << 10)
/* Taps below which loading and storing sums would show. */
#define SHORTEST_SUM 96

/* As many channels as the first-level cache holds data of, at the positions of one micro-kernel:
 * of rows as they lie, whose taps overlap, or half of them in a panel without gaps. */
static int64_t channels_at_once(const struct layer *layer, const struct kernels *kernels,
                                const struct packing *packing) {
    int64_t taps = 1, row_taps = 1;
    for (int axis = 0; axis < AXES; axis++) {
        const struct subs *p = &packing->subs[axis];
        int64_t deepest = 1;
        for (int64_t q = 0; q < p->count; q++)
            deepest = most(deepest, p->first[q + 1] - p->first[q]);
        taps *= deepest;
        if (axis < AXES - 1) row_taps *= deepest;
    }
    const int64_t block = (int64_t)kernels->columns[packing->rows] * kernels->lanes * kernels->size;
    const int64_t bytes = most(row_taps * (block + LINE), taps * block / 2);
    const int64_t fit = most(FIRST_LEVEL_SHARE / bytes, divide_up(SHORTEST_SUM, taps));
    const int64_t channels = most(layer->channels_in, 1);
    return divide_up(channels, divide_up(channels, fit));
}

int packing_make(const struct layer *layer, const struct kernels *kernels,
                 struct packing *packing) {
    memset(packing, 0, sizeof *packing);
    for (int axis = 0; axis < AXES; axis++)
        if (subs_make(layer, axis, &packing->subs[axis])) return -1;
    /* Blocks of nearly equal rows: 10 channels are 5 + 5, not 6 + 4. */
    const int64_t channels = layer->channels_out;
    packing->blocks = divide_up(channels, kernels->rows);
    packing->rows = packing->blocks ? (int)divide_up(channels, packing->blocks) : 1;
    packing->larger = channels - packing->blocks * (packing->rows - 1);
    packing->step = layer->step ? least(layer->step, most(layer->channels_in, 1))
                                : channels_at_once(layer, kernels, packing);
    const struct subs *p = packing->subs;
    const int64_t count = p[0].count * p[1].count * p[2].count;
    packing->sub_start = calloc((size_t)count + 1, sizeof *packing->sub_start);
    if (!packing->sub_start) return -1;
    int64_t at = 0, r = 0;
    for (int64_t a = 0; a < p[0].count; a++)
        for (int64_t b = 0; b < p[1].count; b++)
            for (int64_t c = 0; c < p[2].count; c++, r++) {
                packing->sub_start[r] = at;
                at += (p[0].first[a + 1] - p[0].first[a]) * (p[1].first[b + 1] - p[1].first[b]) *
                      (p[2].first[c + 1] - p[2].first[c]) * layer->channels_in * channels;
            }
    packing->sub_start[r] = at;
    packing->group_size = at;
    return 0;
}

void packing_free(struct packing *packing) {
    for (int axis = 0; axis < AXES; axis++) {
        free(packing->subs[axis].first);
        free(packing->subs[axis].taps);
    }
    free(packing->sub_start);
    memset(packing, 0, sizeof *packing);
}

/* Some rows of the filter as it is given, along its first axis: input channels of a
 * deconvolution's [g][in][out][K], output channels of a convolution's [g][out][in][K]. */
struct part {
    int64_t first, count; /* of a group */
    char *rows;           /* the first of them */
};

/* The transpose of 4 x 4 elements of 4 bytes, from rows `step` elements apart to columns `pitch`
 * apart. */
static void transpose(const uint32_t *from, int64_t step, uint32_t *to, int64_t pitch) {
    typedef uint32_t four __attribute__((vector_size(16)));
    four a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + step, sizeof b);
    memcpy(&c, from + 2 * step, sizeof c);
    memcpy(&d, from + 3 * step, sizeof d);
    const four ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const four bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const four ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const four bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5);
    b = __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7);
    c = __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5);
    d = __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7);
    memcpy(to, &a, sizeof a);
    memcpy(to + pitch, &b, sizeof b);
    memcpy(to + 2 * pitch, &c, sizeof c);
    memcpy(to + 3 * pitch, &d, sizeof d);
}

/* Weights of some output channels, at some taps or input channels. */
struct weights {
    int64_t rows, columns;
    int64_t row_step, column_step; /* elements, as the filter is given */
    int64_t pitch;                 /* elements from column to column as it is packed */
};

static inline void copy_elements(const struct weights *w, int64_t first_row, int64_t rows,
                                 int64_t first, size_t size, char *filter, char *packed,
                                 int unpack) {
    for (int64_t column = first; column < w->columns; column++) {
        char *given = filter + (column * w->column_step + first_row * w->row_step) * (int64_t)size;
        char *to = packed + (column * w->pitch + first_row) * (int64_t)size;
        for (int64_t row = 0; row < rows; row++, to += size, given += w->row_step * (int64_t)size)
            if (unpack) memcpy(given, to, size);
            else memcpy(to, given, size);
    }
}

/* Copy the weights, from or to where they are packed. */
static void copy_weights(const struct weights *w, int size, char *filter, char *packed,
                         int unpack) {
    if (size == 8) {
        copy_elements(w, 0, w->rows, 0, 8, filter, packed, unpack);
    } else if (unpack) {
        copy_elements(w, 0, w->rows, 0, 4, filter, packed, 1);
    } else if (w->column_step > 1) {
        if (w->rows == MAX_ROWS) copy_elements(w, 0, MAX_ROWS, 0, 4, filter, packed, 0);
        else copy_elements(w, 0, w->rows, 0, 4, filter, packed, 0);
    } else {
        int64_t row = 0;
        for (; row + 4 <= w->rows; row += 4) {
            int64_t column = 0;
            for (; column + 4 <= w->columns; column += 4)
                transpose((const uint32_t *)filter + row * w->row_step + column, w->row_step,
                          (uint32_t *)packed + column * w->pitch + row, w->pitch);
            copy_elements(w, row, 4, column, 4, filter, packed, 0);
        }
        for (; row < w->rows; row++) copy_elements(w, row, 1, 0, 4, filter, packed, 0);
    }
}

/* Copy what one block of rows of one sub-convolution, [channel][tap][row] as it is packed, has of
 * some input channels of a part, from or to it. */
static void copy_block(const struct kernel *k, const struct part *part, const int64_t sub[AXES],
                       int64_t block, int64_t in_first, int64_t in_end, char *packed,
                       int unpack) {
    const struct layer *layer = &k->layer;
    const int size = k->kernels->size;
    const int64_t channel = packing_channel(&k->packing, block);
    const int64_t rows = packing_rows(&k->packing, block), *kernel = layer->kernel;
    const int64_t taps = kernel[0] * kernel[1] * kernel[2];
    const struct tap *begin[AXES], *end[AXES];
    int64_t row_first = 0, row_end = rows, tap_count = 1;
    if (layer->forward) {
        row_first = most(part->first - channel, 0);
        row_end = least(part->first + part->count - channel, rows);
    }
    for (int a = 0; a < AXES; a++) {
        const struct subs *subs = &k->packing.subs[a];
        begin[a] = subs->taps + subs->first[sub[a]];
        end[a] = subs->taps + subs->first[sub[a] + 1];
        tap_count *= end[a] - begin[a];
    }
    if (row_end <= row_first || tap_count == 0) return;
    /* Of the part, not of the filter. */
    const int64_t row_step = (layer->forward ? layer->channels_in : 1) * taps;
    const int64_t in_step = (layer->forward ? 1 : layer->channels_out) * taps;
    const int64_t first = (layer->forward ? (channel - part->first) * row_step
                                          : channel * row_step - part->first * in_step) +
                          row_first * row_step;
    const int64_t columns = end[2] - begin[2];
    struct weights w = {row_end - row_first, columns, row_step,
                        columns > 1 ? begin[2][1].kernel - begin[2]->kernel : 1, rows};
    char *to = packed + (in_first * tap_count * rows + row_first) * (int64_t)size;
    if (layer->forward) {
        /* The taps of all channels, one after the other. */
        w.columns = (in_end - in_first) * taps;
        copy_weights(&w, size, part->rows + (first + in_first * taps) * size, to, unpack);
        return;
    }
    for (int64_t i = in_first; i < in_end; i++)
        for (const struct tap *z = begin[0]; z < end[0]; z++)
            for (const struct tap *y = begin[1]; y < end[1]; y++, to += columns * rows * size) {
                const int64_t at = first + i * in_step +
                                   (z->kernel * kernel[1] + y->kernel) * kernel[2] +
                                   begin[2]->kernel;
                copy_weights(&w, size, part->rows + at * size, to, unpack);
            }
}

/* Input channels whose weights stay in the first-level cache while each sub-convolution takes its
 * own. */
#define CHANNELS_TOGETHER 8

/* Copy what one block of rows has of a part of a group's filter. */
static void copy_part(const struct kernel *k, const struct part *part, int64_t block, char *packed,
                      int unpack) {
    const struct packing *p = &k->packing;
    const int forward = (int)k->layer.forward;
    const int64_t begin = forward ? 0 : part->first;
    const int64_t end = forward ? k->layer.channels_in : part->first + part->count;
    const int64_t together = forward ? most(end, 1) : CHANNELS_TOGETHER;
    for (int64_t i = begin; i < end; i += together) {
        int64_t sub[AXES], r = 0;
        for (sub[0] = 0; sub[0] < p->subs[0].count; sub[0]++)
            for (sub[1] = 0; sub[1] < p->subs[1].count; sub[1]++)
                for (sub[2] = 0; sub[2] < p->subs[2].count; sub[2]++, r++) {
                    /* Blocks before this one hold `channel` rows of the sub-convolution. */
                    const int64_t at = p->sub_start[r] + (p->sub_start[r + 1] - p->sub_start[r]) /
                                                             k->layer.channels_out *
                                                             packing_channel(p, block);
                    copy_block(k, part, sub, block, i, least(i + together, end),
                               packed + at * k->kernels->size, unpack);
                }
    }
}

int all_finite(const void *values, int64_t count, int size) {
    uint64_t bad = 0;
    if (size == 4) {
        const uint32_t *v = values, mask = UINT32_C(0x7f800000);
        for (int64_t i = 0; i < count; i++) bad |= (v[i] & mask) == mask;
    } else {
        const uint64_t *v = values, mask = UINT64_C(0x7ff0000000000000);
        for (int64_t i = 0; i < count; i++) bad |= (v[i] & mask) == mask;
    }
    return !bad;
}

/* Copy some rows of the filter to where all of them are packed, or from there. */
static void copy_rows(const struct kernel *k, int64_t first, int64_t count, char *rows,
                      int unpack) {
    const struct packing *p = &k->packing;
    const int64_t size = k->kernels->size, of_group = filter_rows(&k->layer);
    if (!p->group_size) return;
    for (struct part part; count > 0; first += part.count, count -= part.count) {
        const int64_t group = first / of_group;
        part = (struct part){first - group * of_group, least(count, (group + 1) * of_group - first),
                             rows};
        for (int64_t block = 0; block < p->blocks; block++)
            copy_part(k, &part, block, (char *)k->packed + group * p->group_size * size, unpack);
        rows += part.count * (p->group_size / of_group) * size;
    }
}

int pack_rows(const struct kernel *k, int64_t first, int64_t count, const void *rows) {
    copy_rows(k, first, count, (char *)rows, 0);
    const enum accumulator accumulator = accumulator_of((enum element)k->layer.element);
    const int64_t row_size = k->packing.group_size / most(filter_rows(&k->layer), 1);
    return (accumulator == ACC_F32 || accumulator == ACC_F64) &&
           !all_finite(rows, count * row_size, k->kernels->size);
}

void unpack_filter(const struct kernel *k, void *filter) {
    copy_rows(k, 0, k->layer.groups * filter_rows(&k->layer), filter, 1);
}
