/* Depthwise layers, with one input and one output channel per group, or four whose codes are one element:
 *
 *   for each channel of a job:
 *     copy its data of the tile, with zeros around them
 *     for each sub-convolution: sum its taps at all positions, in order, then bias and activation
 *
 * The GEMM of a sub-convolution of one channel, a product of a vector and a matrix:
 *   M  1: the output channel
 *   K  taps of the sub-convolution
 *   N  positions v of the tile, in vectors; a tap is a constant distance in the data
 *
 * The sums are bitwise equal to those of other layers.  Tables and tiles are made once for all
 * channels of a job.
 */
#include "direct/cost.h"
#include "direct/direct.h"

#include <string.h>

/* A sub-convolution whose rows are rows of the output, for all channels of a job. */
struct plain_sub {
    struct sub sub; /* of the first channel */
    struct channel_rows rows;
    int64_t first_group, zs, ys, out_pitch;
    int straight; /* sum rows in the output; else sum one long row with gaps, and copy the rows */
};

static struct plain_sub plain_sub_of(const struct direct_context *c,
                                     const struct direct_tile *tile, int64_t qz, int64_t qy) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t count = tile->shape[2];
    struct plain_sub plain = {.sub = sub_of(c, tile, qz, qy, 0), .first_group = tile->group,
                              .zs = positions_along(tile, &a[0], 0, qz),
                              .ys = positions_along(tile, &a[1], 1, qy),
                              .out_pitch = a[1].out_stride * c->run->extent};
    const int64_t all = (plain.ys - 1) * t->pitch + count;
    plain.straight = depthwise_by_rows(c->k, t, tile->shape[1], count, c->plan->depth);
    plain.rows = (struct channel_rows){plain.sub.taps, plain.sub.offsets,
                                       plain.straight ? plain.ys : 1,
                                       plain.straight ? count : all, t->pitch,
                                       plain.straight ? plain.out_pitch : all};
    return plain;
}

/* Sum one sub-convolution of a channel. */
static void sum_plain(const struct direct_context *c, const struct direct_tile *tile,
                      const struct plain_sub *plain) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const struct microkernels *kernels = c->kernels;
    const int64_t size = kernels->size, count = tile->shape[2], out_pitch = plain->out_pitch;
    const int64_t ys = plain->ys, *q = plain->sub.q;
    /* Functions are fastest on long rows without gaps. */
    const struct epilogue *epilogue = &c->k->epilogue, none = {.activation = ACT_NONE};
    const struct addition *addition = c->run->addition;
    const int later = addition || epilogue->activation == ACT_FUNCTION;
    const int joined = out_pitch == count;
    const int64_t packed =
        plain->sub.packed + (tile->group - plain->first_group) * c->packing->group_size;
    const char *weights = (const char *)c->k->packed + packed * size;
    const char *bias = c->k->bias, *data = tile->data;
    if (bias) bias += tile->group * size;
    for (int64_t z = 0; z < plain->zs && ys > 0; z++, data += t->plane * size) {
        char *out = out_row(c, tile, 0, 0, (tile->first[0] + z) * a[0].out_stride + q[0],
                            tile->first[1] * a[1].out_stride + q[1]) +
                    tile->first[2] * size;
        kernels->sum_channel(&plain->rows, data, weights, bias, later ? &none : epilogue,
                             plain->straight ? out : tile->sums);
        if (!plain->straight)
            kernels->copy_lines(tile->sums, t->pitch, ys, count, out, out_pitch);
        if (!later) continue;
        for (int64_t row = 0; row < (joined ? 1 : ys); row++, out += out_pitch * size) {
            if (addition) add_to(addition, out, out, count * (joined ? ys : 1));
            else kernels->activate(epilogue, out, count * (joined ? ys : 1));
        }
    }
}

#define MOST_ROW_PARTS 9 /* residues of the first two axes of strides of three */

/* Whether elements are not converted, and are contiguous or every other one in a row. */
static int is_simple(const struct direct_context *c) {
    const struct axis *row = &c->plan->axes[2];
    return element_size((enum element)c->problem->element) == c->kernels->size &&
           c->run->step[2] == 1 && row->in_stride <= 2 && row->residues == row->in_stride &&
           c->plan->axes[0].residues * c->plan->axes[1].residues <= MOST_ROW_PARTS;
}

/* The location of the rows of a residue of the first two axes in a tile's data. */
struct row_part {
    struct stretch z, y;
    int64_t from, to; /* its first element that is copied, of the data and of the tile's */
};

/* The parts of a tile, and the columns of all parts, of one or two residues. */
struct row_parts {
    int64_t count;
    struct row_part part[MOST_ROW_PARTS];
    struct stretch evens, odds;
};

static struct row_parts parts_of(const struct direct_context *c, const struct direct_tile *tile) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t *step = c->run->step;
    struct row_parts parts = {.count = a[0].residues * a[1].residues,
                          .evens = stretch_of(c, tile, 2, 0),
                          .odds = stretch_of(c, tile, 2, a[2].in_stride - 1)};
    for (int64_t i = 0; i < parts.count; i++) {
        const int64_t rz = a[0].residue + i / a[1].residues, ry = a[1].residue + i % a[1].residues;
        const struct stretch z = stretch_of(c, tile, 0, rz), y = stretch_of(c, tile, 1, ry);
        parts.part[i] = (struct row_part){
            z, y, (z.begin * a[0].in_stride + rz) * step[0] +
                      (y.begin * a[1].in_stride + ry) * step[1] +
                          parts.evens.begin * a[2].in_stride,
            i * a[2].residues * t->residue_stride + z.before * t->plane + y.before * t->pitch +
                parts.evens.before};
    }
    return parts;
}

/* Clear the elements before, between and after the rows of a residue; `columns` hold data. */
static void clear_around(const struct tiling *t, const struct row_part *part,
                         const struct stretch *columns, int64_t size, char *to) {
    char *done = to, *const end = to + (t->extent[0] * t->plane + t->extent[2]) * size;
    for (int64_t z = 0; z < part->z.count; z++)
        for (int64_t y = 0; y < part->y.count; y++) {
            char *row = to + ((part->z.before + z) * t->plane + (part->y.before + y) * t->pitch +
                              columns->before) * size;
            clear_row(done, row - done);
            done = row + columns->count * size;
        }
    clear_row(done, end - done);
}

static void clear_parts(const struct direct_context *c, const struct row_parts *parts, char *data) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t size = c->kernels->size, columns = c->plan->axes[2].residues;
    for (int64_t i = 0; i < parts->count; i++)
        for (int64_t rx = 0; rx < columns; rx++)
            clear_around(t, &parts->part[i], rx ? &parts->odds : &parts->evens, size,
                         data + (i * columns + rx) * t->residue_stride * size);
}

/* Overwrite the data of another channel, if is_simple(): the zeros around them remain. */
static void copy_over(const struct direct_context *c, const struct direct_tile *tile,
                      const struct row_parts *parts, char *data) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, *step = c->run->step;
    const int64_t pitch = a[1].in_stride * step[1];
    const char *from = c->data + (tile->first_image * c->run->image_step +
                                  tile->group * c->run->channel_step) * size;
    for (const struct row_part *part = parts->part; part < parts->part + parts->count; part++) {
        const char *row = from + part->from * size;
        char *to = data + part->to * size;
        for (int64_t i = 0; i < part->z.count; i++) {
            if (a[2].in_stride == 1)
                c->kernels->copy_lines(row, pitch, part->y.count, parts->evens.count, to, t->pitch);
            else
                c->kernels->split_lines(row, pitch, part->y.count, parts->evens.count,
                                        parts->odds.count, to, t->pitch, t->residue_stride);
            row += a[0].in_stride * step[0] * size;
            to += t->plane * size;
        }
    }
    if (data > tile->data)
        spread_channel(c, data, c->plan->residues * t->residue_stride + c->kernels->lanes, tile->data, data);
}

void run_depthwise(const struct direct_context *c, struct direct_tile *tile) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t spread = spread_of(c->problem);
    const struct input_block all = {0, c->problem->channels_in, 1, 1, 0};
    const int64_t end = least(tile->group + t->groups, c->problem->groups);
    const int64_t zs = subs_along(&a[0]), ys = subs_along(&a[1]);
    const int simple = is_simple(c);
    /* Else rows of several channels are summed, or become results of codes. */
    const int is_plain = c->problem->channels_out == 1 && spread == 1 && !c->run->results &&
                         rows_are_plain(c->k, c->run, c->plan);
    struct row_parts parts;
    struct plain_sub plain;
    char *data = NULL; /* where channels are copied to: the second place if they are spread */
    if (simple) {
        parts = parts_of(c, tile);
        /* The data of a row begin at a cache line, after the zeros. */
        const int64_t before = parts.evens.before, lanes = c->kernels->lanes;
        tile->data += (round_up(before, lanes) - before) * c->kernels->size;
        data = tile->data + (spread - 1) * t->channel_stride * c->kernels->size;
        clear_parts(c, &parts, data);
    }
    for (int first = 1; tile->group < end; tile->group++, first = 0) {
        if (simple) copy_over(c, tile, &parts, data);
        else copy_data(c, tile, 0, all.count);
        for (int64_t sub = 0; sub < zs * ys; sub++) {
            if (is_plain && (first || zs * ys > 1))
                plain = plain_sub_of(c, tile, sub / ys, sub % ys);
            if (is_plain) sum_plain(c, tile, &plain);
            else run_flat(c, tile, &all, sub / ys, sub % ys, 0);
        }
    }
}
