/* GridSample: weighted sums of the elements around positions. */
#ifndef DECONV_PLANES_H
#define DECONV_PLANES_H

#include "simd/microkernels.h"

#define SAMPLED_POSITIONS 256 /* whose taps are computed at once; whole vectors */
#define MOST_SAMPLED_TAPS 16
#define MOST_SAMPLED_LANES 16

/* The taps of positions, [tap][SAMPLED_POSITIONS].  Outside of a plane, `index` is 0 and `mask` 0,
 * else `mask` has all bits. */
struct samples {
    int64_t taps;
    int weighs; /* 0: one tap of weight 1 */
    int32_t index[MOST_SAMPLED_TAPS * SAMPLED_POSITIONS];
    int32_t mask[MOST_SAMPLED_TAPS * SAMPLED_POSITIONS];
    float weight[MOST_SAMPLED_TAPS * SAMPLED_POSITIONS];
};

/* Sample one plane at `count` positions. */
typedef void (*sampling_function)(const struct samples *s, const float *plane, int64_t count,
                                  float *out);

extern const sampling_function function_sampling_baseline;
#ifdef DECONV_X86
extern const sampling_function function_sampling_avx2;
extern const sampling_function function_sampling_avx512;
#endif

#endif
