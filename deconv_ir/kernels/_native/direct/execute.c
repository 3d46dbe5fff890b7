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

static struct direct_tile tile_of(const struct direct_context *c, int64_t job, void *scratch) {
    const struct tiling *t = &c->plan->tiling;
    struct direct_tile tile;
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

/* Copy the data that a sub-convolution reads into a panel without gaps, [channel,
 * tap][position]. */
static void fill_panel(const struct direct_context *c, const struct direct_tile *tile,
                       const int64_t shape[AXES], const struct input_block *in,
                       const struct sub *sub) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t size = c->kernels->size, length = shape[2] * size;
    for (int64_t k = 0; k < in->count * sub->taps; k++) {
        const char *from = tile->data + sub->offsets[k] * size;
        char *to = tile->panel + k * t->panel * size;
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < shape[0]; z++, to += shape[1] * length)
                c->kernels->copy_rows(from + (image * t->image_stride + z * t->plane) * size,
                                      t->pitch * size, shape[1], length, 0, 0, to);
    }
}

static void run_compact(const struct direct_context *c, const struct direct_tile *tile,
                        const struct input_block *in, int64_t qz, int64_t qy,
                        const int32_t *panel_offsets) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, lines = subs_along(&a[2]);
    const int64_t block_size = c->packing->rows * t->panel;
    const int whole = in->begins && in->ends;
    for (int64_t qx = 0; qx < lines; qx++) {
        const struct sub sub = sub_of(c, tile, qz, qy, qx);
        int64_t shape[AXES];
        for (int i = 0; i < AXES; i++) shape[i] = positions_along(tile, &a[i], i, sub.q[i]);
        if (shape[0] <= 0 || shape[1] <= 0 || shape[2] <= 0) continue;
        fill_panel(c, tile, shape, in, &sub);
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
            sum_blocks(c, tile, in, &sweep);
            activate_blocks(c, in, &sweep);
            for (int64_t i = 0; in->ends && i < sweep.blocks; i++)
                write_panel(c, tile, shape, sweep.first_block + i, &sub,
                            sweep.sums + i * block_size * size, t->panel);
        }
    }
}

/* Shared by the pieces of a tile: the copied data of some channels. */
struct copied_tile {
    const struct direct_context *context;
    const struct direct_tile *tile;
    const struct input_block *in;
};

static int64_t block_groups(const struct tiling *t, const struct direct_tile *tile) {
    return t->compact ? 1 : divide_up(tile->blocks, t->together);
}

/* A sub-convolution of the first two axes, at some blocks of rows. */
static void run_piece(void *argument, int64_t piece, void *scratch) {
    const struct copied_tile *copied = argument;
    const struct direct_context *c = copied->context;
    const struct tiling *t = &c->plan->tiling;
    const struct input_block *in = copied->in;
    struct direct_tile tile = *copied->tile;
    /* Use the scratch of this thread, except for the data, and for sums to which channels are added
     * later.  `tile.data` is the start of the scratch of the tile's own thread. */
    const int64_t away = (char *)scratch - tile.data;
    tile.panel += away;
    tile.row += away;
    tile.weights += away;
    if (in->begins && in->ends) tile.sums += away;
    const int64_t groups = block_groups(t, &tile), ys = subs_along(&c->plan->axes[1]);
    const int64_t b = piece % groups * t->together, sub = piece / groups;
    if (t->outputs) run_output_vectors(c, &tile, in, sub / ys, sub % ys, b);
    else if (t->compact) run_compact(c, &tile, in, sub / ys, sub % ys, c->plan->panel_offsets);
    else run_flat(c, &tile, in, sub / ys, sub % ys, b);
}

static void run_tile(void *context, int64_t job, void *scratch) {
    const struct direct_context *c = context;
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    struct direct_tile tile = tile_of(c, job, scratch);
    if (t->depthwise) {
        if (t->vectors > 1) run_channel_vectors(c, &tile);
        else run_depthwise(c, &tile);
        return;
    }
    const int64_t channels = c->problem->channels_in;
    const int64_t pieces = subs_along(&a[0]) * subs_along(&a[1]) * block_groups(t, &tile);
    struct input_block in = {0, 0, 1, 0};
    do {
        in.count = least(t->channels, channels - in.first);
        in.ends = in.first + in.count >= channels;
        if (c->plain) copy_plain(c, &tile, &in);
        else copy_data(c, &tile, in.first, in.count);
        struct copied_tile copied = {c, &tile, &in};
        parallel_pieces(run_piece, &copied, pieces, scratch);
        in.first += in.count;
        in.begins = 0;
    } while (in.first < channels);
}

/* Channels at a multiple of this distance share few sets of the first-level cache. */
#define CHANNELS_MEET 512

/* Whether the first row of a plane is all that is read, and each of its positions gives one
 * result. */
static int data_are_plain(const struct run *run, const struct plan *plan) {
    const int64_t row = run->output[2];
    if (run->pads_begin[0] || run->pads_begin[1]) return 0;
    const int one = run->data[2] == row && run->output[0] * run->output[1] == 1 && plan->depth == 1;
    return plan->tiling.straight && one && !run->pads_begin[2] && run->step[2] == 1 &&
           plan->axes[2].in_stride == 1 && run->channel_step >= row;
}

/* The offsets of channels of plain data that are read in place.  NULL: they are copied. */
static int32_t *offsets_in_place(const struct kernel *k, const struct run *run,
                                 const struct plan *plan) {
    const struct tiling *t = &plan->tiling;
    const int64_t step = run->channel_step;
    if (!data_are_plain(run, plan) || spread_of(&k->problem) > 1 || step > INT32_MAX / t->channels ||
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
    struct direct_context context = {.k = k, .problem = &k->problem, .kernels = k->kernels,
                              .functions = BY_ISA((enum isa)k->problem.isa, &functions_quantized),
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
        const int64_t step = axis->out_stride * (a == 2 ? k->problem.folded : 1);
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
