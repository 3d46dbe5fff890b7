/* Cycles of tilings, and the search for those that take the fewest. */
#ifndef DECONV_COST_MODEL_H
#define DECONV_COST_MODEL_H

#include "native.h"
#include "winograd/winograd.h"

/* Cycles until all threads know that panels are filled. */
#define BARRIER_CYCLES 9000

/* Cycles of a run that sums directly, all data in cache, and of one that takes Winograd's
 * algorithm, by the same measure. */
double direct_cycles(const struct kernel *k, const struct run *run, const struct plan *plan,
                     const struct tiling *tiling);
double wino_cycles(const struct kernel *k, const struct run *run, const struct wino_plan *plan,
                   const struct wino_tiling *tiling);

/* Whether rows of a depthwise layer are summed one by one, and not as one with what lies between
 * them. */
int depthwise_by_rows(const struct kernel *k, const struct tiling *tiling, int64_t rows,
                      int64_t count, int64_t taps);
/* Channels of one job of a depthwise layer that has so many tiles of one channel. */
int64_t depthwise_groups(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *tiling, int64_t tiles);

/* Cycles of a block of rows of one image whose data are one position. */
double point_cycles(const struct kernel *k);
/* Cycles until all of some tiles of equal cycles are done. */
double scheduled_cycles(double tile, int64_t jobs, int64_t threads);

/* Keeps the best tiling of all calls in its context, and returns the cycles of the best for so
 * many threads that together have so much scratch; negative where there is none. */
typedef double (*tiling_search)(void *context, int64_t threads, int64_t scratch_bytes);
/* Search with the threads of a run, and with fewer where scratch is short. */
double search_threads(const struct run *run, tiling_search search, void *context);
/* The next smaller extent of a tile worth a look: in small steps up to `fine` parts of a whole. */
int64_t next_part(int64_t whole, int64_t part, int64_t fine);

#endif
