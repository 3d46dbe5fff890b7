/* Results that see no data: the bias, activated. */
#include "native.h"

#include <string.h>

struct context {
    const struct layer *layer;
    const struct run *run;
    const struct kernels *kernels;
    const struct epilogue *epilogue;
    const struct arrays *arrays;
    const int64_t *low, *high;
};

/* `count` results from `to` on, all with the same of `at_once` values. */
static void fill(const struct context *c, const void *values, int64_t at_once, char *to,
                 int64_t count) {
    const enum element element = (enum element)c->layer->element;
    for (int64_t done = 0; done < count; done += at_once)
        c->kernels->store(element, values, least(at_once, count - done),
                          to + done * element_size(element));
}

static void fill_channel(void *context, int64_t job, void *scratch) {
    static const double zeros[MAX_ROWS];
    static const int32_t no_offsets[AHEAD];
    const struct context *c = context;
    const int64_t *output = c->run->output, extent = c->run->extent;
    const int64_t size = element_size((enum element)c->layer->element);
    const int64_t outs = c->layer->channels_out / c->layer->folded;
    const int64_t channel = job % (c->layer->groups * outs);
    const char *bias = c->arrays->bias;
    if (bias) bias += (channel / outs * c->layer->channels_out + channel % outs) * c->kernels->size;
    /* A sum of no taps. */
    const int columns = c->kernels->columns[1];
    const int64_t at_once = columns * c->kernels->lanes;
    c->kernels->table[1][columns](0, no_offsets, scratch, scratch, scratch, 0, 1,
                                  bias ? (const void *)bias : (const void *)zeros, c->epilogue);
    char *row = (char *)c->arrays->out + job * output[0] * output[1] * extent * size;
    for (int64_t z = 0; z < output[0]; z++)
        for (int64_t y = 0; y < output[1]; y++, row += extent * size) {
            const int outside =
                z < c->low[0] || z >= c->high[0] || y < c->low[1] || y >= c->high[1];
            fill(c, scratch, at_once, row, outside ? extent : c->low[2]);
            if (!outside)
                fill(c, scratch, at_once, row + c->high[2] * size, extent - c->high[2]);
        }
}

/* Results for which waking other threads takes longer than filling them. */
#define FEW_RESULTS ((int64_t)1 << 15)

int fill_outside(const struct layer *layer, const struct run *run, const struct kernels *kernels,
                 const struct epilogue *epilogue, const struct arrays *arrays,
                 const int64_t low[AXES], const int64_t high[AXES]) {
    const int64_t extents[AXES] = {run->output[0], run->output[1], run->extent};
    int64_t all = 1, within = 1;
    for (int a = 0; a < AXES; a++) {
        all *= extents[a];
        within *= high[a] - low[a];
    }
    const int64_t channels = run->batch * layer->groups * layer->channels_out / layer->folded;
    if (all == within || channels == 0) return 0;
    struct context context = {layer, run, kernels, epilogue, arrays, low, high};
    const int64_t threads = (all - within) * channels < FEW_RESULTS ? 1 : run->threads;
    return parallel_run(fill_channel, &context, channels, threads,
                        MAX_COLUMNS * kernels->lanes * kernels->size);
}
