/* GridSample: weighted sums of the elements around positions. */
#ifndef DECONV_PLANES_H
#define DECONV_PLANES_H

#include "simd/microkernels.h"

#include <math.h>

#define SAMPLED_POSITIONS 128 /* whose taps are computed at once; whole vectors */
#define MOST_AXIS_TAPS 4
#define MOST_SAMPLED_TAPS 16
#define MOST_SAMPLED_LANES 16
/* Elements from tap to tap: not a power of two, so that taps do not compete for lines of caches. */
#define TAP_STEP (SAMPLED_POSITIONS + MOST_SAMPLED_LANES)

/* The taps of positions, [tap][TAP_STEP].  Outside of a plane, `index` is 0 and `mask` 0,
 * else `mask` has all bits. */
struct samples {
    int64_t taps;
    int weighs; /* 0: one tap of weight 1 */
    int32_t index[MOST_SAMPLED_TAPS * TAP_STEP];
    int32_t mask[MOST_SAMPLED_TAPS * TAP_STEP];
    float weight[MOST_SAMPLED_TAPS * TAP_STEP];
};

/* The taps of positions along an axis; index -1: outside, where elements are 0. */
struct axis_taps {
    int32_t index[MOST_AXIS_TAPS][TAP_STEP];
    float weight[MOST_AXIS_TAPS][TAP_STEP];
};

/* How positions from -1 to 1 select elements of an axis. */
struct sampled_axis {
    int64_t extent;
    int64_t mode, beyond; /* enum sampling_mode and sampling_beyond */
    int align;
};

struct sampling_functions {
    /* Compute the taps of whole vectors of positions along an axis.  Positions are computed
     * without fused multiply-adds: their integer parts are those of the formulas of the document,
     * rounded step by step. */
    void (*take_axis)(const struct sampled_axis *axis, const float *position, int64_t count,
                      struct axis_taps *taps);
    /* Combine the taps of both axes. */
    void (*combine)(const struct axis_taps *rows, const struct axis_taps *columns, int64_t along,
                    int64_t width, int64_t count, struct samples *samples);
    /* Sample one plane at `count` positions. */
    void (*sample)(const struct samples *s, const float *plane, int64_t count, float *out);
};

/* Mirror an index at the centres, or at the outer edges, of the end elements. */
static inline float reflected_index(float index, int64_t extent, int align) {
    if (align) {
        if (extent == 1) return 0;
        const float last = (float)(extent - 1), period = 2 * last;
        index = fmodf(fabsf(index), period);
        return index > last ? period - index : index;
    }
    const float period = (float)(2 * extent);
    index = fmodf(index + 0.5f, period);
    if (index < 0) index += period;
    return (index > (float)extent ? period - index : index) - 0.5f;
}

extern const struct sampling_functions functions_sampling_baseline;
#ifdef DECONV_X86
extern const struct sampling_functions functions_sampling_avx2;
extern const struct sampling_functions functions_sampling_avx512;
#endif

#endif
