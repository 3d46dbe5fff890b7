/* The cost model: predicts the cycles of a tiling.
 *
 * These functions do not touch data.  The model is meant to rank tilings and algorithms rather than
 * to predict times.  docs/performance-notes.md lists the machines on which it was checked.  struct
 * machine describes the processor.
 */
#include "cost_model.h"
#include "direct/direct.h"
#include "direct/output_vectors.h"

#include <math.h>

/* -------------------------------------------------------------- constants -- */

#define COST(name, value) static double name = value;
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

/* -------------------------------------------------------- micro-kernels -- */

/* Cycles of a micro-kernel for one tap: those of its multiply-adds or of its loads, the larger of
 * the two, and at least the latency of a multiply-add. */
static double kernel_tap_cycles(const struct machine *machine, int rows, int columns) {
    const double rate = machine->multiply_adds;
    const double multiply_adds = rows * columns / rate;
    const double loads = BROADCAST_CYCLES * rows + LOAD_CYCLES * columns / rate;
    return fmax(fmax(multiply_adds, loads), FMA_LATENCY);
}

/* Bytes of weights read per cycle. */
static double weight_bytes_per_cycle(const struct machine *machine, int64_t level2,
                                     double all_weights) {
    /* Other cores use the cache as well: half of it may still hold weights of the last run. */
    const double kept = (double)machine->level3 / 2;
    return all_weights > kept                          ? FROM_MEMORY
           : all_weights > kept / 2                    ? FROM_MEMORY_AND_THIRD_LEVEL
           : all_weights > (double)level2 / 2           ? FROM_THIRD_LEVEL
                                                       : FROM_SECOND_LEVEL;
}

/* Cycles for all taps of one row block at a number of positions. */
static double row_cycles(const struct machine *machine, const struct microkernels *kernels,
                         int rows, int64_t positions, double taps) {
    int64_t vectors = divide_up(positions, kernels->lanes);
    int columns = kernels->columns[rows];
    double cycles = CALL_CYCLES;
    while (vectors > 0) {
        int64_t blocks;
        columns = next_blocks(kernels, rows, columns, vectors, &blocks);
        cycles += (double)blocks * (taps * kernel_tap_cycles(machine, rows, columns) +
                                    SUM_CYCLES * rows * columns + BLOCK_CYCLES);
        vectors -= blocks * columns;
    }
    return cycles;
}

/* Like row_cycles(), with whole vectors summed in the output itself, and the rest in scratch. */
static double straight_cycles(const struct machine *machine, const struct microkernels *kernels,
                              int rows, int64_t positions, double taps) {
    const int64_t rest = positions % kernels->lanes;
    double cycles = row_cycles(machine, kernels, rows, positions - rest, taps);
    if (rest > 0) cycles += row_cycles(machine, kernels, rows, rest, taps);
    return cycles;
}

/* --------------------------------------------------------------- threads -- */

double scheduled_cycles(double tile, int64_t jobs, int64_t threads) {
    threads = most(threads, 1);
    const double rounds = (double)divide_up(jobs, threads);
    const double even = (double)most(jobs, 1) / (double)threads;
    return tile * (WAITING_SHARE * rounds + (1 - WAITING_SHARE) * even + DISTURBED_TILES);
}

double search_threads(const struct run *run, tiling_search search, void *context) {
    double best = -1;
    /* If scratch is short, fewer threads with larger tiles may be faster. */
    for (int64_t threads = run->threads; threads > 0; threads /= 2) {
        const int64_t enough = run->thread_bytes * threads;
        const double cycles = search(context, threads, least(run->scratch_bytes, enough));
        if (cycles < 0) continue;
        if (best >= 0 && cycles >= best) break;
        best = cycles;
        if (run->scratch_bytes >= enough) break;
    }
    return best >= 0 ? best : search(context, 1, run->scratch_bytes);
}

int64_t next_part(int64_t whole, int64_t part, int64_t fine) {
    const int64_t parts = divide_up(whole, part);
    const int64_t next = divide_up(whole, parts + 1 + parts / fine);
    return next < part ? next : part - 1;
}

/* ---------------------------------------------------------- direct sums -- */

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
    const double filled = (double)k->layer.groups / (double)round_up(k->layer.groups, t->vectors);
    return DEPTHWISE_CHANNEL / (double)t->vectors + subs * taps +
           (data * VECTORS_POSITION + outs * (VECTORS_POSITION + taps * VECTORS_TAP)) /
               (double)t->vectors / filled;
}

/* Cycles of the sums of a sub-convolution with vectors of output channels, and of writing it. */
static double outputs_cycles(const struct kernel *k, const struct tiling *t, double taps,
                             double goes) {
    const int64_t positions = t->images * t->shape[0] * t->shape[1] * t->shape[2];
    const double tap =
        OUTPUTS_FACTOR * OUT_POSITIONS * OUT_VECTORS / k->layer.machine.multiply_adds;
    const double pieces = (double)divide_up(positions, OUT_POSITIONS);
    return (double)(t->blocks / OUT_BLOCKS) *
           (pieces * (taps * tap + goes * OUTPUTS_PIECE) +
            (double)positions * OUT_BLOCKS * k->kernels->rows * OUTPUTS_RESULT);
}

/* Cycles of a run if the data of a tile fit the cache. */
static double near_cycles(const struct kernel *k, const struct run *run, const struct plan *plan,
                          const struct tiling *t) {
    const struct machine *machine = &k->layer.machine;
    const struct axis *a = plan->axes;
    double subs[AXES], taps[AXES];
    for (int i = 0; i < AXES; i++) {
        subs[i] = (double)most(least(a[i].out_stride, a[i].output), 1);
        taps[i] = (double)k->layer.kernel[i] / (double)(k->layer.forward ? 1 : k->layer.strides[i]);
    }
    const double all_subs = subs[0] * subs[1] * subs[2];
    const double share = taken_share(plan, t);
    const double depth = share * taps[0] * taps[1] * taps[2] * (double)k->layer.channels_in;
    const int64_t planes = t->images * t->shape[0];
    const double goes = (double)divide_up(most(k->layer.channels_in, 1), t->channels);
    const double blocks = (double)t->blocks * k->packing.rows;
    const int64_t positions = (t->shape[1] - 1) * t->pitch + t->shape[2];
    double sums = t->compact
                      ? row_cycles(machine, k->kernels, k->packing.rows,
                                   planes * t->shape[1] * t->shape[2], depth / goes)
                      : (double)planes * (t->straight ? straight_cycles : row_cycles)(
                                             machine, k->kernels, k->packing.rows, positions,
                                             depth / goes);
    sums *= goes * (double)t->blocks * all_subs;
    if (t->outputs) sums = all_subs * outputs_cycles(k, t, depth, goes);
    sums += blocks * depth * all_subs * k->kernels->size /
            weight_bytes_per_cycle(machine, machine->sure_level2,
                                    (double)k->layer.groups * (double)k->packing.group_size *
                                        k->kernels->size);
    if (share < 1) sums += blocks * depth * TAKEN_WEIGHT;
    /* Rows without zeros between them are copied together. */
    const double rows = (double)(t->images * t->extent[0] * t->extent[1]) *
                        (double)plan->residues * (double)k->layer.channels_in;
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
    if (t->depthwise) {
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
        double whole = (double)k->layer.groups * (double)run->batch * (double)k->packing.blocks;
        double tiled = (double)round_up(k->layer.groups, t->groups) *
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

double direct_cycles(const struct kernel *k, const struct run *run, const struct plan *plan,
                     const struct tiling *t) {
    const double cycles = near_cycles(k, run, plan, t);
    const double used = (double)(t->compact ? t->panel_bytes : t->data_bytes);
    const double cache = (double)data_cache(&k->layer.machine);
    return used > cache ? cycles * (1 + FAR_DATA * (used - cache) / cache) : cycles;
}

double one_position_cycles(const struct kernel *k) {
    const struct machine *machine = &k->layer.machine;
    double taps = 1;
    for (int a = 0; a < AXES; a++) taps *= (double)k->layer.kernel[a];
    const double values = taps * k->packing.rows * (double)k->layer.channels_in;
    const double all = (double)(k->layer.groups * k->packing.group_size * k->kernels->size);
    return CALL_CYCLES + values / k->kernels->lanes +
           values * k->kernels->size / weight_bytes_per_cycle(machine, machine->sure_level2, all) +
           taps * k->packing.rows * PANEL_RESULT;
}

int64_t depthwise_groups(const struct kernel *k, const struct run *run, const struct plan *plan,
                         const struct tiling *t, int64_t tiles) {
    struct tiling one = *t;
    one.groups = one.jobs = one.threads = 1;
    const int64_t fit = (int64_t)(CHANNELS_CYCLES / near_cycles(k, run, plan, &one));
    const int64_t few = least(tiles / (JOBS_A_THREAD * most(t->threads, 1)), k->layer.groups);
    return most(1, least(fit, few) / t->vectors) * t->vectors;
}

/* -------------------------------------------------------------- Winograd -- */

/* Cycles of one chunk's products at all points and of fetching their weights. */
static double product_cycles(const struct kernel *k, const struct wino_packing *p,
                             const struct wino_tiling *t) {
    const struct wino_layout *layout = &p->layouts[0];
    const double blocks = (double)t->blocks, cache = (double)k->layer.machine.level2;
    const int columns = (int)(t->width / k->kernels->lanes);
    double products = 0, weights = 0;
    for (int64_t i = 0; i < p->alignments * p->points; i++) {
        const int64_t rows = layout->rows[i];
        if (rows == 0) continue;
        const int64_t micro = wino_blocks(rows, k->kernels), fewest = rows / micro;
        const double larger = (double)(rows % micro), smaller = (double)micro - larger;
        const double tap = smaller * kernel_tap_cycles(&k->layer.machine, (int)fewest, columns) +
                           larger * kernel_tap_cycles(&k->layer.machine, (int)fewest + 1, columns);
        const double depth = (double)p->depth[i % p->points];
        products += blocks * (depth * tap + PRODUCT_BLOCK * (double)micro);
        weights += (double)rows * depth;
    }
    const double panel_bytes = (double)t->panel_size * sizeof(float);
    if (panel_bytes > cache / 2) products += panel_bytes / PANEL_BYTES_LEVEL2;
    return products + weights * sizeof(float) /
                          weight_bytes_per_cycle(&k->layer.machine, k->layer.machine.level2,
                                                 (double)wino_weight_bytes(k, p));
}

/* Cycles of one chunk's outputs; `per_element` is the time of an element relative to 8 lanes. */
static double output_cycles(const struct wino_plan *plan, const struct wino_tiling *t,
                            double by_length, double per_element) {
    const struct wino_packing *p = plan->packing;
    const struct wino_axis *a = p->axes;
    const double positions = (double)t->positions;
    const double rows = (double)(p->layouts[0].count * a[2].stride);
    const double outputs = (double)(a[0].outputs * a[1].outputs * a[2].outputs);
    const double elements = rows * positions * outputs;
    const double written = elements / (double)(plan->interleaved_lines * t->shape[2]);
    const int64_t lines = plan->interleaved_lines;
    const double line = lines == 1 || lines == 2 || lines == 4 ? OUTPUT_LINE
                                                               : OUTPUT_LINE + SCATTERED_LINE;
    const double results = elements * OUTPUT_ELEMENT * per_element +
                           written * (line + OUTPUT_LINE / (double)t->rows_together);
    const int axes = (a[0].points > 1) + (a[1].points > 1) + (a[2].points > 1);
    if (axes == 0) return results;
    return results + rows * positions * by_length *
                         (axes == 2 ? TWO_AXES_VALUE : LAST_AXIS_VALUE) *
                         ((double)p->points + outputs);
}

/* Cycles of transforming one channel of a tile into the panel. */
static double input_cycles(const struct kernel *k, const struct wino_plan *plan,
                           const struct wino_tiling *t, double by_length) {
    const struct wino_packing *p = plan->packing;
    const struct wino_axis *a = p->axes;
    const double values = (double)(p->origins * p->points) * (double)t->positions;
    const double tile_x = (double)t->shape[2], width = (double)t->width;
    if (p->points == 1) {
        const int whole = t->shape[1] == 1 || t->shape[2] == plan->windows[2];
        return values * FLAT_VALUE + (whole ? 0 : values / tile_x * FLAT_ROW) +
               values / width * FLAT_BLOCK;
    }
    const double filled = (double)k->layer.channels_in /
                          (double)round_up(k->layer.channels_in, k->kernels->lanes);
    const double panel_bytes = (double)t->panel_size * sizeof(float);
    const double cache = (double)k->layer.machine.level2;
    const double far = panel_bytes > 16 * cache  ? FARTHEST_LINE
                       : panel_bytes > 4 * cache ? FAR_LINE
                                                 : NEAR_LINE;
    double data = values * (p->parts > 1 ? PART_VALUE : POINT_VALUE);
    if (a[1].points > 1) data += values / (double)a[2].outputs * AXIS_VALUE;
    if (a[0].points > 1) data += values / (double)(a[2].outputs * a[1].outputs) * AXIS_VALUE;
    return by_length / filled * data +
           (double)(t->images * t->block_size) / (double)k->kernels->lanes * GATHERED_VALUE +
           values / tile_x * WINDOW_ROW + values / width * far;
}

double wino_cycles(const struct kernel *k, const struct run *run, const struct wino_plan *plan,
                   const struct wino_tiling *t) {
    const struct wino_packing *p = plan->packing;
    /* Longer vectors need fewer instructions, but cache latencies are the same; halved vectors need
     * more instructions, so caches matter less. */
    const double per_vector = 16. / ((double)k->kernels->lanes * k->layer.machine.multiply_adds);
    const double by_length = fmax((1 + per_vector) / 2, per_vector);
    const int64_t taps = k->layer.kernel[0] * k->layer.kernel[1] * k->layer.kernel[2];
    const double per_output = taps > 1 ? per_vector : by_length;
    const double volume = p->axes[0].points > 1 ? VOLUME_FACTOR : 1;
    /* Tiles at the edges hold less; with one tile per thread, the largest one decides. */
    double full = 1, some_rows = 1, padded = 1;
    if (t->jobs > t->threads) {
        full = (double)run->batch / (double)(t->image_groups * t->images);
        padded = full * (double)wino_count_blocks(plan, t, t->shape[1]) /
                 (double)(t->blocks * t->grid[0] * t->grid[1] * t->grid[2]);
        for (int i = 0; i < AXES; i++)
            full *= (double)plan->windows[i] / (double)(t->grid[i] * t->shape[i]);
        some_rows = (double)p->units / (double)(p->chunk_units * t->row_groups * t->chunks);
    }
    const double fill = full * volume * input_cycles(k, plan, t, by_length) *
                        (double)k->layer.channels_in;
    double sums = some_rows * (double)t->chunks *
                      (padded * product_cycles(k, p, t) +
                       full * volume * output_cycles(plan, t, by_length, per_output)) + WINO_TILE;
    double cycles;
    if (t->fills > 0) {
        sums += (double)t->panel_size * sizeof(float) / PANEL_BYTES_SHARED;
        cycles = scheduled_cycles(fill / (double)t->fills + WINO_TILE, t->places * t->fills,
                                  t->threads) +
                 BARRIER_CYCLES + scheduled_cycles(sums, t->jobs, t->threads);
    } else {
        cycles = scheduled_cycles(sums + fill, t->jobs, t->threads);
    }
    return cycles * (1 - WINO_GAIN / fmax(per_vector, 1)) *
           (p->points > 1 ? 1 : taps == 1 ? ONE_TAP_FACTOR : per_vector < 1 ? 1 : ONE_POINT_FACTOR);
}
