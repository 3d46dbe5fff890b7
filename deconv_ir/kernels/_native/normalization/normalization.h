/* Mean and deviation of rows, and sums of rows. */
#ifndef DECONV_NORMALIZATION_H
#define DECONV_NORMALIZATION_H

#include "native.h"

struct row_functions {
    /* Sums of x and of (x - mean)^2: blocks in f32, their sums in f64. */
    double (*sum)(const float *row, int64_t count);
    double (*squares)(const float *row, int64_t count, float mean);
    /* (x - mean) / deviation * scale + bias; deviation 0 where nothing is divided. */
    void (*standardize)(const float *row, int64_t count, const float how[4], int divides,
                        float *out);
};

extern const struct row_functions functions_rows_baseline;
#ifdef DECONV_X86
extern const struct row_functions functions_rows_avx2;
extern const struct row_functions functions_rows_avx512;
#endif

#endif
