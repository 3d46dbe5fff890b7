/* Depthwise layers, of one input and one output channel a group:
 *
 *   for each channel of a job:
 *     copy its data of the tile, with zeros around them
 *     for each sub-convolution: sum its taps at all positions, in order, then bias and activation
 *
 * The same sums as those of other layers, bit by bit; what these share with more channels, tables
 * and tiles, is found once for all channels of a job.
 */
#include "cost_model.h"
#include "direct/direct.h"

#include <string.h>

/* Sum one sub-convolution whose rows are rows of the output, as they are: straight to there, or all
 * positions of a plane in one go, with what lies between the rows, which are copied then. */
static void sum_plain(const struct context *c, const struct tile *tile, int64_t qz, int64_t qy) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const struct kernels *kernels = c->kernels;
    const struct sub sub = sub_of(c, tile, qz, qy, 0);
    const int64_t size = kernels->size, count = tile->box[2];
    const int64_t zs = positions_along(tile, &a[0], 0, qz);
    const int64_t ys = positions_along(tile, &a[1], 1, qy), all = (ys - 1) * t->pitch + count;
    const int64_t out_pitch = a[1].out_stride * c->run->extent;
    const int straight = depthwise_by_rows(c->k, t, tile->box[1], count, c->plan->depth);
    const struct channel_rows rows = {sub.taps, sub.offsets,
                                      straight ? ys : 1, straight ? count : all,
                                      t->pitch, straight ? out_pitch : all};
    /* Functions want long rows, without what lies between them. */
    const struct epilogue *epilogue = &c->k->epilogue, none = {.activation = ACT_NONE};
    const struct addition *addition = c->run->addition;
    const int later = addition || epilogue->activation == ACT_FUNCTION;
    const int joined = out_pitch == count;
    const char *weights = (const char *)c->k->packed + sub.packed * size;
    const char *bias = c->k->bias, *data = tile->data;
    if (bias) bias += tile->group * size;
    for (int64_t z = 0; z < zs && ys > 0; z++, data += t->plane * size) {
        char *out = out_row(c, tile, 0, 0, (tile->first[0] + z) * a[0].out_stride + qz,
                            tile->first[1] * a[1].out_stride + qy) +
                    tile->first[2] * size;
        kernels->sum_channel(&rows, data, weights, bias, later ? &none : epilogue,
                             straight ? out : tile->sums);
        if (!straight) kernels->copy_lines(tile->sums, t->pitch, ys, count, out, out_pitch);
        if (!later) continue;
        for (int64_t row = 0; row < (joined ? 1 : ys); row++, out += out_pitch * size) {
            if (addition) add_to(addition, out, out, count * (joined ? ys : 1));
            else kernels->activate(epilogue, out, count * (joined ? ys : 1));
        }
    }
}

/* Elements of a row that are stored as they are summed, side by side or every other one. */
static int is_simple(const struct context *c) {
    const struct axis *row = &c->plan->axes[2];
    return element_size((enum element)c->layer->element) == c->kernels->size &&
           c->run->step[2] == 1 && row->in_stride <= 2 && row->residues == row->in_stride;
}

/* Copy the data of a channel, is_simple(), to zeros or to where those of another were: the zeros
 * around them stay. */
static void copy_over(const struct context *c, const struct tile *tile) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, *step = c->run->step;
    const char *from = c->data + (tile->first_image * c->run->image_step +
                                  tile->group * c->run->channel_step) * size;
    const struct stretch evens = stretch_of(c, tile, 2, 0);
    const struct stretch odds = stretch_of(c, tile, 2, a[2].in_stride - 1);
    for (int64_t rz = 0; rz < a[0].residues; rz++) {
        const struct stretch z = stretch_of(c, tile, 0, a[0].residue + rz);
        for (int64_t ry = 0; ry < a[1].residues; ry++) {
            const struct stretch y = stretch_of(c, tile, 1, a[1].residue + ry);
            const char *row =
                from + ((z.begin * a[0].in_stride + a[0].residue + rz) * step[0] +
                        (y.begin * a[1].in_stride + a[1].residue + ry) * step[1] +
                        evens.begin * a[2].in_stride) * size;
            char *to = tile->data + ((rz * a[1].residues + ry) * a[2].residues *
                                         t->residue_stride +
                                     z.before * t->plane + y.before * t->pitch + evens.before) *
                                        size;
            for (int64_t i = 0; i < z.count; i++) {
                if (a[2].in_stride == 1)
                    c->kernels->copy_lines(row, a[1].in_stride * step[1], y.count, evens.count,
                                           to, t->pitch);
                else
                    c->kernels->split_lines(row, a[1].in_stride * step[1], y.count, evens.count,
                                            odds.count, to, t->pitch, t->residue_stride);
                row += a[0].in_stride * step[0] * size;
                to += t->plane * size;
            }
        }
    }
}

void run_depthwise(const struct context *c, struct tile *tile) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const struct go all = {0, 1, 1, 1, 0};
    const int64_t end = least(tile->group + t->groups, c->layer->groups);
    const int simple = is_simple(c), plain = rows_are_plain(c->k, c->run, c->plan);
    if (simple) {
        memset(tile->data, 0, (size_t)t->data_bytes);
        /* The data of a row begin with a cache line; the zeros before them end there. */
        const int64_t before = stretch_of(c, tile, 2, 0).before, lanes = c->kernels->lanes;
        tile->data += (round_up(before, lanes) - before) * c->kernels->size;
    }
    for (; tile->group < end; tile->group++) {
        if (simple) copy_over(c, tile);
        else copy_data(c, tile, 0, 1);
        for (int64_t qz = 0; qz < subs_along(&a[0]); qz++)
            for (int64_t qy = 0; qy < subs_along(&a[1]); qy++)
                if (plain) sum_plain(c, tile, qz, qy);
                else run_flat(c, tile, &all, qz, qy, 0);
    }
}
