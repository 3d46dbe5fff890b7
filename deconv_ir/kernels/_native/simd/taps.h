/* Interpolation: weighted sums of rows, then of the elements of a row. */
#ifndef DECONV_TAPS_H
#define DECONV_TAPS_H

#include "simd/microkernels.h"

/* The taps of the outputs along one axis: [taps][outputs]. */
struct taps {
    int64_t inputs, outputs, count;
    const int64_t *index;
    const float *weight; /* NULL: one tap of weight 1 */
};

/* The taps of the outputs of a row, ordered for vectors of outputs: vector by vector, tap by tap.
 * The last vector of a row ends at the end of the row. */
struct vector_taps {
    int64_t count, outputs;
    int64_t *first;  /* the element from which lanes count; -1: lanes count from the row's first,
                        and are further apart than a vector holds */
    int32_t *lanes;
    float *weight;   /* NULL: one tap of weight 1 */
};

struct resample_functions {
    int lanes;
    void (*weigh_rows)(const struct taps *rows, int64_t y, int64_t width, const float *plane,
                       float *sums);
    /* Reads at least a whole vector of the row. */
    void (*weigh_columns)(const struct vector_taps *columns, const float *row, float *out);
    void (*pick_columns)(const struct vector_taps *columns, const float *row, float *out);
};

extern const struct resample_functions functions_resample_baseline;
#ifdef DECONV_X86
extern const struct resample_functions functions_resample_avx2;
extern const struct resample_functions functions_resample_avx512;
#endif

#endif
