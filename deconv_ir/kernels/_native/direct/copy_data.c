/* Copies the data that a tile reads, with zeros around them. */
#include "direct/direct.h"

#include <string.h>

/* A residue of all axes, and the part of it that a tile reads. */
struct read_residue {
    int64_t residue[AXES];
    struct stretch along[AXES];
};

/* Returns the residue of all axes with this index. */
static struct read_residue see(const struct direct_context *c, const struct direct_tile *tile,
                       int64_t index) {
    struct read_residue seen;
    for (int a = AXES - 1; a >= 0; a--) {
        const struct axis *axis = &c->plan->axes[a];
        seen.residue[a] = axis->residue + index % axis->residues;
        seen.along[a] = stretch_of(c, tile, a, seen.residue[a]);
        index /= axis->residues;
    }
    return seen;
}

/* Copies one image of one channel of one residue. */
static void copy_volume(const struct direct_context *c, const struct direct_tile *tile,
                       const char *from, const struct read_residue *seen, char *to) {
    const struct tiling *t = &c->plan->tiling;
    const struct axis *axes = c->plan->axes;
    const enum element element = (enum element)c->problem->element;
    const int64_t size = c->kernels->size, in_size = element_size(element);
    const struct stretch z = seen->along[0], y = seen->along[1], x = seen->along[2];
    const int64_t *residue = seen->residue;
    const int64_t *step = c->run->step, x_step = axes[2].in_stride * step[2];
    const int64_t planes = tile->shape[0] + axes[0].high - axes[0].low;
    const int64_t rows = tile->shape[1] + axes[1].high - axes[1].low;
    const int64_t pitch = t->pitch * size, count = x.count * size, gap = pitch - count;
    const int64_t row_step = axes[1].in_stride * step[1] * in_size;
    const int plain = x_step == 1 && size == in_size;
    /* The rows with data; empty if a row has no positions. */
    const int64_t first = x.count ? y.before : rows, last = x.count ? y.before + y.count : rows;
    /* Taken taps read no rows before `skipped`, and none from `end` on. */
    const int64_t skipped = least(tile->low[1] - axes[1].low, least(first, rows));
    const int64_t end = rows - (axes[1].high - tile->high[1]);
    for (int64_t i = 0; i < planes; i++) {
        char *row = to + (i * t->plane + skipped * t->pitch) * size;
        clear_row(row, x.before * size);
        row += x.before * size;
        const int64_t iz = i - z.before;
        if (iz < 0 || iz >= z.count) {
            clear_row(row, (end - skipped) * pitch);
            continue;
        }
        clear_row(row, (least(first, end) - skipped) * pitch);
        row += (first - skipped) * pitch;
        const char *at =
            from + (((z.begin + iz) * axes[0].in_stride + residue[0]) * step[0] +
                    (y.begin * axes[1].in_stride + residue[1]) * step[1] +
                    (x.begin * axes[2].in_stride + residue[2]) * step[2]) * in_size;
        const int64_t held = last - first;
        if (plain && held) {
            /* The zeros after a row are those before the next one.  An element copied beyond them
             * is overwritten by that row, or lies in the channel's slack. */
            c->kernels->copy_rows(at, row_step, held, count, gap, c->run->channel_step * in_size,
                                  row);
            row += held * pitch;
        }
        for (int64_t j = 0; j < held && !plain; j++, at += row_step, row += pitch) {
            if (x_step == 1)
                fetch_row(at, c->run->channel_step * in_size, x.count * in_size);
            c->kernels->load(element, at, x_step, x.count, row);
            clear_row(row + count, gap);
        }
        clear_row(row, (end - last) * pitch);
    }
    /* Vectors read past the last row.  Numbers left there could be subnormal, which are multiplied
     * many times slower. */
    clear_row(to + ((planes - 1) * t->plane + end * t->pitch + x.before) * size,
              c->kernels->lanes * size);
}

void copy_data(const struct direct_context *c, const struct direct_tile *tile, int64_t first_channel,
               int64_t channels) {
    const struct tiling *t = &c->plan->tiling;
    const int64_t size = c->kernels->size;
    const int64_t in_size = element_size((enum element)c->problem->element);
    const int64_t spread = spread_of(c->problem);
    struct read_residue seen = see(c, tile, 0);
    for (int64_t first = 0; first < channels; first += spread) {
        const int64_t index = tile->group * data_channels(c->problem) + (first_channel + first) / spread;
        const int64_t channel = first + spread - 1;
        for (int64_t i = 0; i < c->plan->residues; i++) {
            if (c->plan->residues > 1) seen = see(c, tile, i);
            for (int64_t image = 0; image < tile->images; image++)
                copy_volume(
                    c, tile,
                    c->data +
                        ((tile->first_image + image) * c->run->image_step +
                         index * c->run->channel_step) * in_size,
                    &seen,
                    tile->data + (channel * t->channel_stride + i * t->residue_stride +
                                  image * t->image_stride) * size);
        }
        if (spread > 1) {
            char *const to = tile->data + channel * t->channel_stride * size;
            spread_channel(c, to, t->channel_stride, to - t->channel_stride * size, to);
        }
    }
}
