/* Winograd F(m, r), one tile after the other: products at each point, then outputs.
 *
 * One GEMM for each point of the transforms and each alignment of windows:
 *   M  output channels x sub-convolutions that have weights at the point, CHUNK_ROWS at a time
 *   K  input channels x parts of the taps
 *   N  windows of the tile, in blocks of `width` positions
 */
#include "winograd/tile.h"

#include <string.h>

/* Sets up the tile of one place and one group of rows. */
static void tile_make(const struct wino_context *c, int64_t place, int64_t row_group,
                      float *scratch, struct wino_tile *out) {
    const struct wino_plan *plan = c->plan;
    const struct wino_tiling *t = &plan->tiling;
    const struct wino_axis *a = plan->packing->axes;
    int64_t rest = place;
    out->c = c;
    out->positions = a[0].dilation * a[1].dilation * a[2].dilation;
    for (int i = AXES - 1; i >= 0; i--) {
        const int64_t at = rest % t->grid[i];
        out->first[i] = wino_tile_begin(plan, t, i, at);
        out->shape[i] = wino_tile_begin(plan, t, i, at + 1) - out->first[i];
        out->positions *= out->shape[i];
        rest /= t->grid[i];
    }
    out->first_image = rest % t->image_groups * t->images;
    out->images = least(t->images, c->run->batch - out->first_image);
    out->positions *= out->images;
    out->blocks = divide_up(out->positions, t->width);
    out->group = rest / t->image_groups;
    out->first_chunk = row_group * t->chunks;
    out->chunks = least(t->chunks, plan->packing->chunks - out->first_chunk);
    /* Filling the panel and computing results reuse the same scratch. */
    out->block = out->zeros = scratch;
    out->z = out->block + t->block_size;
    out->y = out->z + t->z_size;
    out->ready = out->y + t->y_size;
    out->loaded = out->ready + t->ready_size;
    out->flat = out->loaded + t->loaded_size;
    out->panel = scratch + t->work_size;
    out->levels = out->panel + (c->shared ? 0 : t->panel_size);
    out->uneven = (int32_t *)(void *)(out->levels + t->level_size);
    out->uneven_count = 0;
    out->weights = out->levels + t->level_size + t->uneven_size;
    if (c->shared) out->panel = c->shared + place * t->shared_size;
    out->sums = out->zeros + t->line;
    out->out = out->zeros + t->sums_size;
    out->row = out->out + t->out_size;
    /* Window w of line i is at base + count * (w + the line's shift) + i; if shifts differ, a tile
     * has all windows of an axis. */
    const int64_t count = plan->interleaved_lines, extent = c->run->output[2];
    out->groups = out->shape[2] + plan->interleaved_high;
    out->begin = plan->interleaved_base + count * out->first[2];
    out->before = most(0, -out->begin);
    out->elements = least(count * out->groups, extent - out->begin) - out->before;
    out->begin += out->before;
}

/* ------------------------------------------------------------- products -- */

/* Sum some rows over the channels of all parts, for some blocks of positions at one point. */
static void sum_rows(const struct wino_context *c, int64_t positions, int64_t rows,
                     int64_t channels, const float *panel, const float *weights, float *sums,
                     int64_t line, const float *bias) {
    const struct wino_tiling *t = &c->plan->tiling;
    const int64_t width = t->width, columns = width / c->kernels->lanes;
    const int64_t blocks = wino_blocks(rows, c->kernels);
    const int64_t step = divide_up(channels, divide_up(channels, wino_go(c->kernels)));
    /* As wino_block_first() divides them. */
    const int64_t least_rows = rows / blocks, larger = rows % blocks;
    for (int64_t first = 0; first < channels; first += step)
        for (int64_t position = 0; position < positions; position++)
            for (int64_t block = 0, row = 0, count; block < blocks; block++, row += count) {
                count = least_rows + (block < larger);
                c->kernels->table[count][columns](
                    least(step, channels - first), c->plan->offsets,
                    panel + position * t->panel_block + first * width,
                    weights + row * channels + first * count,
                    sums + row * line + position * width, line, 1,
                    first == 0, bias && first + step >= channels ? bias + row : NULL,
                    NULL, weights_ahead(weights + row * channels + first * count));
            }
}

static void sum_chunk(const struct wino_context *c, const struct wino_tile *tile, int64_t chunk,
                      const struct wino_layout *layout) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_tiling *t = &c->plan->tiling;
    const float *weights = tile->weights;
    if (c->k->codes)
        wino_transform_codes(c->k, p, tile->group, chunk, tile->weights);
    else weights = p->weights + tile->group * p->chunk_first[p->chunks] + p->chunk_first[chunk];
    const int64_t point_step = t->blocks * t->panel_block;
    const float *bias =
        p->bias + (tile->group * p->units + chunk * p->chunk_units) * p->axes[2].stride;
    int64_t line = 0;
    for (int64_t i = 0; i < p->alignments * p->points; i++) {
        const int64_t rows = layout->rows[i], depth = p->depth[i % p->points];
        const float *panel = tile->panel + i * point_step;
        float *sums = tile->sums + line * t->line;
        if (c->k->codes && chunk + 1 < p->chunks)
            wino_fetch_codes(c->k, p, tile->group, chunk + 1, i, p->alignments * p->points);
        if (rows)
            sum_rows(c, tile->blocks, rows, depth, panel, weights, sums, t->line,
                     p->points == 1 ? bias : NULL);
        weights += rows * depth + (c->k->codes ? CODES_GAP : 0);
        bias += rows;
        line += rows;
    }
}

/* ---------------------------------------------------------- results out -- */

/* Transform the sums of one row at the points to outputs, along one axis after the other; the last
 * transform adds the bias, or divides integers by the factors of their weights. */
static void transform_row(const struct wino_context *c, const struct wino_tile *tile,
                          const float **sums, float bias, float *out, float **outputs) {
    const struct wino_axis *a = c->plan->packing->axes;
    const int64_t line = c->plan->tiling.line;
    const int pz = a[0].points, py = a[1].points, px = a[2].points;
    const int mz = a[0].outputs, my = a[1].outputs, mx = a[2].outputs;
    float *free_line = tile->out;
    const float *after_x[MOST_POINTS][MOST_POINTS][MOST_OUTPUTS];
    const float *after_y[MOST_POINTS][MOST_OUTPUTS][MOST_OUTPUTS];
    const float *from[MOST_POINTS];
    float *to[MOST_OUTPUTS];
    const struct wino_divisor none = DIVISOR_OF_ONE;
    const struct wino_divisor divisor = wino_divisor_of(c->plan->packing->choice.size);
    for (int z = 0; z < pz; z++)
        for (int y = 0; y < py; y++) {
            for (int i = 0; i < px; i++) from[i] = sums[(z * py + y) * px + i];
            after_x[z][y][0] = from[0];
            if (px == 1) continue;
            for (int i = 0; i < mx; i++, free_line += line)
                after_x[z][y][i] = to[i] = py == 1 && pz == 1 ? out + i * line : free_line;
            c->transforms->output_transform(a[2].size, from, to, tile->positions,
                                            py == 1 && pz == 1 ? bias : 0,
                                            py == 1 && pz == 1 ? divisor : none);
        }
    for (int z = 0; z < pz; z++)
        for (int x = 0; x < mx; x++) {
            for (int i = 0; i < py; i++) from[i] = after_x[z][i][x];
            after_y[z][0][x] = from[0];
            if (py == 1) continue;
            for (int i = 0; i < my; i++, free_line += line)
                after_y[z][i][x] = to[i] = pz == 1 ? out + (i * mx + x) * line : free_line;
            c->transforms->output_transform(a[1].size, from, to, tile->positions,
                                            pz == 1 ? bias : 0, pz == 1 ? divisor : none);
        }
    for (int y = 0; y < my; y++)
        for (int x = 0; x < mx; x++) {
            for (int i = 0; i < pz; i++) from[i] = after_y[i][y][x];
            outputs[y * mx + x] = (float *)from[0];
            if (pz == 1) continue;
            for (int i = 0; i < mz; i++)
                outputs[(i * my + y) * mx + x] = to[i] = out + ((i * my + y) * mx + x) * line;
            c->transforms->output_transform(a[0].size, from, to, tile->positions, bias,
                                            divisor);
        }
}

/* A plane of some neighbouring channels of the output: the tile's `iz`th plane of windows, output j of
 * sub-convolution qy of the second axis. */
struct written_plane {
    int64_t image, channel, channels, z;
    int64_t iz, qy, j;
};

/* Writes results of codes from `count` interleaved rows: the first is row y of the plane, the others are `step` rows
 * apart. */
static void write_codes(const struct wino_context *c, const struct wino_tile *tile,
                        const struct written_plane *w, int64_t y, int64_t step, int64_t count) {
    const struct results *r = c->run->results;
    const int64_t extent = c->run->output[1], width = c->run->output[2];
    const int64_t pitch = tile->shape[2] * c->plan->interleaved_lines;
    const int64_t before = least(count, y < 0 ? divide_up(-y, step) : 0);
    y += before * step;
    const int64_t rows = least(count - before, divide_up(extent - y, step));
    const float *from = tile->row + before * pitch + tile->before;
    int64_t position = (w->z * extent + y) * width + tile->begin;
    if (rows <= 0) return;
    write_rows_of_results(r, w->image, w->channel, w->channels, position, step * width, rows,
                          tile->elements, (const char *)from, c->plan->tiling.row_step, pitch);
    for (int64_t i = 0; i < rows; i++, position += step * width)
        activate_results(r, w->image, w->channel, w->channels, position, tile->elements);
}

/* Writes the rows of a plane.  Divisions are avoided: they take longer than a short row. */
static void write_plane(const struct wino_context *c, const struct wino_tile *tile,
                        const float *const *lines, const struct written_plane *w) {
    const struct wino_plan *plan = c->plan;
    const struct wino_tiling *t = &plan->tiling;
    const struct wino_axis *a = plan->packing->axes;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = element_size(element), extent = c->run->output[1];
    const int64_t tile_x = tile->shape[2], tile_y = tile->shape[1];
    const int64_t lattice_step = a[2].dilation * tile_y * tile_x;
    const int64_t together = t->rows_together;
    const int64_t row_size = tile_x * plan->interleaved_lines;
    const int64_t row_step = a[1].step * a[1].stride, pitch = row_step * c->run->output[2] * size;
    const int64_t channel_pitch = c->run->output[0] * extent * c->run->output[2] * size;
    const int64_t ahead = least(ROWS_AHEAD, tile_y);
    const int64_t all = c->problem->groups * c->problem->channels_out;
    char *plane = c->out + ((w->image * all + w->channel) * c->run->output[0] + w->z) * extent *
                               c->run->output[2] * size;
    for (int64_t sublattice = 0; sublattice < a[1].dilation; sublattice++) {
        const int64_t lattice_at = (w->iz * a[1].dilation + sublattice) * lattice_step;
        for (int64_t first = 0; first < tile_y; first += together) {
            const int64_t some = least(together, tile_y - first);
            const int64_t top =
                wino_output(&a[1], w->qy, tile->first[1] + first, sublattice, w->j);
            for (int64_t i = 0; i < w->channels; i++)
                c->transforms->interleave(
                    lines, lattice_at + first * tile_x + i * t->out_step, plan->interleaved_lines,
                    together > 1 ? some * tile_x : tile->groups, tile->row + i * t->row_step);
            if (c->run->results) {
                write_codes(c, tile, w, top, row_step, some);
                continue;
            }
            for (int64_t channel = 0; channel < w->channels; channel++)
                for (int64_t i = 0; i < some; i++) {
                    const int64_t y = top + i * row_step;
                    if (y < 0 || y >= extent) continue;
                    float *from =
                        tile->row + channel * t->row_step + i * row_size + tile->before;
                    char *row = plane + channel * channel_pitch +
                                (y * c->run->output[2] + tile->begin) * size;
                    const int64_t next =
                        first + i + ahead < tile_y ? ahead * pitch : channel_pitch;
                    if (c->run->addition) add_to(c->run->addition, row, from, tile->elements);
                    if (!c->streamed) {
                        fetch_results(row, next, tile->elements * size);
                        c->kernels->store(element, from, tile->elements, row);
                        continue;
                    }
                    fetch_ends(row, next, tile->elements * size);
                    c->kernels->stream((const char *)from, tile->elements * size, row);
                }
        }
    }
}

/* Writes the rows of one unit, and of those of the next channels, from the lines of the first one, [last
 * sub-convolution][output]. */
static void write_units(const struct wino_context *c, const struct wino_tile *tile, int64_t unit,
                        int64_t channels, float *const *outputs) {
    const struct wino_plan *plan = c->plan;
    const struct wino_packing *p = plan->packing;
    const struct wino_axis *a = p->axes;
    const int64_t qz = unit % p->subs / a[1].stride;
    const int64_t tile_xy = tile->shape[1] * tile->shape[2];
    const int64_t all = a[0].outputs * a[1].outputs * a[2].outputs;
    const float *lines[MOST_INTERLEAVED];
    if (tile->elements <= 0) return;
    struct written_plane w = {
        .channel = tile->group * c->problem->channels_out + unit / p->subs,
        .channels = channels,
        .qy = unit % a[1].stride,
    };
    for (int64_t j = 0; j < a[0].outputs * a[1].outputs; j++) {
        const int64_t jz = j / a[1].outputs;
        w.j = j % a[1].outputs;
        for (int64_t i = 0; i < plan->interleaved_lines; i++) {
            const struct wino_line *line = &plan->interleaved[i];
            lines[i] = outputs[line->sub * all + j * a[2].outputs + line->output] +
                       line->sublattice * tile_xy - line->shift;
        }
        w.iz = 0;
        for (int64_t image = 0; image < tile->images; image++) {
            w.image = tile->first_image + image;
            for (int64_t sublattice = 0; sublattice < a[0].dilation; sublattice++)
                for (int64_t wz = 0; wz < tile->shape[0]; wz++, w.iz++) {
                    w.z = wino_output(&a[0], qz, tile->first[0] + wz, sublattice, jz);
                    if (w.z >= 0 && w.z < c->run->output[0]) write_plane(c, tile, lines, &w);
                }
        }
    }
}

/* Transforms the sums of one unit to outputs, and activates them. */
static void transform_unit(const struct wino_context *c, const struct wino_tile *tile,
                           int64_t chunk, int64_t unit, const struct wino_layout *layout,
                           float *out, float **outputs) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_axis *a = p->axes;
    const int64_t line = c->plan->tiling.line, last = a[2].stride;
    const int64_t all = a[0].outputs * a[1].outputs * a[2].outputs;
    const float *biases = c->k->bias, *sums[MOST_VALUES];
    const int64_t channel = (chunk * p->chunk_units + unit) / p->subs;
    const float bias = biases ? biases[tile->group * c->problem->channels_out + channel] : 0;
    for (int64_t q = 0; q < last; q++) {
        const int32_t *lines = &layout->line[(unit * last + q) * p->points];
        for (int64_t i = 0; i < p->points; i++)
            sums[i] = lines[i] < 0 ? tile->zeros : tile->sums + lines[i] * line;
        transform_row(c, tile, sums, bias, out + q * all * line, outputs + q * all);
        if (c->k->epilogue.activation != ACT_NONE)
            for (int64_t i = 0; i < all; i++)
                c->kernels->activate(&c->k->epilogue, outputs[q * all + i], tile->positions);
    }
}

static void write_chunk(const struct wino_context *c, const struct wino_tile *tile, int64_t chunk,
                        const struct wino_layout *layout) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_tiling *t = &c->plan->tiling;
    const struct wino_axis *a = p->axes;
    const int64_t subs = wino_together(c->k) > 1 ? p->subs : 1, group = wino_together(c->k) * subs;
    float *out = tile->out + a[0].points * a[2].outputs * (a[1].points + a[1].outputs) * t->line;
    float *outputs[MOST_AXIS_SUBS * MOST_OUTPUTS * MOST_OUTPUTS * MOST_OUTPUTS];
    /* Channels that are written together are `subs` units apart. */
    for (int64_t first = 0; first < layout->count; first += group)
        for (int64_t unit = first; unit < least(first + subs, layout->count); unit++) {
            const int64_t some = least(group, layout->count - first) + first - unit;
            const int64_t channels = divide_up(some, subs);
            for (int64_t i = channels - 1; i >= 0; i--)
                transform_unit(c, tile, chunk, unit + i * subs, layout, out + i * t->out_step,
                               outputs);
            write_units(c, tile, chunk * p->chunk_units + unit, channels, outputs);
        }
}

/* Fills a part of the channels of one shared panel. */
static void fill_part(void *context, int64_t job, void *scratch) {
    const struct wino_context *c = context;
    const int64_t fills = c->plan->tiling.fills, part = job % fills;
    const int64_t channels = c->plan->packing->channels, lanes = c->kernels->lanes;
    const int64_t vectors = divide_up(channels, lanes), first = part * vectors / fills * lanes;
    const int64_t last = least(channels, (part + 1) * vectors / fills * lanes);
    struct wino_tile tile;
    tile_make(c, job / fills, 0, scratch, &tile);
    tile.levels = tile.panel + c->plan->tiling.panel_size + part * c->plan->tiling.level_size;
    wino_fill_panel(c, &tile, first, last - first);
}

/* Computes a piece of a job: a chunk of rows, for a tile whose panel is filled. */
static void run_chunk(void *filled, int64_t piece, void *scratch) {
    struct wino_tile tile = *(const struct wino_tile *)filled;
    const struct wino_context *c = tile.c;
    /* Use the scratch of this thread, except for the panel.  The scratch of the tile's own thread
     * begins at `tile.block`. */
    const int64_t away = (char *)scratch - (char *)tile.block;
    float **const own[] = {&tile.zeros, &tile.sums, &tile.out, &tile.row, &tile.weights};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        *own[i] = (float *)((char *)*own[i] + away);
    memset(tile.zeros, 0, (size_t)c->plan->tiling.line * sizeof(float));
    const int64_t chunk = tile.first_chunk + piece;
    const struct wino_layout *layout = wino_layout_of(c->plan->packing, chunk);
    sum_chunk(c, &tile, chunk, layout);
    write_chunk(c, &tile, chunk, layout);
}

static void run_tile(void *context, int64_t job, void *scratch) {
    const struct wino_context *c = context;
    const struct wino_tiling *t = &c->plan->tiling;
    struct wino_tile tile;
    if (*c->misses) return;
    /* If possible, a thread has the same rows at all places; the last places may be smaller. */
    tile_make(c, job % t->places, job / t->places, scratch, &tile);
    if (!c->shared) wino_fill_panel(c, &tile, 0, c->plan->packing->channels);
    parallel_pieces(run_chunk, &tile, tile.chunks, scratch);
    if (t->level_size > 0)
        wino_find_uneven(c, &tile, c->shared ? tile.panel + t->panel_size : tile.levels, t->fills);
    if (tile.uneven_count == 0) return;
    if (c->k->packed) wino_sum_uneven(&tile, scratch);
    else *c->misses = 1;
}

int wino_execute(const struct kernel *k, const struct run *run, const struct wino_plan *plan,
                 const void *data, void *out) {
    atomic_int misses = 0;
    struct wino_context context = {
        k,   &k->problem, k->kernels, wino_transforms(k),
        run, plan,      data,       out,
        NULL, is_streamed(k, run), &misses};
    const struct wino_tiling *t = &plan->tiling;
    int failed = 0;
    if (t->fills == 0) {
        failed = parallel_run(run_tile, &context, t->jobs, t->threads, t->bytes);
        if (!failed && misses) failed = NEEDS_FILTER;
        return failed ? failed : fill_unreached(k, run, out);
    }
    context.shared = take_shared(t->shared_bytes, t->bytes);
    if (!context.shared) return OUT_OF_MEMORY;
    failed = parallel_run(fill_part, &context, t->places * t->fills, t->threads, t->bytes);
    if (!failed) failed = parallel_run(run_tile, &context, t->jobs, t->threads, t->bytes);
    give_shared();
    if (!failed && misses) failed = NEEDS_FILTER;
    return failed ? failed : fill_unreached(k, run, out);
}
