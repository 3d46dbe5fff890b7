/* The cost model of direct sums. */
#ifndef DECONV_DIRECT_COST_H
#define DECONV_DIRECT_COST_H

#include "direct/plan.h"

/* Bytes of the second-level cache for the data of a tile of direct sums: weights and sums are
 * streamed through the rest. */
static inline int64_t data_cache(const struct machine *machine) {
    return machine->sure_level2 * 5 / 8;
}

/* Whether the rows of a depthwise layer are summed one by one, rather than as one long row that
 * includes the gaps between them. */
int depthwise_by_rows(const struct kernel *k, const struct tiling *tiling, int64_t rows,
                      int64_t count, int64_t taps);
/* Channels of one job of a depthwise layer with `tiles` tiles of one channel each. */
int64_t depthwise_groups(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *tiling, int64_t tiles);

/* Predicted cycles of a block of rows of one image whose data are one position. */
double one_position_cycles(const struct kernel *k);

#endif
