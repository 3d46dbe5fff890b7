/* Max and average pooling: rows under a window are combined, then neighbours along the row. */
#ifndef DECONV_WINDOWS_H
#define DECONV_WINDOWS_H

#include "simd/microkernels.h"

struct pooling_functions {
    int lanes;
    /* Combine a row with `sums`; `first`: copy it to `sums`. */
    void (*combine)(const float *row, int64_t count, int first, float *sums);
    /* Combine `taps` elements, `dilation` apart, for each of `count` windows `stride` apart.
     * Reads the data of whole vectors of windows. */
    void (*slide)(const float *line, int64_t stride, int64_t taps, int64_t dilation,
                  int64_t count, float *out);
};

extern const struct pooling_functions functions_pooling_baseline[POOLINGS];
#ifdef DECONV_X86
extern const struct pooling_functions functions_pooling_avx2[POOLINGS];
extern const struct pooling_functions functions_pooling_avx512[POOLINGS];
#endif

#endif
