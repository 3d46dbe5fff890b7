/* Products with matrices whose elements are codes of four bits: of integers or of NF4, scaled. */
#ifndef DECONV_CODES_H
#define DECONV_CODES_H

#include "simd/compressed.h"

#define CODE_STEP 32       /* codes of a group are a multiple of this */
#define MOST_CODED_ROWS 16 /* whose sums are computed at once */

struct coded_matrix {
    int64_t k, group;     /* codes of a column, and of a part of it with the same values */
    const uint8_t *codes; /* [column][k / 2]: the first of two codes is in the lower bits */
    /* The value of a code is (base[code] - zero) * scale, rounded to f16 if `halves`. */
    float base[CODES];
    const void *scales, *zeros; /* [column][k / group], of f16 or f32; zeros may be NULL */
    int half_scales, half_zeros, halves;
};

struct coded_functions {
    /* Reorder rows for multiply(), up to MOST_CODED_ROWS. */
    void (*pack_rows)(const float *row, int64_t count, int64_t k, float *out);
    /* Sums of these rows, in columns from first to before last:
     * out[row * step + column].  Each sum is that of blocks of terms, in order, the bias at last;
     * its bits depend on neither the rows nor the columns. */
    void (*multiply)(const struct coded_matrix *m, const float *rows, int64_t count, int64_t first,
                     int64_t last, const float *bias, float *out, int64_t step);
    /* Unpack terms of a column, multiples of CODE_STEP; of each 2 * vector terms, the even ones come
     * first. */
    void (*unpack)(const struct coded_matrix *m, int64_t column, int64_t begin, int64_t end,
                   float *out);
    int lanes;
};

extern const struct coded_functions functions_coded_baseline;
#ifdef DECONV_X86
extern const struct coded_functions functions_coded_avx2;
extern const struct coded_functions functions_coded_avx512;
#endif

#endif
