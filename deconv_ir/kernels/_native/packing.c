/* The filter, in the order in which the micro-kernel reads it. */
#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int phases_make(const struct layer *layer, int axis, struct phases *phases) {
    const int64_t stride = layer->strides[axis], dilation = layer->dilations[axis];
    const int64_t kernel = layer->kernel[axis];
    phases->count = layer->forward ? 1 : stride;
    phases->first = calloc((size_t)phases->count + 1, sizeof *phases->first);
    phases->taps = calloc((size_t)kernel, sizeof *phases->taps);
    if (!phases->first || !phases->taps) return -1;
    int64_t used = 0;
    for (int64_t r = 0; r < phases->count; r++) {
        phases->first[r] = used;
        for (int64_t k = 0; k < kernel; k++)
            if (layer->forward || dilation * k % stride == r)
                phases->taps[used++] = (struct tap){k, dilation * k / stride};
    }
    phases->first[phases->count] = used;
    return 0;
}

int packing_make(const struct layer *layer, const struct kernels *kernels,
                 struct packing *packing) {
    memset(packing, 0, sizeof *packing);
    for (int axis = 0; axis < AXES; axis++)
        if (phases_make(layer, axis, &packing->phases[axis])) return -1;
    /* Blocks of nearly equal rows: 10 channels are 5 + 5, not 6 + 4. */
    const int64_t channels = layer->channels_out;
    packing->blocks = divide_up(channels, kernels->rows);
    packing->rows = packing->blocks ? (int)divide_up(channels, packing->blocks) : 1;
    packing->larger = channels - packing->blocks * (packing->rows - 1);
    const struct phases *p = packing->phases;
    const int64_t count = p[0].count * p[1].count * p[2].count;
    packing->phase_start = calloc((size_t)count + 1, sizeof *packing->phase_start);
    if (!packing->phase_start) return -1;
    int64_t at = 0, r = 0;
    for (int64_t a = 0; a < p[0].count; a++)
        for (int64_t b = 0; b < p[1].count; b++)
            for (int64_t c = 0; c < p[2].count; c++, r++) {
                packing->phase_start[r] = at;
                at += (p[0].first[a + 1] - p[0].first[a]) * (p[1].first[b + 1] - p[1].first[b]) *
                      (p[2].first[c + 1] - p[2].first[c]) * layer->channels_in * channels;
            }
    packing->phase_start[r] = at;
    packing->group_size = at;
    return 0;
}

void packing_free(struct packing *packing) {
    for (int axis = 0; axis < AXES; axis++) {
        free(packing->phases[axis].first);
        free(packing->phases[axis].taps);
    }
    free(packing->phase_start);
    memset(packing, 0, sizeof *packing);
}

/* Copy one block of rows of one phase, [channel][tap][row] as it is packed, from or to
 * the filter. */
static void copy_block(const struct layer *layer, const struct packing *packing, int64_t group,
                       const int64_t phase[AXES], int64_t block, int size, char *filter,
                       char *packed, int unpack) {
    const int64_t taps = layer->kernel[0] * layer->kernel[1] * layer->kernel[2];
    const int64_t in = layer->channels_in, rows = packing_rows(packing, block);
    const int64_t channel = packing_channel(packing, block);
    const struct phases *p = packing->phases;
    /* Deconvolution filters are [g][in][out][K], convolution filters [g][out][in][K]. */
    const int64_t row_step = (layer->forward ? in : 1) * taps;
    const int64_t in_step = (layer->forward ? 1 : layer->channels_out) * taps;
    char *from = filter + (group * in * layer->channels_out * taps + channel * row_step) * size;
    for (int64_t i = 0; i < in; i++, from += in_step * size)
        for (int64_t a = p[0].first[phase[0]]; a < p[0].first[phase[0] + 1]; a++)
            for (int64_t b = p[1].first[phase[1]]; b < p[1].first[phase[1] + 1]; b++)
                for (int64_t c = p[2].first[phase[2]]; c < p[2].first[phase[2] + 1]; c++) {
                    const int64_t k = (p[0].taps[a].kernel * layer->kernel[1] +
                                       p[1].taps[b].kernel) * layer->kernel[2] +
                                      p[2].taps[c].kernel;
                    for (int64_t row = 0; row < rows; row++, packed += size) {
                        char *weight = from + (row * row_step + k) * size;
                        if (unpack) memcpy(weight, packed, (size_t)size);
                        else if (size == 4) memcpy(packed, weight, 4);
                        else memcpy(packed, weight, 8);
                    }
                }
}

/* Whether all of `count` packed weights are finite. */
static int all_finite(const void *weights, enum accumulator accumulator, int64_t count) {
    if (accumulator == ACC_F32) {
        const uint32_t *w = weights;
        uint32_t bad = 0;
        for (int64_t i = 0; i < count; i++) bad |= (w[i] & 0x7f800000u) == 0x7f800000u;
        return !bad;
    }
    if (accumulator == ACC_F64) {
        const uint64_t *w = weights, mask = UINT64_C(0x7ff0000000000000);
        uint64_t bad = 0;
        for (int64_t i = 0; i < count; i++) bad |= (w[i] & mask) == mask;
        return !bad;
    }
    return 1;
}

struct pack_job {
    const struct layer *layer;
    const struct kernels *kernels;
    const struct packing *packing;
    char *filter, *packed;
    int unpack;
};

static void pack_group_block(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct pack_job *c = context;
    const struct packing *p = c->packing;
    const int64_t group = job / p->blocks, block = job % p->blocks;
    const int size = c->kernels->size;
    int64_t phase[AXES], r = 0;
    for (phase[0] = 0; phase[0] < p->phases[0].count; phase[0]++)
        for (phase[1] = 0; phase[1] < p->phases[1].count; phase[1]++)
            for (phase[2] = 0; phase[2] < p->phases[2].count; phase[2]++, r++) {
                /* Blocks before this one hold `channel` rows of the phase. */
                const int64_t phase_size = p->phase_start[r + 1] - p->phase_start[r];
                const int64_t at = group * p->group_size + p->phase_start[r] +
                                   phase_size / c->layer->channels_out * packing_channel(p, block);
                copy_block(c->layer, p, group, phase, block, size, c->filter,
                           c->packed + at * size, c->unpack);
            }
}

int pack_filter(const struct layer *layer, const struct kernels *kernels,
                const struct packing *packing, const void *filter, void *packed) {
    struct pack_job context = {layer, kernels, packing, (char *)filter, packed, 0};
    if (packing->group_size)
        parallel_run(pack_group_block, &context, layer->groups * packing->blocks, 1, 0);
    const enum accumulator accumulator = accumulator_of((enum element)layer->element);
    return !all_finite(packed, accumulator, layer->groups * packing->group_size);
}

void unpack_filter(const struct layer *layer, const struct kernels *kernels,
                   const struct packing *packing, const void *packed, void *filter) {
    struct pack_job context = {layer, kernels, packing, filter, (char *)packed, 1};
    if (packing->group_size)
        parallel_run(pack_group_block, &context, layer->groups * packing->blocks, 1, 0);
}
