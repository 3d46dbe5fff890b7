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

void write_panel(const struct direct_context *c, const struct direct_tile *tile,
                 const int64_t shape[AXES], int64_t block, const struct sub *sub, const char *sums,
                 int64_t row_stride) {
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
