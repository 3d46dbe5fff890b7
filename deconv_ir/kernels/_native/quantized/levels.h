/* The codes of ranges, as Python gives them. */
#ifndef DECONV_QUANTIZED_LEVELS_H
#define DECONV_QUANTIZED_LEVELS_H

#include "python/call.h"
#include "simd/quantized.h"

#include <math.h>

/* Quantizers of all channels, which repeat if there is one range. */
struct quantizers {
    const double *ranges;
    int64_t count, highest;
};

static inline struct quantizer quantizer_of(const struct quantizers *q, int64_t channel) {
    const double *range = q->ranges + (q->count > 1 ? 2 * channel : 0);
    return quantizer_between(range[0], range[1], q->highest);
}

/* Whether ranges are those of a number of channels, and possible. */
static inline int quantizers_take(struct quantizers *q, const Py_buffer *ranges, int64_t channels,
                                  int64_t highest) {
    *q = (struct quantizers){ranges->buf, ranges->len / 16, highest};
    int good = ranges->itemsize == 8 && ranges->len == 16 * q->count && highest >= 1 &&
               highest <= 255 && (q->count == 1 || q->count == channels);
    for (int64_t i = 0; good && i < q->count; i++)
        good = isfinite(q->ranges[2 * i]) && isfinite(q->ranges[2 * i + 1]) &&
               q->ranges[2 * i] < q->ranges[2 * i + 1];
    return good;
}

#endif
