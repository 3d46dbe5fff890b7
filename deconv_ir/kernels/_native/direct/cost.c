/* The cost model of direct sums: predicts the cycles of a tiling, without touching data. */
#include "direct/cost.h"

#include "convolution/costs.h"
#include "direct/direct.h"
#include "direct/output_vectors.h"

#include <math.h>

/* Cycles for all taps of one row block at a number of positions. */
static double row_cycles(const struct problem *problem, const struct microkernels *kernels,
                         int rows, int64_t positions, double taps) {
    int64_t vectors = divide_up(positions, kernels->lanes);
    int columns = kernels->columns[rows];
    double cycles = CALL_CYCLES;
    while (vectors > 0) {
        int64_t blocks;
        columns = next_blocks(kernels, rows, columns, vectors, &blocks);
        cycles += (double)blocks * (taps * kernel_tap_cycles(problem, rows, columns) +
                                    SUM_CYCLES * rows * columns + BLOCK_CYCLES);
        vectors -= blocks * columns;
    }
    return cycles;
}

/* Like row_cycles(), with whole vectors summed in the output itself, and the rest in scratch. */
static double straight_cycles(const struct problem *problem, const struct microkernels *kernels,
                              int rows, int64_t positions, double taps) {
    const int64_t rest = positions % kernels->lanes;
    double cycles = row_cycles(problem, kernels, rows, positions - rest, taps);
    if (rest > 0) cycles += row_cycles(problem, kernels, rows, rest, taps);
    return cycles;
}

#define FIRST_LEVEL (28 << 10) /* bytes of data that stay in first-level cache */
#define CHANNELS_CYCLES 20000.0   /* a job of more cycles gets no more channels, */
#define JOBS_A_THREAD 8           /* if this many jobs are left for each thread */

/* Cycles of summing `taps` taps for `rows` rows of `count` positions. */
static double vectors_cycles(const struct kernel *k, int64_t rows, int64_t count, double taps) {
    const double tap =
        DEPTHWISE_TAP + DEPTHWISE_BYTE * (double)(k->kernels->lanes * k->kernels->size);
    return (double)(rows * divide_up(count, k->kernels->lanes)) * (DEPTHWISE_VECTOR + tap * taps);
}

int depthwise_by_rows(const struct kernel *k, const struct tiling *t, int64_t rows,
                      int64_t count, int64_t taps) {
    return count >= k->kernels->lanes &&
           vectors_cycles(k, rows, count, (double)taps) <=
               vectors_cycles(k, 1, (rows - 1) * t->pitch + count, (double)taps) +
                   PARTED_ROW * (double)rows;
}

/* Cycles of the sums of one channel of a tile, and of copying them to the output. */
static double depthwise_cycles(const struct kernel *k, const struct plan *plan,
                               const struct tiling *t, double subs, double taps) {
    const int64_t rows = t->shape[1], count = t->shape[2];
    double plane;
    if (plan->axes[2].out_stride == 1 && depthwise_by_rows(k, t, rows, count, (int64_t)taps))
        plane = vectors_cycles(k, rows, count, taps);
    else
        plane = vectors_cycles(k, 1, (rows - 1) * t->pitch + count, taps) +
                PARTED_ROW * (double)rows;
    return DEPTHWISE_CHANNEL + subs * (double)t->shape[0] * plane;
}

/* Cycles of one channel of a tile, with vectors of channels, including all copies. */
static double channel_vectors_cycles(const struct kernel *k, const struct plan *plan,
                                     const struct tiling *t, double subs, double taps) {
    const double data = (double)(t->extent[0] * t->extent[1] * t->extent[2] * plan->residues);
    const double outs = subs * (double)(t->shape[0] * t->shape[1] * t->shape[2]);
    const double filled =
        (double)k->problem.groups / (double)round_up(k->problem.groups, t->vectors);
    return DEPTHWISE_CHANNEL / (double)t->vectors + subs * taps +
           (data * VECTORS_POSITION + outs * (VECTORS_POSITION + taps * VECTORS_TAP)) /
               (double)t->vectors / filled;
}

/* Cycles of the sums of a sub-convolution with vectors of output channels, and of writing it. */
static double outputs_cycles(const struct kernel *k, const struct tiling *t, double taps,
                             double goes) {
    const int64_t positions = t->images * t->shape[0] * t->shape[1] * t->shape[2];
    const double tap =
        OUTPUTS_FACTOR * OUT_POSITIONS * OUT_VECTORS / k->problem.machine.multiply_adds;
    const double pieces = (double)divide_up(positions, OUT_POSITIONS);
    return (double)(t->blocks / OUT_BLOCKS) *
           (pieces * (taps * tap + goes * OUTPUTS_PIECE) +
            (double)positions * OUT_BLOCKS * k->kernels->rows * OUTPUTS_RESULT);
}

/* Cycles of a run if the data of a tile fit the cache. */
static double near_cycles(const struct kernel *k, const struct run *run, const struct plan *plan,
                          const struct tiling *t) {
    const struct machine *machine = &k->problem.machine;
    const struct axis *a = plan->axes;
    double subs[AXES], taps[AXES];
    for (int i = 0; i < AXES; i++) {
        subs[i] = (double)most(least(a[i].out_stride, a[i].output), 1);
        taps[i] = (double)k->problem.kernel[i] /
                  (double)(k->problem.forward ? 1 : k->problem.strides[i]);
    }
    const double all_subs = subs[0] * subs[1] * subs[2];
    const double share = taken_share(plan, t);
    const double depth = share * taps[0] * taps[1] * taps[2] * (double)k->problem.channels_in;
    const int64_t planes = t->images * t->shape[0];
    const double goes = (double)divide_up(most(k->problem.channels_in, 1), t->channels);
    const double blocks = (double)t->blocks * k->packing.rows;
    const int64_t positions = (t->shape[1] - 1) * t->pitch + t->shape[2];
    double sums = t->compact
                      ? row_cycles(&k->problem, k->kernels, k->packing.rows,
                                   planes * t->shape[1] * t->shape[2], depth / goes)
                      : (double)planes * (t->straight ? straight_cycles : row_cycles)(
                                             &k->problem, k->kernels, k->packing.rows, positions,
                                             depth / goes);
    sums *= goes * (double)t->blocks * all_subs * needed_share(&k->problem);
    if (t->outputs) sums = all_subs * outputs_cycles(k, t, depth, goes);
    sums += (double)packed_size(k, (int64_t)(blocks * depth * all_subs)) /
            weight_bytes_per_cycle(
                machine, machine->sure_level2,
                (double)packed_size(k, k->problem.groups * k->packing.group_size));
    if (share < 1) sums += blocks * depth * TAKEN_WEIGHT;
    if (k->codes || k->problem.longer) sums += blocks * depth * all_subs * TAKEN_WEIGHT;
    /* Rows without zeros between them are copied together. */
    const double rows = (double)(t->images * t->extent[0] * t->extent[1]) *
                        (double)plan->residues * (double)k->problem.channels_in;
    const int joined = a[2].in_stride == 1 && t->pitch == a[2].data;
    double copies = rows * (COPIED_ROW / (double)(joined ? t->extent[1] : 1) +
                                  COPIED_ELEMENT * (double)t->pitch);
    const double out_rows = blocks * subs[0] * subs[1] * (double)(planes * t->shape[1]);
    const double outs = out_rows * (double)t->shape[2] * subs[2];
    double panel = 0, results;
    if (t->compact) {
        panel = depth * all_subs * (double)(planes * t->shape[1]) *
                (PANEL_ROW + PANEL_ELEMENT * (double)t->shape[2]);
        results = out_rows * PANEL_RESULT_ROW * subs[2] + outs * PANEL_RESULT;
    } else {
        results = out_rows * RESULT_ROW + outs * (a[2].out_stride > 2 ? SCATTERED_RESULT : RESULT);
    }
    if (t->depthwise && k->problem.channels_out == 1) {
        sums = depthwise_cycles(k, plan, t, all_subs, depth);
        if (t->data_bytes > FIRST_LEVEL) sums *= DEPTHWISE_FAR;
        if (a[2].out_stride == 1) results = 0;
    }
    if (t->straight) results = 0;
    if (t->outputs) results = 0;
    if (t->vectors > 1) {
        sums = channel_vectors_cycles(k, plan, t, all_subs, depth);
        copies = results = 0;
    }
    double tile = (double)t->groups * (sums + copies + panel + results) + DIRECT_TILE;
    if (t->jobs > t->threads) {
        /* Tiles at the edges are smaller; with one tile per thread, the largest one decides. */
        double whole = (double)k->problem.groups * (double)run->batch * (double)k->packing.blocks;
        double tiled = (double)round_up(k->problem.groups, t->groups) *
                       (double)(t->image_groups * t->images) *
                       (double)(t->row_groups * t->blocks);
        for (int i = 0; i < AXES; i++) {
            whole *= (double)most(a[i].last - a[i].first, 1);
            tiled *= (double)(most(t->grid[i], 1) * t->shape[i]);
        }
        tile *= whole / tiled;
    }
    return scheduled_cycles(tile, t->jobs, t->threads);
}

double one_position_cycles(const struct kernel *k) {
    const struct machine *machine = &k->problem.machine;
    double taps = 1;
    for (int a = 0; a < AXES; a++) taps *= (double)k->problem.kernel[a];
    const double values = taps * k->packing.rows * (double)k->problem.channels_in;
    const double all = (double)(k->problem.groups * k->packing.group_size * k->kernels->size);
    return CALL_CYCLES + values / k->kernels->lanes +
           values * k->kernels->size / weight_bytes_per_cycle(machine, machine->sure_level2, all) +
           taps * k->packing.rows * PANEL_RESULT;
}

int64_t depthwise_groups(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *t, int64_t tiles) {
    struct tiling one = *t;
    one.groups = one.jobs = one.threads = 1;
    const int64_t fit = (int64_t)(CHANNELS_CYCLES / near_cycles(k, run, plan, &one));
    const int64_t few = least(tiles / (JOBS_A_THREAD * most(t->threads, 1)), k->problem.groups);
    return most(1, least(fit, few) / t->vectors) * t->vectors;
}

double direct_cycles(const struct kernel *k, const struct run *run, const void *of_plan,
                     const void *tiling) {
    const struct plan *plan = of_plan;
    const struct tiling *t = tiling;
    if (t->one_position)
        return scheduled_cycles((double)run->batch * one_position_cycles(k) * (double)t->blocks,
                                t->jobs, t->threads);
    const double cycles = near_cycles(k, run, plan, t);
    const double used = (double)(t->compact ? t->panel_bytes : t->data_bytes);
    const double cache = (double)data_cache(&k->problem.machine);
    return used > cache ? cycles * (1 + FAR_DATA * (used - cache) / cache) : cycles;
}
