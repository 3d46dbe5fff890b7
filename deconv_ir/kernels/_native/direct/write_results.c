/* Writes results: sums of sub-convolutions, interleaved into rows of the output. */
#include "direct/direct.h"

#include <string.h>

int rows_are_plain(const struct kernel *k, const struct run *run, const struct plan *plan) {
    return plan->axes[2].out_stride == 1 && k->problem.folded == 1 && !is_streamed(k, run) &&
           element_size((enum element)k->problem.element) == k->kernels->size;
}

char *out_row(const struct direct_context *c, const struct direct_tile *tile, int64_t image,
              int64_t channel, int64_t oz, int64_t oy) {
    const struct axis *a = c->plan->axes;
    const int64_t channels = c->problem->channels_out / c->problem->folded;
    const int64_t index =
        ((tile->first_image + image) * c->problem->groups + tile->group) * channels + channel;
    return c->out + ((index * a[0].output + oz) * a[1].output + oy) *
                                        c->run->extent *
                                        element_size((enum element)c->problem->element);
}

void write_rows(const struct direct_context *c, const struct direct_tile *tile,
                int64_t first_channel, int64_t channels, const struct sub *sub, const char *sums,
                int64_t row_stride, int64_t pitch) {
    const struct axis *a = c->plan->axes;
    const struct tiling *t = &c->plan->tiling;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = c->kernels->size, out_size = element_size(element);
    const int64_t stride = a[2].out_stride * c->problem->folded, extent = c->run->extent;
    const int64_t begin = tile->first[2] * stride - c->run->crop, skipped = most(0, -begin);
    const int64_t count = least(begin + tile->shape[2] * stride, extent) - begin;
    const int64_t out_pitch = a[1].out_stride * extent * out_size;
    const int64_t channel_pitch = a[0].output * a[1].output * extent * out_size;
    const int64_t ys = positions_along(tile, &a[1], 1, sub->q[1]), ahead = least(ROWS_AHEAD, ys);
    const int direct = out_size == size && skipped == 0 && !c->streamed;
    const struct addition *addition = c->run->addition;
    const int pairs = c->streamed && stride == 2 && skipped == 0 && !addition;
    if (count <= skipped) return;
    for (int64_t i = 0; i < channels; i++)
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < positions_along(tile, &a[0], 0, sub->q[0]); z++) {
                char *out = out_row(c, tile, image, first_channel + i,
                                    (tile->first[0] + z) * a[0].out_stride + sub->q[0],
                                    tile->first[1] * a[1].out_stride + sub->q[1]) +
                            (begin + skipped) * out_size;
                const char *line =
                    sums + (i * row_stride + (image * t->shape[0] + z) * t->line) * size;
                for (int64_t y = 0; y < ys; y++, out += out_pitch, line += t->pitch * size) {
                    if (c->streamed)
                        fetch_ends(out, y + ahead < ys ? ahead * out_pitch : channel_pitch,
                                   (count - skipped) * size);
                    if (pairs && c->kernels->stream_pairs(line, pitch, count, out)) continue;
                    c->kernels->interleave(line, pitch, stride, count, direct ? out : tile->row);
                    char *row = direct ? out : tile->row + skipped * size;
                    if (addition) add_to(addition, out, row, count - skipped);
                    if (direct) continue;
                    if (c->streamed) c->kernels->stream(row, (count - skipped) * size, out);
                    else c->kernels->store(element, row, count - skipped, out);
                }
            }
}

/* Write rows of some channels at neighbouring positions, activated. */
static void write_activated(const struct results *r, int64_t image, int64_t channel,
                            int64_t channels, int64_t position, int64_t count, const char *sums,
                            int64_t row_stride) {
    write_results(r, image, channel, channels, position, 1, count, sums, row_stride);
    activate_results(r, image, channel, channels, position, count);
}

#define ZIPPED 256 /* positions that are interleaved at once */

/* Write `count` neighbouring positions, of sums in `stride` lines, which begin `skipped` positions before. */
static void write_zipped(const struct direct_context *c, int64_t image, int64_t channel,
                         int64_t channels, int64_t position, int64_t skipped, int64_t count,
                         const char *sums, int64_t row_stride, int64_t pitch, int64_t stride) {
    uint32_t zipped[MAX_ROWS][ZIPPED + CACHE_LINE / 4];
    const int64_t step = stride <= ZIPPED ? ZIPPED / stride * stride : ZIPPED;
    for (int64_t x = 0; x < skipped + count; x += step) {
        const int64_t some = least(step, skipped + count - x), first = x ? 0 : skipped;
        for (int64_t i = 0; i < channels; i++) {
            const char *line = sums + i * row_stride * 4;
            if (stride <= ZIPPED)
                c->kernels->interleave(line + x / stride * 4, pitch, stride, some, zipped[i]);
            for (int64_t j = 0; stride > ZIPPED && j < some; j++)
                memcpy(&zipped[i][j], line + ((x + j) % stride * pitch + (x + j) / stride) * 4, 4);
            memset(zipped[i] + some, 0, CACHE_LINE);
        }
        write_results(c->run->results, image, channel, channels, position + x + first - skipped, 1,
                      some - first, (const char *)(zipped[0] + first), ZIPPED + CACHE_LINE / 4);
    }
}

void write_codes(const struct direct_context *c, const struct direct_tile *tile, int64_t block,
                 const struct sub *sub, const char *sums, int64_t row_stride, int64_t pitch) {
    const struct axis *a = c->plan->axes;
    const struct tiling *t = &c->plan->tiling;
    const struct results *r = c->run->results;
    const int64_t folded = c->problem->folded, of_group = c->problem->channels_out / folded;
    const int64_t channels = folded > 1 ? of_group : packing_rows(c->packing, block);
    const int64_t channel = tile->group * of_group + packing_channel(c->packing, block);
    const int64_t stride = a[2].out_stride * folded, extent = c->run->extent;
    const int64_t first = tile->first[2] * stride - c->run->crop, begin = most(first, 0);
    const int64_t count = least(first + tile->shape[2] * stride, extent) - begin;
    if (count <= 0) return;
    const int64_t zs = positions_along(tile, &a[0], 0, sub->q[0]);
    const int64_t ys = positions_along(tile, &a[1], 1, sub->q[1]);
    /* Rows without gaps, in the sums and in the output. */
    const int joined = stride == 1 && a[1].out_stride == 1 && count == extent;
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = 0; z < zs; z++) {
            const int64_t oz = (tile->first[0] + z) * a[0].out_stride + sub->q[0];
            const int64_t oy = tile->first[1] * a[1].out_stride + sub->q[1];
            const int64_t at = (oz * a[1].output + oy) * extent + begin;
            const int64_t own = tile->first_image + image;
            const char *line = sums + (image * t->shape[0] + z) * t->line * 4;
            if (joined && t->pitch == extent) {
                write_activated(r, own, channel, channels, at, ys * extent, line, row_stride);
                continue;
            }
            const int64_t out_pitch = a[1].out_stride * extent;
            if (stride == 1)
                write_rows_of_results(r, own, channel, channels, at, out_pitch, ys, count, line,
                                      row_stride, t->pitch);
            for (int64_t y = 0; y < ys && !(joined || (stride == 1 && r->by->is_coded)); y++) {
                const int64_t here = at + y * out_pitch;
                if (stride > 1)
                    write_zipped(c, own, channel, channels, here, begin - first, count,
                                 line + y * t->pitch * 4, row_stride, pitch, stride);
                activate_results(r, own, channel, channels, here, count);
            }
            if (joined) activate_results(r, own, channel, channels, at, ys * extent);
        }
}

/* write_panel() for sums of codes. */
static void write_codes_of_panel(const struct direct_context *c, const struct direct_tile *tile,
                                 const int64_t shape[AXES], int64_t block, const struct sub *sub,
                                 const char *sums, int64_t row_stride) {
    const struct axis *a = c->plan->axes;
    const int64_t channels = packing_rows(c->packing, block), stride = a[2].out_stride;
    const int64_t channel =
        tile->group * c->problem->channels_out + packing_channel(c->packing, block);
    const int64_t begin = tile->first[2] * stride + sub->q[2], extent = c->run->extent;
    const int joined = stride == 1 && a[1].out_stride == 1 && shape[2] == extent;
    const int64_t rows = joined ? 1 : shape[1], count = joined ? shape[1] * extent : shape[2];
    for (int64_t image = 0; image < tile->images; image++)
        for (int64_t z = 0; z < shape[0]; z++)
            for (int64_t y = 0; y < rows; y++, sums += count * 4) {
                const int64_t oz = (tile->first[0] + z) * a[0].out_stride + sub->q[0];
                const int64_t oy = (tile->first[1] + y) * a[1].out_stride + sub->q[1];
                const int64_t at = (oz * a[1].output + oy) * extent + begin;
                const int64_t own = tile->first_image + image;
                if (stride == 1)
                    write_activated(c->run->results, own, channel, channels, at, count, sums,
                                    row_stride);
                else
                    write_results(c->run->results, own, channel, channels, at, stride, count, sums,
                                  row_stride);
            }
}

void write_panel(const struct direct_context *c, const struct direct_tile *tile,
                 const int64_t shape[AXES], int64_t block, const struct sub *sub, const char *sums,
                 int64_t row_stride) {
    if (c->run->results) {
        write_codes_of_panel(c, tile, shape, block, sub, sums, row_stride);
        return;
    }
    const int rows = packing_rows(c->packing, block);
    const struct axis *a = c->plan->axes;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = c->kernels->size, out_size = element_size(element);
    const int64_t stride = a[2].out_stride, count = shape[2];
    const int64_t begin = tile->first[2] * stride + sub->q[2];
    const struct addition *addition = c->run->addition;
    for (int row = 0; row < rows; row++) {
        const char *in = sums + row * row_stride * size;
        for (int64_t image = 0; image < tile->images; image++)
            for (int64_t z = 0; z < shape[0]; z++)
                for (int64_t y = 0; y < shape[1]; y++, in += count * size) {
                    const int64_t oz = (tile->first[0] + z) * a[0].out_stride + sub->q[0];
                    const int64_t oy = (tile->first[1] + y) * a[1].out_stride + sub->q[1];
                    char *out = out_row(c, tile, image, packing_channel(c->packing, block) + row,
                                        oz, oy) + begin * out_size;
                    if (out_size == size && size == 4) {
                        for (int64_t i = 0; i < count; i++)
                            memcpy(out + i * stride * 4, in + i * 4, 4);
                        if (addition && stride == 1) add_to(addition, out, out, count);
                        for (int64_t i = 0; addition && stride > 1 && i < count; i++)
                            add_to(addition, out + i * stride * 4, out + i * stride * 4, 1);
                        continue;
                    }
                    c->kernels->store(element, in, count, tile->row);
                    for (int64_t i = 0; i < count; i++)
                        memcpy(out + i * stride * out_size, tile->row + i * out_size,
                               (size_t)out_size);
                }
    }
}
