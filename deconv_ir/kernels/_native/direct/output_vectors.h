/* Direct sums whose vectors hold output channels. */
#ifndef DECONV_OUTPUT_VECTORS_H
#define DECONV_OUTPUT_VECTORS_H

#include "direct/direct.h"

/* Blocks of rows that are summed together, in OUT_VECTORS vectors. */
#define OUT_BLOCKS (2 * OUT_VECTORS)

/* Whether a tile may be summed with vectors of output channels. */
int takes_output_vectors(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *tiling);
/* Sum and write OUT_BLOCKS blocks of rows from `b` on, of some channels of a tile, for the
 * sub-convolutions qz and qy of the first two axes. */
void run_output_vectors(const struct direct_context *c, const struct direct_tile *tile,
                        const struct input_block *in, int64_t qz, int64_t qy, int64_t b);

#endif
