/* Sums a sub-convolution in rows with gaps between them: in scratch or in the output itself, from
 * copied data or in place. */
#include "direct/direct.h"

/* The data of a tile from a channel on, if they are read without a copy. */
static const char *data_in_place(const struct direct_context *c, const struct direct_tile *tile,
                                 int64_t channel) {
    const int64_t index = tile->group * data_channels(c->problem) + channel / spread_of(c->problem);
    return c->data + (tile->first_image * c->run->image_step + index * c->run->channel_step +
                      tile->first[2]) * c->kernels->size;
}

void copy_plain(const struct direct_context *c, const struct direct_tile *tile,
                const struct input_block *in) {
    const int64_t size = c->kernels->size, step = c->run->channel_step * size;
    const int64_t stride = c->plan->tiling.channel_stride * size, count = tile->shape[2];
    const int64_t copied = c->in_place ? count % c->kernels->lanes : count;
    const char *from = data_in_place(c, tile, in->first) + (count - copied) * size;
    if (spread_of(c->problem) > 1) {
        for (int64_t channel = 0; channel < in->count; channel += 2, from += step)
            spread_channel(c, from, count, tile->data + channel * stride, tile->data + (channel + 1) * stride);
        return;
    }
    for (int64_t channel = 0; channel < in->count && copied > 0; channel++)
        c->kernels->copy_rows(from + channel * step, 0, 1, copied * size, 0, step,
                              tile->data + channel * stride);
}

/* Sum whole vectors of positions at `out`, in the output itself if its elements are sums, and the rest in
 * scratch. */
static void sum_straight(const struct direct_context *c, const struct direct_tile *tile,
                         const struct input_block *in, const struct sweep *sweep, char *out) {
    const int64_t size = c->kernels->size, rest = sweep->positions % c->kernels->lanes;
    const int64_t whole = sweep->positions - rest;
    const int64_t channel = packing_channel(c->packing, sweep->first_block);
    const int64_t channel_step = c->run->results ? sweep->row_stride : c->run->output[0] * c->run->output[1] * c->run->extent;
    struct sweep part = *sweep;
    part.positions = whole;
    part.sums = out;
    part.row_stride = channel_step;
    part.together = 1;
    if (c->in_place) {
        part.data = data_in_place(c, tile, in->first);
        part.offsets = c->in_place;
        part.channel_step = c->run->channel_step;
    }
    if (whole > 0) sum_blocks(c, tile, in, &part);
    if (rest > 0) {
        struct sweep last = *sweep;
        last.positions = rest;
        last.data += c->in_place ? 0 : whole * size;
        if (c->run->results) last.sums += whole * size;
        sum_blocks(c, tile, in, &last);
    }
    if (c->run->results) return;
    for (int64_t b = 0; in->ends && rest > 0 && b < sweep->blocks; b++) {
        const int64_t first = packing_channel(c->packing, sweep->first_block + b) - channel;
        c->kernels->copy_lines(sweep->sums + b * sweep->block_stride * size, sweep->row_stride,
                               packing_rows(c->packing, sweep->first_block + b), rest,
                               out + (first * channel_step + whole) * size, channel_step);
        add_rows(c, out + (first * channel_step + whole) * size, channel_step * size,
                 packing_rows(c->packing, sweep->first_block + b), rest);
    }
    part.positions = c->run->addition ? whole : sweep->positions; /* add_rows() activates */
    activate_blocks(c, in, &part);
}

void run_flat(const struct direct_context *c, const struct direct_tile *tile,
              const struct input_block *in, int64_t qz, int64_t qy, int64_t b) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const int64_t size = c->kernels->size, lines = subs_along(&a[2]);
    const int64_t positions = t->images * t->shape[0] * t->line;
    const int64_t block_size = lines * c->packing->rows * positions;
    const int whole = in->begins && in->ends;
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
                if (t->straight && c->run->results)
                    sum_straight(c, tile, in, &sweep, sweep.sums);
                else if (t->straight)
                    sum_straight(c, tile, in, &sweep,
                                 out_row(c, tile, image,
                                         packing_channel(c->packing, sweep.first_block),
                                         (tile->first[0] + z) * a[0].out_stride + qz,
                                         tile->first[1]) + tile->first[2] * size);
                else {
                    sum_blocks(c, tile, in, &sweep);
                    activate_blocks(c, in, &sweep);
                }
            }
    }
    if (!in->ends || (t->straight && !c->run->results)) return;
    if (c->problem->folded > 1) {
        /* Their blocks are equal and contiguous. */
        const int64_t channels = c->problem->channels_out / c->problem->folded;
        if (c->run->results)
            write_codes(c, tile, 0, subs, sums, positions, channels * positions);
        else write_rows(c, tile, 0, channels, subs, sums, positions, channels * positions);
        return;
    }
    for (int64_t i = 0; i < sweep.blocks && c->run->results; i++)
        write_codes(c, tile, sweep.first_block + i, subs, sums + i * block_size * size, positions,
                    sweep.sub_stride);
    for (int64_t i = 0; i < sweep.blocks && !c->run->results; i++)
        write_rows(c, tile, packing_channel(c->packing, sweep.first_block + i),
                   packing_rows(c->packing, sweep.first_block + i), subs,
                   sums + i * block_size * size, positions, sweep.sub_stride);
}
