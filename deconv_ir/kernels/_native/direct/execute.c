/* Direct sums, one tile after the other: copy data in, multiply, interleave results out.
 *
 * The GEMM of a sub-convolution, of which nothing but the data of a tile is laid out:
 *   M  output channels of a group, in blocks of the micro-kernel's rows
 *   K  input channels x taps of the sub-convolution, `step` channels at a time
 *   N  positions v of the tile, in vectors; a tap is a constant distance in the data
 */
#include "native.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of data that stay in the first-level cache while weights pass. */
#define FIRST_LEVEL_SHARE ((int64_t)16 << 10)
/* Bytes of weights that stay in the second while positions pass. */
#define SECOND_LEVEL_SHARE ((int64_t)256 << 10)
#define SUBS_TOGETHER 8 /* that meet the same data while these are in cache */

struct context {
    const struct kernel *k;
    const struct layer *layer;
    const struct kernels *kernels;
    const struct packing *packing;
    const struct run *run;
    const struct plan *plan;
    const char *data;
    char *out;
    atomic_int *failed; /* set when out of memory */
    int streamed;       /* whether results go past the caches */
};

/* The tile that a job computes. */
struct tile {
    int64_t group, first_image, images, first_block, blocks;
    int64_t first[AXES], box[AXES]; /* v */
    char *data, *panel, *sums, *row; /* scratch */
};

static struct tile tile_of(const struct context *c, int64_t job, void *scratch) {
    const struct tiling *t = &c->plan->tiling;
    struct tile tile;
    for (int a = AXES - 1; a >= 0; a--) {
        const struct axis *axis = &c->plan->axes[a];
        tile.first[a] = axis->first + job % t->grid[a] * t->box[a];
        tile.box[a] = least(t->box[a], axis->last - tile.first[a]);
        job /= t->grid[a];
    }
    tile.first_image = job % t->image_groups * t->images;
    tile.images = least(t->images, c->run->batch - tile.first_image);
    job /= t->image_groups;
    tile.first_block = job % t->row_groups * t->blocks;
    tile.blocks = least(t->blocks, c->packing->blocks - tile.first_block);
    tile.group = job / t->row_groups;
    tile.data = scratch;
    tile.panel = tile.data + t->data_bytes;
    tile.sums = tile.panel + t->panel_bytes;
    tile.row = tile.sums + t->sums_bytes;
    return tile;
}

/* ------------------------------------------------------------- data in -- */

/* What a tile sees of a residue of the data. */
static struct stretch stretch_of(const struct context *c, const struct tile *tile, int axis,
                                 int64_t residue) {
    const struct axis *a = &c->plan->axes[axis];
    return stretch_make(tile->first[axis] + a->low, tile->first[axis] + tile->box[axis] + a->high,
                        divide_up(a->data - residue, a->in_stride));
}

/* Most are short: calls of memset would take longer than they do. */
static inline void clear_row(char *to, int64_t bytes) {
    if (bytes >= 8 * COPY_STEP) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    int64_t i = 0;
    for (; i + COPY_STEP <= bytes; i += COPY_STEP) memset(to + i, 0, COPY_STEP);
    for (; i < bytes; i += 4) memset(to + i, 0, 4);
}

/* One image of one channel of one residue; returns whether a guarded layer's data hold an
 * infinity or a NaN. */
static int copy_volume(const struct context *c, const struct tile *tile, const char *from,
                        const int64_t residue[AXES], char *to) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *axes = c->plan->axes;
    const enum element element = (enum element)c->layer->element;
    const int64_t size = c->kernels->size, in_size = element_size(element);
    const struct stretch z = stretch_of(c, tile, 0, residue[0]);
    const struct stretch y = stretch_of(c, tile, 1, residue[1]);
    const struct stretch x = stretch_of(c, tile, 2, residue[2]);
    const int64_t *step = c->run->step, x_step = axes[2].in_stride * step[2];
    const int64_t planes = tile->box[0] + axes[0].high - axes[0].low;
    const int64_t rows = tile->box[1] + axes[1].high - axes[1].low;
    const int64_t pitch = t->pitch * size, count = x.count * size, gap = pitch - count;
    const int64_t row_step = axes[1].in_stride * step[1] * in_size;
    const int plain = x_step == 1 && size == in_size;
    /* Rows without zeros between them, on either side, are one. */
    const int joined = plain && count == pitch && row_step == pitch;
    /* The rows that have data; none when there is no position in a row. */
    const int64_t first = x.count ? y.before : rows, last = x.count ? y.before + y.count : rows;
    int not_finite = 0;
    for (int64_t i = 0; i < planes; i++) {
        char *row = to + i * t->plane * size;
        clear_row(row, x.before * size);
        row += x.before * size;
        const int64_t iz = i - z.before;
        if (iz < 0 || iz >= z.count) {
            clear_row(row, rows * pitch);
            continue;
        }
        clear_row(row, least(first, rows) * pitch);
        row += first * pitch;
        const char *at =
            from + (((z.begin + iz) * axes[0].in_stride + residue[0]) * step[0] +
                    (y.begin * axes[1].in_stride + residue[1]) * step[1] +
                    (x.begin * axes[2].in_stride + residue[2]) * step[2]) * in_size;
        const int64_t held = last - first;
        if (plain && held) {
            /* Up to the data of the next row: its zeros and this row's are the same.  What is
             * too much is overwritten by that row, or lies in the channel's slack. */
            c->kernels->copy_rows(at, row_step, joined ? 1 : held, joined ? held * count : count,
                                  gap, c->run->channel_step * in_size, row);
            row += held * pitch;
        }
        for (int64_t j = 0; j < held && !plain; j++, at += row_step, row += pitch) {
            if (x_step == 1)
                fetch_row(at, c->run->channel_step * in_size, x.count * in_size);
            c->kernels->load(element, at, x_step, x.count, row);
            clear_row(row + count, gap);
        }
        const int64_t filled = held * pitch;
        if (c->layer->guarded) not_finite |= !all_finite(row - filled, filled / size, (int)size);
        clear_row(row, (rows - last) * pitch);
    }
    return not_finite;
}

static int copy_data(const struct context *c, const struct tile *tile, int64_t first_channel,
                     int64_t channels) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size;
    const int64_t in_size = element_size((enum element)c->layer->element);
    int not_finite = 0;
    for (int64_t channel = 0; channel < channels; channel++) {
        const int64_t index = tile->group * c->layer->channels_in + first_channel + channel;
        for (int64_t i = 0; i < c->plan->residues; i++) {
            const int64_t residue[AXES] = {i / a[2].in_stride / a[1].in_stride,
                                           i / a[2].in_stride % a[1].in_stride,
                                           i % a[2].in_stride};
            for (int64_t image = 0; image < tile->images; image++)
                not_finite |= copy_volume(
                    c, tile,
                    c->data +
                        ((tile->first_image + image) * c->run->image_step +
                         index * c->run->channel_step) * in_size,
                    residue,
                    tile->data + (channel * t->channel_stride + i * t->residue_stride +
                                  image * t->image_stride) * size);
        }
    }
    return not_finite;
}

/* ---------------------------------------------------------------- sums -- */

/* Sum rows at `positions` positions, with the widest micro-kernels that fit. */
static void sum_rows(const struct kernels *kernels, int rows, int64_t positions, int64_t depth,
                     const int32_t *offsets, const char *data, const char *weights, char *sums,
                     int64_t row_stride, int begins, const void *bias,
                     const struct epilogue *finish) {
    int64_t vectors = divide_up(positions, kernels->lanes);
    int columns = kernels->columns[rows];
    while (vectors > 0) {
        while (columns > vectors || !kernels->table[rows][columns]) columns--;
        const int64_t blocks = vectors / columns;
        kernels->table[rows][columns](depth, offsets, data, weights, sums, row_stride, blocks,
                                      begins, bias, finish);
        const int64_t done = blocks * columns;
        data += done * kernels->lanes * kernels->size;
        sums += done * kernels->lanes * kernels->size;
        vectors -= done;
    }
}

/* What the sums of one sub-convolution need. */
struct sub {
    int64_t q[AXES];
    const int32_t *offsets;
    int64_t taps, row_taps; /* all, and those of the first two axes */
    int64_t packed; /* element of the packed filter at which the sub-convolution begins */
};

static struct sub sub_of(const struct context *c, int64_t group, int64_t qz, int64_t qy,
                             int64_t qx) {
    const struct axis *a = c->plan->axes;
    const struct packing *p = c->packing;
    const int64_t q[AXES] = {qz, qy, qx};
    struct sub sub = {{qz, qy, qx}, NULL, 1, 1, 0};
    int64_t list = 0, packed = 0;
    for (int i = 0; i < AXES; i++) {
        const int64_t pattern = a[i].pattern_of[q[i]];
        list = list * a[i].patterns + pattern;
        packed = packed * p->subs[i].count + a[i].sub_of[q[i]];
        const int64_t taps = a[i].pattern_first[pattern + 1] - a[i].pattern_first[pattern];
        sub.taps *= taps;
        if (i < AXES - 1) sub.row_taps *= taps;
    }
    sub.offsets = c->plan->offsets[list];
    sub.packed = group * p->group_size + p->sub_start[packed];
    return sub;
}

/* Input channels that are summed in one go. */
struct go {
    int64_t first, count;
    int begins, ends;
    int guarded; /* whether zeros of the packed filter would meet data that are not finite */
};

/* The data of some sub-convolutions, and where their sums go. */
struct sweep {
    const struct sub *subs;
    int64_t sub_count, first_block, blocks;
    const char *data;
    const int32_t *offsets; /* of all sub-convolutions alike, or NULL: each has its own */
    int64_t positions;
    int64_t channel_step;  /* elements from one channel's data to the next */
    int64_t channel_bytes; /* of one channel that a block of the micro-kernel reads */
    char *sums;
    int64_t row_stride, block_stride, sub_stride; /* elements */
};

/* One block of rows of a folded layer, row by row and without the zeros of the filter: the same
 * sums, bit by bit, of finite data. */
static void sum_guarded(const struct context *c, const struct sub *sub, int64_t channel,
                        int rows, int64_t positions, int64_t depth, const char *data,
                        const char *weights, char *sums, int64_t row_stride, int begins,
                        const char *bias, const struct epilogue *finish) {
    const int64_t size = c->kernels->size, outs = c->layer->channels_out / c->layer->folded;
    const int64_t last_axis = sub->taps / sub->row_taps;
    int32_t *offsets = malloc((size_t)(depth + AHEAD) * sizeof *offsets);
    char *kept = malloc((size_t)(depth * size));
    if (!offsets || !kept) atomic_store(c->failed, 1);
    for (int row = 0; offsets && kept && row < rows; row++) {
        const int whole = (channel + row) / outs < c->layer->guarded;
        int64_t taps = 0;
        for (int64_t k = 0; k < depth; k++) {
            if (!whole && k % last_axis == last_axis - 1) continue;
            offsets[taps] = sub->offsets[k];
            memcpy(kept + taps++ * size, weights + (k * rows + row) * size, (size_t)size);
        }
        memset(offsets + taps, 0, AHEAD * sizeof *offsets);
        sum_rows(c->kernels, 1, positions, taps, offsets, data, kept,
                 sums + row * row_stride * size, row_stride, begins,
                 bias ? bias + row * size : NULL, finish);
    }
    free(offsets);
    free(kept);
}

/* Sum one block of rows of one sub-convolution at some positions, over some channels. */
static void sum_block(const struct context *c, const struct tile *tile, const struct go *go,
                      const struct sweep *sweep, int64_t sub_index, int64_t block_index,
                      int64_t at, int64_t positions) {
    const struct packing *p = c->packing;
    const int64_t size = c->kernels->size;
    const struct sub *sub = &sweep->subs[sub_index];
    const int64_t block = sweep->first_block + block_index, channel = packing_channel(p, block);
    const int rows = packing_rows(p, block);
    const int64_t packed =
        sub->packed + sub->taps * (c->layer->channels_in * channel + go->first * rows);
    const char *bias = c->k->bias;
    if (bias) bias += (tile->group * c->layer->channels_out + channel) * size;
    const int64_t depth = go->count * sub->taps;
    const char *data = sweep->data + at * size;
    const char *weights = (const char *)c->k->packed + packed * size;
    char *sums = sweep->sums + (sub_index * sweep->sub_stride +
                                block_index * sweep->block_stride + at) * size;
    const struct epilogue *finish = go->ends ? &c->k->epilogue : NULL;
    if (!go->ends) bias = NULL;
    if (go->guarded)
        sum_guarded(c, sub, channel, rows, positions, depth, data, weights, sums,
                    sweep->row_stride, go->begins, bias, finish);
    else
        sum_rows(c->kernels, rows, positions, depth,
                 sweep->offsets ? sweep->offsets : sub->offsets, data, weights, sums,
                 sweep->row_stride, go->begins, bias, finish);
}

/* Sum some blocks of rows of some sub-convolutions.
 *
 * As many channels are summed in a go as the first-level cache holds data of,
 * for the positions of one micro-kernel; these data meet the weights of all
 * sub-convolutions and blocks of rows before the next positions are fetched.  The
 * weights, which stream past meanwhile, are read in order and are prefetched;
 * the data, a line here and a line there, cannot be. */
static void sum_blocks(const struct context *c, const struct tile *tile, const struct go *all,
                       const struct sweep *sweep) {
    const struct packing *p = c->packing;
    const int64_t size = c->kernels->size, lanes = c->kernels->lanes;
    const int64_t columns = c->kernels->columns[p->rows];
    int64_t taps = 1;
    for (int64_t i = 0; i < sweep->sub_count; i++) taps = most(taps, sweep->subs[i].taps);
    const int64_t fit = most(FIRST_LEVEL_SHARE / most(sweep->channel_bytes, 1), 1);
    const int64_t channels = least(most(all->count, 1), p->step);
    const int several = all->count > channels;
    /* With one block of rows there is nothing to meet again; and where all
     * channels fit, so may more positions. */
    const int64_t alone = !several && sweep->blocks * sweep->sub_count == 1;
    const int64_t wide = several ? 1 : most(fit / channels, 1);
    const int64_t step = alone ? round_up(sweep->positions, lanes) : wide * columns * lanes;
    const int64_t weights = most(
        SECOND_LEVEL_SHARE / (channels * taps * p->rows * size * sweep->sub_count), 1);
    struct sweep part = *sweep;
    struct go go = *all;
    for (int64_t first = 0; first == 0 || first < all->count; first += channels) {
        go.first = all->first + first;
        go.count = least(channels, all->count - first);
        go.begins = all->begins && first == 0;
        go.ends = all->ends && first + channels >= all->count;
        part.data = sweep->data + first * sweep->channel_step * size;
        for (int64_t from = 0; from < sweep->blocks; from += weights)
            for (int64_t at = 0; at < sweep->positions; at += step)
                for (int64_t sub = 0; sub < sweep->sub_count; sub++)
                    for (int64_t b = from; b < least(from + weights, sweep->blocks); b++)
                        sum_block(c, tile, &go, &part, sub, b, at,
                                  least(step, sweep->positions - at));
    }
}

/* ---------------------------------------------------------- results out -- */

static char *out_row(const struct context *c, const struct tile *tile, int64_t image,
                     int64_t channel, int64_t oz, int64_t oy) {
    const struct axis *a = c->plan->axes;
    const int64_t channels = c->layer->channels_out / c->layer->folded;
    const int64_t index =
        ((tile->first_image + image) * c->layer->groups + tile->group) * channels + channel;
    return c->out + ((index * a[0].output + oz) * a[1].output + oy) *
                                        c->run->extent *
                                        element_size((enum element)c->layer->element);
}

/* Sub-convolutions that exist: an output shorter than the stride has fewer. */
static int64_t subs_along(const struct axis *a) { return least(a->out_stride, a->output); }

/* Positions of a tile at which one exists. */
static int64_t positions_along(const struct tile *tile, const struct axis *a, int axis,
                               int64_t q) {
    return least(tile->box[axis], divide_up(a->output - q, a->out_stride) - tile->first[axis]);
}

/* Interleave sub-convolutions of the last axis into rows of some channels: their lines are `pitch`
 * elements apart. */
static void write_rows(const struct context *c, const struct tile *tile, int64_t first_channel,
                       int64_t channels, const struct sub *sub, const char *sums,
                       int64_t row_stride, int64_t pitch) {
    const struct axis *a = c->plan->axes;
    const struct tiling *t = &c->plan->tiling;
    const enum element element = (enum element)c->layer->element;
    const int64_t size = c->kernels->size, out_size = element_size(element);
    const int64_t stride = a[2].out_stride * c->layer->folded, extent = c->run->extent;
    const int64_t begin = tile->first[2] * stride - c->run->crop, skipped = most(0, -begin);
    const int64_t count = least(begin + tile->box[2] * stride, extent) - begin;
    const int64_t out_pitch = a[1].out_stride * extent * out_size;
    const int64_t channel_pitch = a[0].output * a[1].output * extent * out_size;
    const int64_t ys = positions_along(tile, &a[1], 1, sub->q[1]), ahead = least(ROWS_AHEAD, ys);
    const int direct = out_size == size && skipped == 0 && !c->streamed;
    if (count <= skipped) return;
    for (int64_t i = 0; i < channels; i++)
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < positions_along(tile, &a[0], 0, sub->q[0]); z++) {
                char *out = out_row(c, tile, image, first_channel + i,
                                    (tile->first[0] + z) * a[0].out_stride + sub->q[0],
                                    tile->first[1] * a[1].out_stride + sub->q[1]) +
                            (begin + skipped) * out_size;
                const char *line =
                    sums + (i * row_stride + (image * t->box[0] + z) * t->line) * size;
                for (int64_t y = 0; y < ys; y++, out += out_pitch, line += t->pitch * size) {
                    if (c->streamed)
                        fetch_ends(out, y + ahead < ys ? ahead * out_pitch : channel_pitch,
                                   (count - skipped) * size);
                    c->kernels->interleave(line, pitch, stride, count, direct ? out : tile->row);
                    if (direct) continue;
                    const char *row = tile->row + skipped * size;
                    if (c->streamed) c->kernels->stream(row, (count - skipped) * size, out);
                    else c->kernels->store(element, row, count - skipped, out);
                }
            }
}

/* Write the rows of a panel, which hold one sub-convolution of the last axis. */
static void write_panel(const struct context *c, const struct tile *tile,
                        const int64_t box[AXES], int64_t block, const struct sub *sub,
                        const char *sums, int64_t row_stride) {
    const int rows = packing_rows(c->packing, block);
    const struct axis *a = c->plan->axes;
    const enum element element = (enum element)c->layer->element;
    const int64_t size = c->kernels->size, out_size = element_size(element);
    const int64_t stride = a[2].out_stride, count = box[2];
    const int64_t begin = tile->first[2] * stride + sub->q[2];
    for (int row = 0; row < rows; row++) {
        const char *in = sums + row * row_stride * size;
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < box[0]; z++)
                for (int64_t y = 0; y < box[1]; y++, in += count * size) {
                    const int64_t oz = (tile->first[0] + z) * a[0].out_stride + sub->q[0];
                    const int64_t oy = (tile->first[1] + y) * a[1].out_stride + sub->q[1];
                    char *out = out_row(c, tile, image, packing_channel(c->packing, block) + row,
                                        oz, oy) + begin * out_size;
                    if (out_size == size && size == 4) {
                        for (int64_t i = 0; i < count; i++)
                            memcpy(out + i * stride * 4, in + i * 4, 4);
                        continue;
                    }
                    c->kernels->store(element, in, count, tile->row);
                    for (int64_t i = 0; i < count; i++)
                        memcpy(out + i * stride * out_size, tile->row + i * out_size,
                               (size_t)out_size);
                }
    }
}

/* -------------------------------------------------------------- a tile -- */

/* The blocks of rows from `b` on that are summed together. */
static void run_flat(const struct context *c, const struct tile *tile, const struct go *go,
                     int64_t qz, int64_t qy, int64_t b) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, lines = subs_along(&a[2]);
    const int64_t positions = t->images * t->box[0] * t->line;
    const int64_t block_size = lines * c->packing->rows * positions;
    const int whole = go->begins && go->ends;
    /* At its end the output may have less of this sub-convolution. */
    const int64_t zs = positions_along(tile, &a[0], 0, qz);
    const int64_t ys = positions_along(tile, &a[1], 1, qy);
    if (zs <= 0 || ys <= 0) return;
    struct sub subs[SUBS_TOGETHER];
    struct sweep sweep = {
        .subs = subs,
        .first_block = tile->first_block + b,
        .blocks = least(t->together, tile->blocks - b),
        .positions = (ys - 1) * t->pitch + tile->box[2],
        .channel_step = t->channel_stride,
        .row_stride = positions,
        .block_stride = block_size,
        .sub_stride = c->packing->rows * positions,
    };
    char *sums = tile->sums;
    if (!whole) sums += ((qz * subs_along(&a[1]) + qy) * t->blocks + b) * block_size * size;
    for (int64_t qx = 0; qx < lines; qx += SUBS_TOGETHER) {
        sweep.sub_count = least(SUBS_TOGETHER, lines - qx);
        for (int64_t i = 0; i < sweep.sub_count; i++)
            subs[i] = sub_of(c, tile->group, qz, qy, qx + i);
        sweep.channel_bytes =
            subs[0].row_taps *
            (c->kernels->columns[c->packing->rows] * c->kernels->lanes * size + LINE);
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < zs; z++) {
                sweep.data = tile->data + (image * t->image_stride + z * t->plane) * size;
                sweep.sums = sums + (qx * sweep.sub_stride +
                                     (image * t->box[0] + z) * t->line) * size;
                sum_blocks(c, tile, go, &sweep);
            }
    }
    if (!go->ends) return;
    if (c->layer->folded > 1) {
        /* Their blocks are equal, one after the other. */
        const int64_t channels = c->layer->channels_out / c->layer->folded;
        write_rows(c, tile, 0, channels, subs, sums, positions, channels * positions);
        return;
    }
    for (int64_t i = 0; i < sweep.blocks; i++)
        write_rows(c, tile, packing_channel(c->packing, sweep.first_block + i),
                   packing_rows(c->packing, sweep.first_block + i), subs,
                   sums + i * block_size * size, positions, sweep.sub_stride);
}

/* Copy what a sub-convolution sees into a panel [channel and tap][position] without gaps. */
static void fill_panel(const struct context *c, const struct tile *tile,
                       const int64_t box[AXES], const struct go *go, const struct sub *sub) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t size = c->kernels->size, length = box[2] * size;
    for (int64_t k = 0; k < go->count * sub->taps; k++) {
        const char *from = tile->data + sub->offsets[k] * size;
        char *to = tile->panel + k * t->panel * size;
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < box[0]; z++, to += box[1] * length)
                c->kernels->copy_rows(from + (image * t->image_stride + z * t->plane) * size,
                                      t->pitch * size, box[1], length, 0, 0, to);
    }
}

static void run_compact(const struct context *c, const struct tile *tile, const struct go *go,
                        int64_t qz, int64_t qy, const int32_t *panel_offsets) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, lines = subs_along(&a[2]);
    const int64_t block_size = c->packing->rows * t->panel;
    const int whole = go->begins && go->ends;
    for (int64_t qx = 0; qx < lines; qx++) {
        const struct sub sub = sub_of(c, tile->group, qz, qy, qx);
        int64_t box[AXES];
        for (int i = 0; i < AXES; i++) box[i] = positions_along(tile, &a[i], i, sub.q[i]);
        if (box[0] <= 0 || box[1] <= 0 || box[2] <= 0) continue;
        fill_panel(c, tile, box, go, &sub);
        struct sweep sweep = {
            .subs = &sub,
            .sub_count = 1,
            .data = tile->panel,
            .offsets = panel_offsets,
            .positions = tile->images * box[0] * box[1] * box[2],
            .channel_step = sub.taps * t->panel,
            .channel_bytes = sub.taps * c->kernels->columns[c->packing->rows] *
                             c->kernels->lanes * size,
            .row_stride = t->panel,
            .block_stride = block_size,
        };
        for (int64_t b = 0; b < tile->blocks; b += t->together) {
            sweep.first_block = tile->first_block + b;
            sweep.blocks = least(t->together, tile->blocks - b);
            sweep.sums = tile->sums;
            if (!whole)
                sweep.sums += (((qz * subs_along(&a[1]) + qy) * lines + qx) * t->blocks + b) *
                              block_size * size;
            sum_blocks(c, tile, go, &sweep);
            for (int64_t i = 0; go->ends && i < sweep.blocks; i++)
                write_panel(c, tile, box, sweep.first_block + i, &sub,
                            sweep.sums + i * block_size * size, t->panel);
        }
    }
}

/* What the pieces of a tile have in common: data of some channels that are copied in. */
struct copied {
    const struct context *context;
    const struct tile *tile;
    const struct go *go;
};

static int64_t block_groups(const struct tiling *t, const struct tile *tile) {
    return t->compact ? 1 : divide_up(tile->blocks, t->together);
}

/* A sub-convolution of the first two axes, at some blocks of rows. */
static void run_piece(void *argument, int64_t piece, void *scratch) {
    const struct copied *copied = argument;
    const struct context *c = copied->context;
    const struct tiling *t = &c->plan->tiling;
    const struct go *go = copied->go;
    struct tile tile = *copied->tile;
    /* The thread's own, but for sums that wait for more channels; the tile's begin with data. */
    const int64_t away = (char *)scratch - tile.data;
    tile.panel += away;
    tile.row += away;
    if (go->begins && go->ends) tile.sums += away;
    const int64_t groups = block_groups(t, &tile), ys = subs_along(&c->plan->axes[1]);
    const int64_t b = piece % groups * t->together, sub = piece / groups;
    if (t->compact) run_compact(c, &tile, go, sub / ys, sub % ys, c->plan->panel_offsets);
    else run_flat(c, &tile, go, sub / ys, sub % ys, b);
}

static void run_tile(void *context, int64_t job, void *scratch) {
    const struct context *c = context;
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const struct tile tile = tile_of(c, job, scratch);
    const int64_t channels = c->layer->channels_in;
    const int64_t pieces = subs_along(&a[0]) * subs_along(&a[1]) * block_groups(t, &tile);
    struct go go = {0, 0, 1, 0, 0};
    do {
        go.count = least(t->channels, channels - go.first);
        go.ends = go.first + go.count >= channels;
        go.guarded = copy_data(c, &tile, go.first, go.count);
        struct copied copied = {c, &tile, &go};
        parallel_pieces(run_piece, &copied, pieces, scratch);
        go.first += go.count;
        go.begins = 0;
    } while (go.first < channels);
}

/* --------------------------------------------------------------- a run -- */

int is_streamed(const struct kernel *k, const struct run *run) {
    const enum element element = (enum element)k->layer.element;
    const int64_t size = element_size(element);
    const int64_t row = run->extent * size;
    const int64_t rows = run->batch * k->layer.groups * k->layer.channels_out / k->layer.folded *
                         run->output[0] * run->output[1];
    return (element == F32 || element == F64) && row >= STREAMED_ROW &&
           rows * row >= STREAMED_BYTES;
}

int execute(const struct kernel *k, const struct run *run, const struct plan *plan,
            const void *data, void *out) {
    atomic_int failed = 0;
    struct context context = {k,    &k->layer, k->kernels, &k->packing, run,
                              plan, data,      out,        &failed,     is_streamed(k, run)};
    int64_t low[AXES], high[AXES];
    for (int a = 0; a < AXES; a++) {
        const struct axis *axis = &plan->axes[a];
        const int64_t step = axis->out_stride * (a == 2 ? k->layer.folded : 1);
        const int64_t crop = a == 2 ? run->crop : 0, end = a == 2 ? run->extent : axis->output;
        low[a] = least(most(0, axis->first * step - crop), end);
        high[a] = most(low[a], least(axis->last * step - crop, end));
    }
    int done = fill_outside(k, run, out, low, high);
    if (!done)
        done = parallel_run(run_tile, &context, plan->tiling.jobs, plan->tiling.threads,
                            plan->tiling.bytes);
    return done ? done : atomic_load(&failed) ? OUT_OF_MEMORY : 0;
}
