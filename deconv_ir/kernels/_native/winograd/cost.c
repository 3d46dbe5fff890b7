/* The cost model of Winograd: predicts the cycles of a tiling, without touching data. */
#include "convolution/costs.h"
#include "winograd/winograd.h"

#include <math.h>

/* Cycles of one chunk's products at all points and of fetching their weights. */
static double product_cycles(const struct kernel *k, const struct wino_packing *p,
                             const struct wino_tiling *t) {
    const struct wino_layout *layout = &p->layouts[0];
    const double blocks = (double)t->blocks, cache = (double)k->problem.machine.level2;
    const int columns = (int)(t->width / k->kernels->lanes);
    double products = 0, weights = 0;
    for (int64_t i = 0; i < p->alignments * p->points; i++) {
        const int64_t rows = layout->rows[i];
        if (rows == 0) continue;
        const int64_t micro = wino_blocks(rows, k->kernels), fewest = rows / micro;
        const double larger = (double)(rows % micro), smaller = (double)micro - larger;
        const double tap = smaller * kernel_tap_cycles(&k->problem, (int)fewest, columns) +
                           larger * kernel_tap_cycles(&k->problem, (int)fewest + 1, columns);
        const double depth = (double)p->depth[i % p->points];
        products += blocks * (depth * tap + PRODUCT_BLOCK * (double)micro);
        weights += (double)rows * depth;
    }
    const double panel_bytes = (double)t->panel_size * sizeof(float);
    if (panel_bytes > cache / 2) products += panel_bytes / PANEL_BYTES_LEVEL2;
    if (k->codes)
        return products + weights * (p->points == 1 || p->subs * p->axes[2].stride > p->alignments
                                         ? SCATTERED_WEIGHT
                                         : TRANSFORMED_WEIGHT);
    return products + weights * sizeof(float) /
                          weight_bytes_per_cycle(&k->problem.machine, k->problem.machine.level2,
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
    const double filled = (double)k->problem.channels_in /
                          (double)round_up(k->problem.channels_in, k->kernels->lanes);
    const double panel_bytes = (double)t->panel_size * sizeof(float);
    const double cache = (double)k->problem.machine.level2;
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

int64_t wino_count_blocks(const struct wino_plan *plan, const struct wino_tiling *t,
                          int64_t height) {
    const struct wino_axis *a = plan->packing->axes;
    const int64_t dilation = a[0].dilation * a[1].dilation * a[2].dilation * t->images;
    const int64_t *w = plan->windows;
    int64_t blocks = 0;
    for (int64_t edge = 0; edge < 1 << AXES; edge++) {
        int64_t positions = dilation, tiles = 1;
        for (int i = 0; i < AXES; i++) {
            const int64_t part = i == 1 ? height : t->shape[i];
            positions *= edge >> i & 1 ? w[i] % part : part;
            tiles *= edge >> i & 1 ? 1 : w[i] / part;
        }
        blocks += tiles * divide_up(positions, t->width);
    }
    return blocks;
}

double wino_cycles(const struct kernel *k, const struct run *run, const void *of_plan,
                   const void *tiling) {
    const struct wino_plan *plan = of_plan;
    const struct wino_tiling *t = tiling;
    const struct wino_packing *p = plan->packing;
    /* Longer vectors need fewer instructions, but cache latencies are the same; halved vectors need
     * more instructions, so caches matter less. */
    const double per_vector = 16. / ((double)k->kernels->lanes * k->problem.machine.multiply_adds);
    const double by_length = fmax((1 + per_vector) / 2, per_vector);
    const int64_t taps = k->problem.kernel[0] * k->problem.kernel[1] * k->problem.kernel[2];
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
                        (double)k->problem.channels_in;
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
