/* Depthwise layers whose vectors hold channels. */
#ifndef DECONV_CHANNEL_VECTORS_H
#define DECONV_CHANNEL_VECTORS_H

#include "direct/plan.h"

struct direct_context;
struct direct_tile;

/* Whether vectors of a tile hold channels: for depthwise layers with many channels and few
 * positions. */
int takes_channel_vectors(const struct kernel *k, const struct run *run, const struct plan *plan,
                          const struct tiling *tiling);
/* Scratch for weights and tables, in addition to data and sums. */
int64_t channel_vectors_bytes(const struct kernel *k, const struct plan *plan,
                              const struct tiling *tiling);
void run_channel_vectors(const struct direct_context *c, struct direct_tile *tile);

#endif
