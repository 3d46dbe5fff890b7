/* The constants of the cost model, and the terms that algorithms share.
 *
 * The model is meant to rank tilings and algorithms rather than to predict times.
 * docs/performance-notes.md lists the machines on which it was checked.
 */
#include "convolution/costs.h"

#define COST(name, value) double name = value;
#include "cost_constants.inc.h"
#undef COST

static const struct {
    const char *name;
    double *value;
} constants[COST_CONSTANTS] = {
#define COST(name, value) {#name, &(name)},
#include "cost_constants.inc.h"
#undef COST
};

const char *cost_constant(int index, double *value) {
    *value = *constants[index].value;
    return constants[index].name;
}

void exchange_cost_constants(double *values) {
    for (int i = 0; i < COST_CONSTANTS; i++) {
        const double value = values[i];
        values[i] = *constants[i].value;
        *constants[i].value = value;
    }
}

double weight_bytes_per_cycle(const struct machine *machine, int64_t level2, double all_weights) {
    /* Other cores use the cache as well: half of it may still hold weights of the last run. */
    const double kept = (double)machine->level3 / 2;
    return all_weights > kept                          ? FROM_MEMORY
           : all_weights > kept / 2                    ? FROM_MEMORY_AND_THIRD_LEVEL
           : all_weights > (double)level2 / 2           ? FROM_THIRD_LEVEL
                                                       : FROM_SECOND_LEVEL;
}

double scheduled_cycles(double tile, int64_t jobs, int64_t threads) {
    threads = most(threads, 1);
    const double rounds = (double)divide_up(jobs, threads);
    const double even = (double)most(jobs, 1) / (double)threads;
    return tile * (WAITING_SHARE * rounds + (1 - WAITING_SHARE) * even + DISTURBED_TILES);
}
