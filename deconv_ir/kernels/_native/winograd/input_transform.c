/* Winograd F(m, r): from data to panels, the GEMMs' B.
 *   K  input channels x parts of the taps
 *   N  windows of the tile, in blocks of `width` positions
 * as [alignment][point][block][K][position].
 *
 * With several points, a vector holds the channels of one position, so that short rows are as fast
 * as long ones.  With one point, rows are copied without a transform.
 */
#include "winograd/tile.h"

#include <string.h>

struct stretch wino_stretch(const struct wino_context *c, const struct wino_tile *tile, int axis) {
    const struct wino_plan *plan = c->plan;
    const int64_t step = plan->packing->axes[axis].step;
    const int64_t first = step * tile->first[axis] + plan->low[axis];
    return stretch_make(first, first + step * (tile->shape[axis] - 1) + plan->reach[axis],
                        c->run->data[axis]);
}

/* Channel `channel` of the tile's group, in one of its images. */
static const char *data_of(const struct wino_context *c, const struct wino_tile *tile,
                           int64_t image, int64_t channel) {
    const struct run *run = c->run;
    const int64_t index =
        tile->group * data_channels(c->problem) + channel / spread_of(c->problem);
    return c->data +
           ((tile->first_image + image) * run->image_step + index * run->channel_step) *
               element_size((enum element)c->problem->element);
}

/* The end of the data in memory: vectors may be read up to there, across rows. */
static const char *data_end(const struct wino_context *c) {
    const struct run *run = c->run;
    int64_t last = most(0, run->image_step) * (run->batch - 1) +
                   most(0, run->channel_step) * (c->problem->groups * data_channels(c->problem) - 1);
    for (int a = 0; a < AXES; a++) last += most(0, run->step[a]) * (run->data[a] - 1);
    return c->data +
           (last + 1) * element_size((enum element)c->problem->element);
}

/* ------------------------------------------ several points: vectors of channels -- */

/* Load a row of codes of four channels as two channels of pairs; returns the second one. */
static const float *load_codes(const struct wino_context *c, const char *row, int64_t count,
                               float *first) {
    float *second = first + c->plan->tiling.loaded_step;
    uint32_t *const to[] = {(uint32_t *)(void *)first, (uint32_t *)(void *)second};
    const uint32_t *from = (const uint32_t *)(const void *)row;
    if (c->run->step[2] != 1 || (uintptr_t)row % sizeof *from) {
        c->kernels->load(I16X2, row, c->run->step[2], count, second);
        from = to[1];
    }
    BY_ISA((enum isa)c->problem->isa, &functions_quantized)->extend(0, from, count, to[0], to[1]);
    return second;
}

/* Copy the data that a tile reads, of a vector of channels of an image, into its block, which is
 * [z][y][x modulo dilation][x / dilation][channel], and raise the levels.
 * Positions without data hold zeros, which are never overwritten. */
static void load_block(const struct wino_context *c, const struct wino_tile *tile, int64_t image,
                      int64_t first, int64_t count) {
    const struct wino_tiling *t = &c->plan->tiling;
    const struct run *run = c->run;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = element_size(element), lanes = c->kernels->lanes;
    const struct stretch z = wino_stretch(c, tile, 0), y = wino_stretch(c, tile, 1);
    const struct stretch x = wino_stretch(c, tile, 2);
    const float *scales =
        c->plan->packing->scales + tile->group * c->problem->channels_in + first;
    const char *data = data_of(c, tile, image, first) + x.begin * run->step[2] * size;
    const int as_it_lies =
        run->step[2] == 1 && element == F32 && (uintptr_t)data % sizeof(float) == 0;
    const char *end = as_it_lies ? data_end(c) : NULL;
    const int64_t spread = spread_of(c->problem);
    const int64_t ahead = first + lanes < c->problem->channels_in ? lanes / spread : 0;
    for (int64_t iz = 0; iz < z.count; iz++)
        for (int64_t iy = 0; iy < y.count; iy++) {
            const char *row = data + ((z.begin + iz) * run->step[0] +
                                      (y.begin + iy) * run->step[1]) * size;
            const float *from[MOST_LANES];
            for (int64_t i = 0; i < lanes; i++) from[i] = tile->loaded; /* zeros */
            for (int64_t i = 0; i < count; i += spread, row += run->channel_step * size) {
                if (run->step[2] == 1)
                    fetch_row(row, ahead * run->channel_step * size, x.count * size);
                float *to = tile->loaded + (i + 1) * t->loaded_step;
                from[i] = as_it_lies ? (const float *)(const void *)row : to;
                if (spread > 1) from[i + 1] = load_codes(c, row, x.count, to);
                else if (!as_it_lies) c->kernels->load(element, row, run->step[2], x.count, to);
            }
            const int64_t at = (z.before + iz) * t->extent[1] + y.before + iy;
            c->transforms->gather(
                from, scales, x.count, end, x.before, c->plan->packing->axes[2].dilation, t->pitch,
                tile->levels + (image * t->extent[0] * t->extent[1] + at) * t->extent[2] +
                    x.before,
                tile->block + at * t->row);
        }
}

/* The state of filling a panel: transformed vectors of channels, [origin][point][position], are
 * transposed into it as soon as they fill whole vectors of positions. */
struct panel_state {
    int64_t first, count; /* channels */
    int64_t done, ready;  /* positions in the panel, and positions that wait for a whole vector */
};

/* Transpose whole vectors of positions into the panel. */
static void flush(const struct wino_context *c, const struct wino_tile *tile,
                  struct panel_state *f) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_tiling *t = &c->plan->tiling;
    const int64_t lanes = c->kernels->lanes;
    const int64_t groups = f->ready / lanes, rest = f->ready % lanes;
    for (int64_t i = 0; i < p->origins * p->points; i++) {
        float *from = tile->ready + i * t->ready_step;
        const int64_t start = c->plan->panel_start[i];
        if (start < 0) continue;
        c->transforms->tile_vectors(from, groups, f->count, f->done, t->width,
                           tile->panel + start + f->first * t->width, t->panel_block);
        memmove(from, from + groups * lanes * lanes, (size_t)(rest * lanes) * sizeof *from);
    }
    f->done += groups * lanes;
    f->ready = rest;
}

/* Fill up the last block with zeros: its unused positions are summed as well, and denormals would
 * be slow. */
static void flush_last(const struct wino_context *c, const struct wino_tile *tile,
                       struct panel_state *f) {
    const struct wino_packing *p = c->plan->packing;
    const int64_t lanes = c->kernels->lanes;
    while (f->done < tile->blocks * c->plan->tiling.width) {
        const int64_t missing = round_up(most(f->ready, 1), lanes) - f->ready;
        for (int64_t i = 0; i < p->origins * p->points; i++)
            memset(tile->ready + i * c->plan->tiling.ready_step + f->ready * lanes, 0,
                   (size_t)(missing * lanes) * sizeof(float));
        f->ready += missing;
        flush(c, tile, f);
    }
}

/* Transforms one row of windows at all points, for the planes of all points of the first axis:
 * along the second axis, then along the last. */
static void transform_windows(const struct wino_context *c, const struct wino_tile *tile,
                              const float *planes, int64_t origin_z, int64_t at_y,
                              int64_t lattice_x, float *out) {
    const struct wino_plan *plan = c->plan;
    const struct wino_tiling *t = &plan->tiling;
    const struct wino_axis *a = plan->packing->axes;
    const int64_t lanes = c->kernels->lanes, line = t->pitch * lanes;
    const float *from[MOST_POINTS], *rows[MOST_POINTS];
    float *to[MOST_POINTS];
    for (int64_t oy = 0; oy < a[1].origins; oy++)
        for (int pz = 0; pz < a[0].points; pz++) {
            const float *plane =
                planes + pz * t->plane + (plan->origin[1][oy] + at_y) * t->row;
            int64_t there = -1;
            for (int64_t ox = 0; ox < a[2].origins; ox++) {
                const int64_t at_x = plan->origin[2][ox] + lattice_x;
                const int64_t residue = at_x % a[2].dilation;
                /* Origins differ by whole dilations, unless sub-convolutions do not. */
                if (residue != there) {
                    for (int i = 0; i < a[1].points; i++) {
                        from[i] = plane + i * a[1].dilation * t->row + residue * line;
                        rows[i] = to[i] = tile->y + i * line;
                    }
                    if (a[1].points > 1)
                        c->transforms->input_transform(a[1].size, from, lanes, to, t->pitch,
                                                       a[1].points);
                    else
                        rows[0] = from[0];
                    there = residue;
                }
                const int64_t origin = (origin_z * a[1].origins + oy) * a[2].origins + ox;
                int64_t point = ((origin * a[0].points + pz) * a[1].points) * a[2].points;
                for (int py = 0; py < a[1].points; py++) {
                    int met = 0; /* points of the row that have weights */
                    for (int i = 0; i < a[2].points; i++, point++) {
                        from[i] = rows[py] + (at_x / a[2].dilation + i) * lanes;
                        to[i] = out + point * t->ready_step;
                        if (plan->panel_start[point] >= 0) met = i + 1;
                    }
                    if (met > 0)
                        c->transforms->input_transform(a[2].size, from, a[2].outputs * lanes, to,
                                          tile->shape[2], met);
                }
            }
        }
}

/* Transforms one image's block at all points, for the windows of every origin. */
static void transform_block(const struct wino_context *c, const struct wino_tile *tile,
                            struct panel_state *f) {
    const struct wino_plan *plan = c->plan;
    const struct wino_tiling *t = &plan->tiling;
    const struct wino_axis *a = plan->packing->axes;
    const int64_t lanes = c->kernels->lanes, all_z = a[0].points * t->plane;
    for (int64_t wz = 0; wz < a[0].dilation * tile->shape[0]; wz++) {
        const int64_t at_z = wz / tile->shape[0] + wz % tile->shape[0] * a[0].step;
        for (int64_t oz = 0; oz < a[0].origins && a[0].points > 1; oz++) {
            const float *from[MOST_POINTS];
            float *to[MOST_POINTS];
            for (int i = 0; i < a[0].points; i++) {
                from[i] = tile->block +
                          (plan->origin[0][oz] + at_z + i * a[0].dilation) * t->plane;
                to[i] = tile->z + oz * all_z + i * t->plane;
            }
            c->transforms->input_transform(a[0].size, from, lanes, to, t->plane / lanes,
                                           a[0].points);
        }
        for (int64_t lattice = 0; lattice < a[1].dilation * a[2].dilation; lattice++)
            for (int64_t wy = 0; wy < tile->shape[1]; wy++) {
                const int64_t at_y = lattice / a[2].dilation + wy * a[1].step;
                for (int64_t oz = 0; oz < a[0].origins; oz++) {
                    const float *planes =
                        a[0].points > 1 ? tile->z + oz * all_z
                                        : tile->block + (plan->origin[0][oz] + at_z) * t->plane;
                    transform_windows(c, tile, planes, oz, at_y, lattice % a[2].dilation,
                                      tile->ready + f->ready * lanes);
                }
                f->ready += tile->shape[2];
                /* Keep room for the next row, and to fill the last vector. */
                if (f->ready + tile->shape[2] + lanes > t->ready_step / lanes) flush(c, tile, f);
            }
    }
}

static void fill_points(const struct wino_context *c, const struct wino_tile *tile, int64_t first,
                       int64_t count) {
    const struct wino_tiling *t = &c->plan->tiling;
    const int64_t lanes = c->kernels->lanes;
    memset(tile->levels, 0, (size_t)t->level_size * sizeof(float));
    memset(tile->block, 0, (size_t)t->block_size * sizeof(float));
    memset(tile->loaded, 0, (size_t)t->loaded_step * sizeof(float));
    for (int64_t done = 0; done < count; done += lanes) {
        struct panel_state f = {first + done, least(lanes, count - done), 0, 0};
        for (int64_t image = 0; image < tile->images; image++) {
            load_block(c, tile, image, f.first, f.count);
            transform_block(c, tile, &f);
        }
        flush_last(c, tile, &f);
    }
}

/* ------------------------------------------------------------ one point: rows -- */

/* Copies the data of one channel of one image that the windows of one origin read, without gaps;
 * zeros at positions without data remain. */
static void copy_rows(const struct wino_context *c, const struct wino_tile *tile, const char *from,
                      const int64_t *origin, float *to) {
    const struct run *run = c->run;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = element_size(element), *shape = tile->shape;
    struct stretch s[AXES];
    for (int a = 0; a < AXES; a++) {
        const int64_t at = tile->first[a] + c->plan->low[a] + c->plan->origin[a][origin[a]];
        s[a] = stretch_make(at, at + shape[a], run->data[a]);
        from += s[a].begin * run->step[a] * size;
    }
    const int64_t rows = s[1].count, row = s[2].count;
    to += (s[0].before * shape[1] + s[1].before) * shape[2] + s[2].before;
    for (int64_t z = 0; z < s[0].count; z++, to += shape[1] * shape[2])
        for (int64_t y = 0; y < rows; y++) {
            const char *at = from + (z * run->step[0] + y * run->step[1]) * size;
            if (run->step[2] == 1) fetch_row(at, run->channel_step * size, row * size);
            c->kernels->load(element, at, run->step[2], row, to + y * shape[2]);
        }
}

/* Fills the lines of one channel, for every origin. */
static void fill_lines(const struct wino_context *c, const struct wino_tile *tile, int64_t channel,
                      float *flat) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_axis *a = p->axes;
    const int64_t line = c->plan->tiling.line;
    for (int64_t i = 0; i < p->origins; i++, flat += line) {
        const int64_t origin[] = {i / a[2].origins / a[1].origins,
                                  i / a[2].origins % a[1].origins, i % a[2].origins};
        for (int64_t image = 0; image < tile->images; image++)
            copy_rows(c, tile, data_of(c, tile, image, channel), origin,
                      flat + image * (tile->positions / tile->images));
    }
}

static void fill_rows(const struct wino_context *c, const struct wino_tile *tile, int64_t first,
                     int64_t count) {
    const struct wino_packing *p = c->plan->packing;
    const struct wino_tiling *t = &c->plan->tiling;
    memset(tile->flat, 0, (size_t)t->flat_size * sizeof(float));
    for (int64_t channel = first; channel < first + count; channel++) {
        fill_lines(c, tile, channel, tile->flat);
        for (int64_t i = 0; i < p->origins; i++)
            c->transforms->tile_line(tile->flat + i * t->line, tile->blocks, t->width,
                                  tile->panel + c->plan->panel_start[i] + channel * t->width,
                                  t->panel_block);
    }
}

void wino_fill_panel(const struct wino_context *c, const struct wino_tile *tile, int64_t first,
                     int64_t count) {
    if (c->plan->packing->points == 1)
        fill_rows(c, tile, first, count);
    else
        fill_points(c, tile, first, count);
}
