/* Mean and deviation of rows, sums of rows, and softmax along an axis. */
#ifndef DECONV_ROWS_H
#define DECONV_ROWS_H

#include "simd/microkernels.h"

#define SOFTMAX_ROWS 8 /* at once */

struct row_functions {
    int lanes;
    /* Sums of x and of (x - mean)^2: blocks in f32, their sums in f64. */
    double (*sum)(const float *row, int64_t count);
    double (*squares)(const float *row, int64_t count, float mean);
    /* (x - mean) / deviation * scale + bias; deviation 0 means no division. */
    void (*standardize)(const float *row, int64_t count, const float how[4], int divides,
                        float *out);
    /* exp(x) / sum(exp(x)), or its logarithm, of `columns` neighbouring lists whose elements are
     * `step` apart, and of up to SOFTMAX_ROWS contiguous lists.  Sums are in f64, in the order of
     * the elements, so that both give the same bits.  `out` may be `data`. */
    void (*softmax_columns)(const float *data, int64_t count, int64_t step, int64_t columns,
                            int logarithm, float *out);
    void (*softmax_rows)(const float *data, int64_t rows, int64_t count, int logarithm,
                         float *out);
    /* Replace [list][column], whole vectors `step` apart, by exp(x - the largest of the column);
     * `factors` becomes one over the sum of each column. */
    void (*exponentials)(float *data, int64_t count, int64_t step, int64_t columns,
                         float *factors);
    /* Multiply each row, `step` apart, by its factor. */
    void (*scale_rows)(float *rows, int64_t count, int64_t step, int64_t columns,
                       const float *factors);
};

extern const struct row_functions functions_rows_baseline;
#ifdef DECONV_X86
extern const struct row_functions functions_rows_avx2;
extern const struct row_functions functions_rows_avx512;
#endif

const struct row_functions *row_functions_of(int isa);

#endif
