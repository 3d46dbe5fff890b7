/* Direct sums, one tile after the other: copy data in, multiply, interleave results out.
 *
 * The GEMM of a tile and a sub-convolution, which direct/sums.c cuts further:
 *   M  output channels of a group, `blocks` blocks of rows at a time
 *   K  input channels x taps of the sub-convolution, `channels` input channels at a time
 *   N  positions v of the tile: [image][z][y][x], with gaps between rows unless it is compact
 */
#include "direct/channel_vectors.h"
#include "direct/direct.h"
#include "direct/output_vectors.h"

#include <stdlib.h>

#define SUBS_TOGETHER 8 /* sub-convolutions that read the same data while these are in cache */

static struct tile tile_of(const struct context *c, int64_t job, void *scratch) {
    const struct tiling *t = &c->plan->tiling;
    struct tile tile;
    for (int a = AXES - 1; a >= 0; a--) {
        const struct axis *axis = &c->plan->axes[a];
        const int64_t at = job % t->grid[a], all = axis->last - axis->first;
        /* Rows are divided evenly, so that threads end together; positions in whole vectors. */
        const int64_t first = a < AXES - 1 ? at * all / t->grid[a] : at * t->shape[a];
        const int64_t last = a < AXES - 1 ? (at + 1) * all / t->grid[a]
                                          : least(all, first + t->shape[a]);
        tile.first[a] = axis->first + first;
        tile.shape[a] = last - first;
        job /= t->grid[a];
    }
    tile.first_image = job % t->image_groups * t->images;
    tile.images = least(t->images, c->run->batch - tile.first_image);
    job /= t->image_groups;
    tile.first_block = job % t->row_groups * t->blocks;
    tile.blocks = least(t->blocks, c->packing->blocks - tile.first_block);
    tile.group = job / t->row_groups * t->groups;
    tile.data = scratch;
    tile.panel = tile.data + t->data_bytes;
    tile.sums = tile.panel + t->panel_bytes;
    tile.row = tile.sums + t->sums_bytes;
    tile.weights = tile.row + t->row_bytes;
    tile.offsets = (int32_t *)(void *)(tile.weights + t->weights_bytes);
    take_taps(c, &tile);
    return tile;
}

/* The data of a tile from a channel on, if they are read without a copy. */
static const char *data_in_place(const struct context *c, const struct tile *tile,
                                 int64_t channel) {
    const int64_t index = tile->group * c->layer->channels_in + channel;
    return c->data + (tile->first_image * c->run->image_step + index * c->run->channel_step +
                      tile->first[2]) * c->kernels->size;
}

/* Copy plain data; of data that are read in place, only the last partial vector, since reading
 * beyond it might access unmapped memory. */
static void copy_plain(const struct context *c, const struct tile *tile, const struct go *go) {
    const int64_t size = c->kernels->size, step = c->run->channel_step * size;
    const int64_t stride = c->plan->tiling.channel_stride * size, count = tile->shape[2];
    const int64_t copied = c->in_place ? count % c->kernels->lanes : count;
    const char *from = data_in_place(c, tile, go->first) + (count - copied) * size;
    for (int64_t channel = 0; channel < go->count && copied > 0; channel++)
        c->kernels->copy_rows(from + channel * step, 0, 1, copied * size, 0, step,
                              tile->data + channel * stride);
}

/* Sum whole vectors of positions in the output itself, at `out`, and the rest in scratch. */
static void sum_straight(const struct context *c, const struct tile *tile, const struct go *go,
                         const struct sweep *sweep, char *out) {
    const int64_t size = c->kernels->size, rest = sweep->positions % c->kernels->lanes;
    const int64_t whole = sweep->positions - rest;
    const int64_t channel = packing_channel(c->packing, sweep->first_block);
    const int64_t channel_step = c->run->output[0] * c->run->output[1] * c->run->extent;
    struct sweep part = *sweep;
    part.positions = whole;
    part.sums = out;
    part.row_stride = channel_step;
    part.together = 1;
    if (c->in_place) {
        part.data = data_in_place(c, tile, go->first);
        part.offsets = c->in_place;
        part.channel_step = c->run->channel_step;
    }
    if (whole > 0) sum_blocks(c, tile, go, &part);
    if (rest > 0) {
        struct sweep last = *sweep;
        last.positions = rest;
        last.data += c->in_place ? 0 : whole * size;
        sum_blocks(c, tile, go, &last);
    }
    for (int64_t b = 0; go->ends && rest > 0 && b < sweep->blocks; b++) {
        const int64_t first = packing_channel(c->packing, sweep->first_block + b) - channel;
        c->kernels->copy_lines(sweep->sums + b * sweep->block_stride * size, sweep->row_stride,
                               packing_rows(c->packing, sweep->first_block + b), rest,
                               out + (first * channel_step + whole) * size, channel_step);
        add_rows(c, out + (first * channel_step + whole) * size, channel_step * size,
                 packing_rows(c->packing, sweep->first_block + b), rest);
    }
    part.positions = c->run->addition ? whole : sweep->positions; /* add_rows() activates */
    activate_blocks(c, go, &part);
}

void run_flat(const struct context *c, const struct tile *tile, const struct go *go, int64_t qz,
              int64_t qy, int64_t b) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, lines = subs_along(&a[2]);
    const int64_t positions = t->images * t->shape[0] * t->line;
    const int64_t block_size = lines * c->packing->rows * positions;
    const int whole = go->begins && go->ends;
    /* At its end, the output may have fewer positions of this sub-convolution. */
    const int64_t zs = positions_along(tile, &a[0], 0, qz);
    const int64_t ys = positions_along(tile, &a[1], 1, qy);
    if (zs <= 0 || ys <= 0) return;
    struct sub subs[SUBS_TOGETHER];
    struct sweep sweep = {
        .subs = subs,
        .first_block = tile->first_block + b,
        .blocks = least(t->together, tile->blocks - b),
        .positions = (ys - 1) * t->pitch + tile->shape[2],
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
            subs[i] = sub_of(c, tile, qz, qy, qx + i);
        sweep.channel_bytes =
            subs[0].row_taps *
            (c->kernels->columns[c->packing->rows] * c->kernels->lanes * size + CACHE_LINE);
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < zs; z++) {
                sweep.data = tile->data + (image * t->image_stride + z * t->plane) * size;
                sweep.sums = sums + (qx * sweep.sub_stride +
                                     (image * t->shape[0] + z) * t->line) * size;
                if (t->straight)
                    sum_straight(c, tile, go, &sweep,
                                 out_row(c, tile, image,
                                         packing_channel(c->packing, sweep.first_block),
                                         (tile->first[0] + z) * a[0].out_stride + qz,
                                         tile->first[1]) + tile->first[2] * size);
                else {
                    sum_blocks(c, tile, go, &sweep);
                    activate_blocks(c, go, &sweep);
                }
            }
    }
    if (!go->ends || t->straight) return;
    if (c->layer->folded > 1) {
        /* Their blocks are equal and contiguous. */
        const int64_t channels = c->layer->channels_out / c->layer->folded;
        write_rows(c, tile, 0, channels, subs, sums, positions, channels * positions);
        return;
    }
    for (int64_t i = 0; i < sweep.blocks; i++)
        write_rows(c, tile, packing_channel(c->packing, sweep.first_block + i),
                   packing_rows(c->packing, sweep.first_block + i), subs,
                   sums + i * block_size * size, positions, sweep.sub_stride);
}

/* Copy the data that a sub-convolution reads into a panel without gaps, [channel,
 * tap][position]. */
static void fill_panel(const struct context *c, const struct tile *tile,
                       const int64_t shape[AXES], const struct go *go, const struct sub *sub) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t size = c->kernels->size, length = shape[2] * size;
    for (int64_t k = 0; k < go->count * sub->taps; k++) {
        const char *from = tile->data + sub->offsets[k] * size;
        char *to = tile->panel + k * t->panel * size;
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < shape[0]; z++, to += shape[1] * length)
                c->kernels->copy_rows(from + (image * t->image_stride + z * t->plane) * size,
                                      t->pitch * size, shape[1], length, 0, 0, to);
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
        const struct sub sub = sub_of(c, tile, qz, qy, qx);
        int64_t shape[AXES];
        for (int i = 0; i < AXES; i++) shape[i] = positions_along(tile, &a[i], i, sub.q[i]);
        if (shape[0] <= 0 || shape[1] <= 0 || shape[2] <= 0) continue;
        fill_panel(c, tile, shape, go, &sub);
        struct sweep sweep = {
            .subs = &sub,
            .sub_count = 1,
            .data = tile->panel,
            .offsets = panel_offsets,
            .positions = tile->images * shape[0] * shape[1] * shape[2],
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
            activate_blocks(c, go, &sweep);
            for (int64_t i = 0; go->ends && i < sweep.blocks; i++)
                write_panel(c, tile, shape, sweep.first_block + i, &sub,
                            sweep.sums + i * block_size * size, t->panel);
        }
    }
}

/* Shared by the pieces of a tile: the copied data of some channels. */
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
    /* Use the scratch of this thread, except for the data, and for sums to which channels are added
     * later.  `tile.data` is the start of the scratch of the tile's own thread. */
    const int64_t away = (char *)scratch - tile.data;
    tile.panel += away;
    tile.row += away;
    tile.weights += away;
    if (go->begins && go->ends) tile.sums += away;
    const int64_t groups = block_groups(t, &tile), ys = subs_along(&c->plan->axes[1]);
    const int64_t b = piece % groups * t->together, sub = piece / groups;
    if (t->outputs) run_output_vectors(c, &tile, go, sub / ys, sub % ys, b);
    else if (t->compact) run_compact(c, &tile, go, sub / ys, sub % ys, c->plan->panel_offsets);
    else run_flat(c, &tile, go, sub / ys, sub % ys, b);
}

static void run_tile(void *context, int64_t job, void *scratch) {
    const struct context *c = context;
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    struct tile tile = tile_of(c, job, scratch);
    if (t->depthwise) {
        if (t->vectors > 1) run_channel_vectors(c, &tile);
        else run_depthwise(c, &tile);
        return;
    }
    const int64_t channels = c->layer->channels_in;
    const int64_t pieces = subs_along(&a[0]) * subs_along(&a[1]) * block_groups(t, &tile);
    struct go go = {0, 0, 1, 0, 0};
    do {
        go.count = least(t->channels, channels - go.first);
        go.ends = go.first + go.count >= channels;
        if (c->plain) copy_plain(c, &tile, &go);
        else go.guarded = copy_data(c, &tile, go.first, go.count);
        struct copied copied = {c, &tile, &go};
        parallel_pieces(run_piece, &copied, pieces, scratch);
        go.first += go.count;
        go.begins = 0;
    } while (go.first < channels);
}

int is_streamed(const struct kernel *k, const struct run *run) {
    const enum element element = (enum element)k->layer.element;
    const int64_t size = element_size(element);
    const int64_t row = run->extent * size;
    const int64_t rows = run->batch * k->layer.groups * k->layer.channels_out / k->layer.folded *
                         run->output[0] * run->output[1];
    return (element == F32 || element == F64) && row >= STREAMED_ROW &&
           rows * row >= STREAMED_BYTES;
}

int rows_are_plain(const struct kernel *k, const struct run *run, const struct plan *plan) {
    return plan->axes[2].out_stride == 1 && k->layer.folded == 1 && !is_streamed(k, run) &&
           element_size((enum element)k->layer.element) == k->kernels->size;
}

/* Channels at a multiple of this distance share few sets of the first-level cache. */
#define CHANNELS_MEET 512

/* Whether a plane is one row, and each of its positions gives one result. */
static int data_are_plain(const struct run *run, const struct plan *plan) {
    const int64_t row = run->output[2];
    const int one = run->data[2] == row && run->output[0] * run->output[1] == 1 && plan->depth == 1;
    return plan->tiling.straight && one && !run->pads_begin[2] && run->step[2] == 1 &&
           plan->axes[2].in_stride == 1 && run->channel_step >= row;
}

/* The offsets of channels of plain data that are read in place.  NULL: they are copied. */
static int32_t *offsets_in_place(const struct kernel *k, const struct run *run,
                                 const struct plan *plan) {
    const struct tiling *t = &plan->tiling;
    const int64_t step = run->channel_step;
    if (!data_are_plain(run, plan) || step > INT32_MAX / t->channels ||
        step * k->kernels->size % CHANNELS_MEET == 0)
        return NULL;
    int32_t *offsets = calloc((size_t)(t->channels + AHEAD), sizeof *offsets);
    for (int64_t i = 0; offsets && i < t->channels; i++) offsets[i] = (int32_t)(i * step);
    return offsets;
}

int execute(const struct kernel *k, const struct run *given, const struct plan *plan,
            const void *data, void *out) {
    atomic_int failed = 0;
    const struct run joined = join_axes(k, given), *run = &joined;
    struct context context = {.k = k, .layer = &k->layer, .kernels = k->kernels,
                              .packing = &k->packing, .run = run, .plan = plan, .data = data,
                              .out = out, .failed = &failed, .streamed = is_streamed(k, run)};
    if (plan->tiling.one_position) {
        const int64_t none[AXES] = {0, 0, 0};
        const int failed_fill =
            one_position_reaches_all(plan) ? 0 : fill_outside(k, run, out, none, none);
        return failed_fill ? failed_fill
                           : parallel_run(run_one_position, &context, plan->tiling.jobs,
                                          plan->tiling.threads, plan->tiling.bytes);
    }
    int64_t low[AXES], high[AXES];
    for (int a = 0; a < AXES; a++) {
        const struct axis *axis = &plan->axes[a];
        const int64_t step = axis->out_stride * (a == 2 ? k->layer.folded : 1);
        const int64_t crop = a == 2 ? run->crop : 0, end = a == 2 ? run->extent : axis->output;
        low[a] = least(most(0, axis->first * step - crop), end);
        high[a] = most(low[a], least(axis->last * step - crop, end));
    }
    int done = fill_outside(k, run, out, low, high);
    int32_t *offsets = offsets_in_place(k, run, plan);
    context.in_place = offsets;
    context.plain = data_are_plain(run, plan);
    if (!done)
        done = parallel_run(run_tile, &context, plan->tiling.jobs, plan->tiling.threads,
                            plan->tiling.bytes);
    free(offsets);
    return done ? done : atomic_load(&failed) ? OUT_OF_MEMORY : 0;
}
