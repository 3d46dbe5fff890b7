/* The cost model: its constants, and the terms that the cost functions of algorithms share. */
#ifndef DECONV_COSTS_H
#define DECONV_COSTS_H

#include "convolution/convolution.h"

#include <math.h>

/* The constants, as variables and by index. */
#define COST(name, value) extern double name;
#include "cost_constants.inc.h"
#undef COST
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

/* Cycles of a micro-kernel for one tap: those of its multiply-adds or of its loads, the larger of
 * the two, and at least the latency of a multiply-add. */
static inline double kernel_tap_cycles(const struct problem *problem, int rows, int columns) {
    const double rate =
        problem->machine.multiply_adds / (problem->element == I16X2 ? SHORTS_FACTOR : 1);
    const double multiply_adds = rows * columns / rate;
    const double loads = BROADCAST_CYCLES * rows + LOAD_CYCLES * columns / rate;
    return fmax(fmax(multiply_adds, loads), FMA_LATENCY);
}

/* Bytes of weights read per cycle. */
double weight_bytes_per_cycle(const struct machine *machine, int64_t level2, double all_weights);
/* Predicted cycles of `jobs` tiles of `tile` cycles each on several threads. */
double scheduled_cycles(double tile, int64_t jobs, int64_t threads);

#endif
