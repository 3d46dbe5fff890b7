/* Predicted cycles of tilings, and the search for the fastest ones. */
#ifndef DECONV_COST_MODEL_H
#define DECONV_COST_MODEL_H

#include "native.h"
#include "winograd/winograd.h"

/* Cycles of a barrier: until all threads know that panels are filled. */
#define BARRIER_CYCLES 9000

/* Layers with one position of data: see direct/one_position.c. */
#define ONE_POSITION_JOB_CYCLES 5000.0     /* of a job; smaller ones do not pay off */
#define ONE_POSITION_THREAD_CYCLES 10000.0 /* of all jobs, for each further thread */
/* With one tap and more images than this, tiles are faster: images are positions of a panel. */
#define ONE_POSITION_IMAGES 4

/* With fewer input or output channels, Winograd is not considered unless it is forced. */
#define WINO_FEWEST_CHANNELS 8

/* The constants of the model. */
enum {
#define COST(name, value) COST_##name,
#include "cost_constants.inc.h"
#undef COST
    COST_CONSTANTS
};
/* Name and value of a constant, 0 to COST_CONSTANTS - 1. */
const char *cost_constant(int index, double *value);
/* Exchange the values of all constants with others; callers hold the interpreter lock, and
 * exchange them again. */
void exchange_cost_constants(double *values);

/* Bytes of the second-level cache for the data of a tile of direct sums: weights and sums are
 * streamed through the rest. */
static inline int64_t data_cache(const struct machine *machine) {
    return machine->sure_level2 * 5 / 8;
}

/* Predicted cycles of a run with direct sums, and with Winograd; the two can be compared. */
double direct_cycles(const struct kernel *k, const struct run *run, const struct plan *plan,
                     const struct tiling *tiling);
double wino_cycles(const struct kernel *k, const struct run *run, const struct wino_plan *plan,
                   const struct wino_tiling *tiling);

/* Whether the rows of a depthwise layer are summed one by one, rather than as one long row that
 * includes the gaps between them. */
int depthwise_by_rows(const struct kernel *k, const struct tiling *tiling, int64_t rows,
                      int64_t count, int64_t taps);
/* Channels of one job of a depthwise layer with `tiles` tiles of one channel each. */
int64_t depthwise_groups(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *tiling, int64_t tiles);

/* Predicted cycles of a block of rows of one image whose data are one position. */
double one_position_cycles(const struct kernel *k);
/* Predicted cycles of `jobs` tiles of `tile` cycles each on several threads. */
double scheduled_cycles(double tile, int64_t jobs, int64_t threads);

/* Searches tilings for threads that together have `scratch_bytes`.  Returns the cycles of the best
 * one, or a negative number if none fits; the context keeps the best of all calls. */
typedef double (*tiling_search)(void *context, int64_t threads, int64_t scratch_bytes);
/* Search with the threads of a run, and with fewer threads if scratch is short. */
double search_threads(const struct run *run, tiling_search search, void *context);

/* The next smaller extent of a tile for a search: one more part at first, several beyond `fine`
 * parts. */
int64_t next_part(int64_t whole, int64_t part, int64_t fine);

#endif
