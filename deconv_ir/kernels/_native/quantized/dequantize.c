/* Writes results, and the offsets of rows whose taps partly lie outside of the data. */
#include "quantized/dequantize.h"

#include <string.h>

#define FOUR 4
#define CHUNK 256 /* positions that are written at once */
#define MOST_LANES 16

/* Columns of a row that have one offset, if `index` is -1, or else offsets from `index` on. */
struct stretch_of_offsets {
    int64_t count, index, single;
};

static struct stretch_of_offsets offsets_at(const struct dequantization *d, int64_t x,
                                            int64_t last) {
    if (x < d->begin) return (struct stretch_of_offsets){least(last, d->begin) - x, x, 0};
    if (x >= d->end)
        return (struct stretch_of_offsets){last - x, d->begin + d->chunk + x - d->end, 0};
    const int64_t within = (x - d->begin) % d->chunk, left = least(last, d->end) - x;
    if (d->chunk == 1) return (struct stretch_of_offsets){left, -1, d->begin};
    return (struct stretch_of_offsets){least(left, d->chunk - within), d->begin + within, 0};
}

/* Some channels, at most four, and what they add to their sums. */
struct channels_of_results {
    const struct requantizer *of;
    int64_t image, channel, count;
    const double *offsets; /* of the first channel's first position; or NULL */
    const float *in_steps;
    int64_t apart;
    const uint32_t *windows[FOUR]; /* of each channel's first position; or NULL */
};

/* Set the windows of some channels, at most four. */
static void find_windows(const struct results *r, int64_t image, int64_t channel, int64_t channels,
                         int64_t position, const uint32_t *windows[FOUR]) {
    const struct dequantization *d = r->by;
    for (int64_t i = 0; r->windows && i < channels; i++) {
        const int64_t plane = (channel + i) / (d->channels / d->window_planes);
        windows[i] = r->windows + (image * d->window_planes + plane) * d->positions + position;
    }
}

/* Write up to CHUNK positions. */
static void write_some(const struct results *r, const struct channels_of_results *c,
                       int64_t position, int64_t step, int64_t count, const char *sums,
                       int64_t row_stride) {
    const struct dequantization *d = r->by;
    const int64_t fours = divide_up(d->channels, FOUR);
    uint32_t few[CHUNK], *codes = few;
    float numbers[FOUR][CHUNK];
    struct quantizer quantizers[FOUR];
    if (d->is_coded) {
        uint32_t *plane = (uint32_t *)r->out + (c->image * fours + c->channel / FOUR) * d->positions;
        if (step == 1) codes = plane + position;
        if (d->from_sums) {
            struct rows_of_sums row = {
                .sums = sums,
                .step = row_stride,
                .rows = 1,
                .count = count,
                .offsets = c->offsets,
                .in_steps = c->in_steps,
                .apart = c->apart,
                .out = codes,
            };
            memcpy(row.windows, c->windows, sizeof row.windows);
            d->functions->requantize(c->of, c->count, &row);
        }
    }
    for (int64_t i = 0; i < c->count && !d->from_sums; i++) {
        const int64_t plane = (c->image * d->channels + c->channel + i) * d->positions + position;
        float addend[CHUNK], *to = numbers[i];
        struct dequantizer one = {c->of[i].scale, c->of[i].offset, NULL, NULL,
                                  c->windows[i], c->of[i].of_window};
        if (c->offsets) one.offsets = c->offsets + i * c->apart;
        if (r->addend && step == 1) one.addend = r->addend + plane;
        for (int64_t j = 0; r->addend && step > 1 && j < count; j++)
            addend[j] = r->addend[plane + j * step];
        if (r->addend && step > 1) one.addend = addend;
        float *out = d->is_coded ? NULL : (float *)r->out + plane;
        if (out && step == 1) to = out;
        d->functions->dequantize(&one, count, sums + i * row_stride * 4, to);
        if (to == out) continue;
        struct epilogue epilogue = d->epilogue;
        epilogue.slope = c->of[i].slope;
        d->kernels->activate(&epilogue, to, count);
        for (int64_t j = 0; out && j < count; j++) out[j * step] = to[j];
        quantizers[i] = c->of[i].codes;
    }
    if (!d->is_coded) return;
    if (!d->from_sums)
        d->functions->quantize(quantizers, numbers[0], CHUNK, c->count, count, codes);
    if (codes != few) return;
    uint32_t *plane = (uint32_t *)r->out + (c->image * fours + c->channel / FOUR) * d->positions;
    for (int64_t j = 0; j < count; j++) plane[position + j * step] = few[j];
}

/* Write positions of a row that are `step` apart, whose offsets are collected. */
static void write_apart(const struct results *r, struct channels_of_results *c, int64_t position,
                        int64_t step, int64_t count, const char *sums, int64_t row_stride) {
    const struct dequantization *d = r->by;
    double offsets[FOUR][CHUNK + MOST_LANES];
    float in_steps[FOUR][CHUNK + MOST_LANES] = {{0}};
    const int64_t x = position % d->columns;
    for (int64_t j = 0; j < count; j++) {
        const struct stretch_of_offsets s = offsets_at(d, x + j * step, d->columns);
        const int64_t index = s.index < 0 ? s.single : s.index;
        for (int64_t i = 0; i < c->count; i++) {
            offsets[i][j] = c->offsets[i * c->apart + index];
            if (c->in_steps) in_steps[i][j] = c->in_steps[i * c->apart + index];
        }
    }
    for (int64_t i = 0; i < c->count; i++)
        memset(offsets[i] + count, 0, MOST_LANES * sizeof **offsets);
    c->offsets = offsets[0];
    c->in_steps = in_steps[0];
    c->apart = CHUNK + MOST_LANES;
    write_some(r, c, position, step, count, sums, row_stride);
}

/* Write neighbouring positions of a row. */
static void write_row(const struct results *r, const struct channels_of_results *c,
                      int64_t position, int64_t count, const char *sums, int64_t row_stride) {
    const struct dequantization *d = r->by;
    const int64_t x = position % d->columns;
    for (int64_t at = 0; at < count;) {
        const struct stretch_of_offsets s = offsets_at(d, x + at, x + count);
        struct channels_of_results own = *c;
        struct requantizer ones[FOUR];
        if (s.index < 0) {
            for (int64_t i = 0; i < c->count; i++) {
                ones[i] = c->of[i];
                ones[i].offset = c->offsets[i * c->apart + s.single];
                if (c->in_steps) ones[i].step_offset = c->in_steps[i * c->apart + s.single];
            }
            own.of = ones;
            own.offsets = NULL;
        } else {
            own.offsets += s.index;
            if (own.in_steps) own.in_steps += s.index;
        }
        for (int i = 0; i < FOUR; i++)
            if (own.windows[i]) own.windows[i] += at;
        write_some(r, &own, position + at, 1, s.count, sums + at * 4, row_stride);
        at += s.count;
    }
}

void write_results(const struct results *r, int64_t image, int64_t channel, int64_t channels,
                   int64_t position, int64_t step, int64_t count, const char *sums,
                   int64_t row_stride) {
    const struct dequantization *d = r->by;
    for (int64_t at = 0, some; at < count; at += some) {
        some = least(CHUNK, count - at);
        const int64_t here = position + at * step;
        /* Positions that are apart are those of a row. */
        if (d->classes && step == 1) some = least(some, d->columns - here % d->columns);
        const int64_t class = d->classes ? d->classes[here / d->columns] : 0;
        for (int64_t i = 0; i < channels; i += FOUR) {
            struct channels_of_results c = {d->of_channels + channel + i, image, channel + i,
                                            least(FOUR, channels - i), NULL, NULL, 0, {NULL}};
            const char *from = sums + (i * row_stride + at) * 4;
            uint32_t windows[FOUR][CHUNK + MOST_LANES];
            find_windows(r, image, channel + i, c.count, here, c.windows);
            for (int j = 0; step > 1 && j < c.count && c.windows[j]; j++) {
                for (int64_t x = 0; x < some; x++) windows[j][x] = c.windows[j][x * step];
                memset(windows[j] + some, 0, MOST_LANES * sizeof **windows);
                c.windows[j] = windows[j];
            }
            if (d->classes) {
                c.apart = d->kinds * d->width;
                const int64_t first = (channel + i) * c.apart + class * d->width;
                c.offsets = d->offsets + first;
                c.in_steps = d->in_steps ? d->in_steps + first : NULL;
            }
            if (!d->classes) write_some(r, &c, here, step, some, from, row_stride);
            else if (step == 1) write_row(r, &c, here, some, from, row_stride);
            else write_apart(r, &c, here, step, some, from, row_stride);
        }
    }
}

void write_rows_of_results(const struct results *r, int64_t image, int64_t channel,
                           int64_t channels, int64_t position, int64_t out_pitch, int64_t rows,
                           int64_t count, const char *sums, int64_t row_stride, int64_t pitch) {
    const struct dequantization *d = r->by;
    if (!d->from_sums || (d->classes && d->width != d->columns)) {
        for (int64_t y = 0; y < rows; y++)
            write_results(r, image, channel, channels, position + y * out_pitch, 1, count,
                          sums + y * pitch * 4, row_stride);
        return;
    }
    const int64_t fours = divide_up(d->channels, FOUR), x = d->classes ? position % d->columns : 0;
    for (int64_t i = 0; i < channels; i += FOUR) {
        const int64_t plane = (image * fours + (channel + i) / FOUR) * d->positions;
        const int64_t first = (channel + i) * d->kinds * d->width + x;
        struct rows_of_sums all = {
            .sums = sums + i * row_stride * 4,
            .step = row_stride,
            .pitch = pitch,
            .rows = rows,
            .count = count,
            .out = (uint32_t *)r->out + plane + position,
            .out_pitch = out_pitch,
        };
        find_windows(r, image, channel + i, least(FOUR, channels - i), position, all.windows);
        if (d->classes) {
            all.offsets = d->offsets + first;
            all.in_steps = d->in_steps + first;
            all.apart = d->kinds * d->width;
            all.width = d->width;
            all.classes = d->classes + position / d->columns;
            all.class_step = out_pitch / d->columns;
        }
        d->functions->requantize(d->of_channels + channel + i, least(FOUR, channels - i), &all);
    }
}

void activate_results(const struct results *r, int64_t image, int64_t channel, int64_t channels,
                      int64_t position, int64_t count) {
    const struct dequantization *d = r->by;
    for (int64_t i = 0; !d->is_coded && i < channels; i++) {
        struct epilogue epilogue = d->epilogue;
        epilogue.slope = d->of_channels[channel + i].slope;
        d->kernels->activate(&epilogue,
                             (float *)r->out +
                                 (image * d->channels + channel + i) * d->positions + position,
                             count);
    }
}

void write_empty_results(const struct results *r, int64_t image, int64_t channel,
                         int64_t channels, int64_t position, int64_t count) {
    static const uint32_t sums[CHUNK + MOST_LANES];
    const struct results alone = {r->by, r->addend, NULL, r->out};
    for (int64_t at = 0; at < count; at += CHUNK)
        write_results(&alone, image, channel, channels, position + at, 1, least(CHUNK, count - at),
                      (const char *)sums, 0);
    activate_results(r, image, channel, channels, position, count);
}
