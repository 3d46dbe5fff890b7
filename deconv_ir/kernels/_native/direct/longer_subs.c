/* Folded layers some of whose sub-convolutions are longer: these alone have the last tap of the last
 * axis, for which the rows of the others are zeros in the packed filter.
 *
 * The zeros are not multiplied: that would take time, and their products with an infinity or a NaN
 * would not be 0.  Weights and offsets are in two parts instead: taps of all rows, then the last
 * tap, whose rows come first in the layer.
 */
#include "direct/direct.h"

/* Rows of a block that have the last tap. */
static int longer_rows(const struct direct_context *c, int64_t block) {
    const struct problem *problem = c->problem;
    const int64_t longer = problem->longer * (problem->channels_out / problem->folded);
    return (int)least(most(longer - packing_channel(c->packing, block), 0),
                      packing_rows(c->packing, block));
}

double needed_share(const struct problem *problem) {
    const double taps = (double)problem->kernel[AXES - 1];
    const double shorter = problem->longer ? (double)(problem->folded - problem->longer) : 0;
    return 1 - shorter / ((double)problem->folded * taps);
}

void part_weights(const struct direct_context *c, const struct input_block *in, const struct sub *sub,
                  int64_t block, char *to) {
    const int64_t size = c->kernels->size, runs = in->count * sub->row_taps;
    if (!runs) return; /* the kernel is shorter than the stride of another axis */
    const int64_t row = packing_rows(c->packing, block) * size, last = longer_rows(c, block) * size;
    const int64_t run = (sub->taps / sub->row_taps - 1) * row;
    const int64_t first = sub->packed_taps * (c->problem->channels_in * packing_channel(c->packing, block) +
                                              in->first * packing_rows(c->packing, block));
    const char *from = (const char *)c->k->packed + (sub->packed + first) * size;
    char *end = to + runs * run;
    for (int64_t i = 0; i < runs; i++, from += run + row, to += run, end += last) {
        memcpy(to, from, (size_t)run);
        memcpy(end, from + run, (size_t)last);
    }
}

void sum_parts(const struct direct_context *c, const struct sub *sub, int64_t block, int64_t channels,
               int64_t positions, const char *data, const char *weights, char *sums, int64_t row_stride,
               int begins, const char *bias, const struct epilogue *finish) {
    const int64_t size = c->kernels->size, last = channels * sub->row_taps;
    const int64_t shared = last * (sub->taps / sub->row_taps - 1);
    const int rows = packing_rows(c->packing, block), longer = longer_rows(c, block);
    const int32_t *offsets = sub->offsets + c->plan->tiling.channels * (sub->taps - sub->row_taps);
    if (longer)
        sum_rows(c->kernels, longer, positions, last, offsets, data, weights + shared * rows * size, sums,
                 row_stride, begins, NULL, NULL);
    for (int row = longer; longer && begins && row < rows; row++)
        memset(sums + row * row_stride * size, 0, (size_t)(round_up(positions, c->kernels->lanes) * size));
    sum_rows(c->kernels, rows, positions, shared, sub->offsets, data, weights, sums, row_stride,
             begins && !longer, bias, finish);
}
