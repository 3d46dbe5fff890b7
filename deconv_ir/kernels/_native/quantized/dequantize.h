/* From the integer sums of a layer to its results: numbers in f32, or codes of these, those of four
 * channels in an element. */
#ifndef DECONV_DEQUANTIZE_H
#define DECONV_DEQUANTIZE_H

#include "simd/quantized.h"

/* What is added to the sums, and what becomes of them; it does not depend on the data. */
struct dequantization {
    const struct quantized_functions *functions;
    const struct microkernels *kernels; /* of f32, for the activation */
    struct epilogue epilogue;
    struct requantizer *of_channels;
    int64_t channels, positions; /* of a result */
    int64_t window_planes; /* of an image, each for as many neighbouring channels; or 0 */
    int is_coded;
    int from_sums; /* whether sums become codes without numbers between them */
    /* Where offsets differ: a class for each row of `columns` positions, else NULL.  Each channel has `kinds` classes
     * of `width` offsets: those of the columns up to `begin`, of the next `chunk` ones, which are repeated, and from
     * `end` on. */
    int32_t *classes;
    int64_t columns, kinds, width, begin, chunk, end;
    double *offsets; /* a vector longer than they are */
    float *in_steps; /* the same, of results that are codes: see struct requantizer */
};

/* The results of a run. */
struct results {
    const struct dequantization *by;
    const float *addend; /* of the shape of numbers; or NULL */
    const uint32_t *windows; /* [image, window_planes, positions], a vector longer than that; or NULL */
    void *out;
};

/* Write the results of some neighbouring channels of an image, from a multiple of four on, at `count` positions from
 * `position` on that are `step` apart.  The sums of a channel are contiguous; up to a vector is read beyond them.
 * Numbers that are written to neighbouring positions are not activated yet. */
void write_results(const struct results *r, int64_t image, int64_t channel, int64_t channels,
                   int64_t position, int64_t step, int64_t count, const char *sums,
                   int64_t row_stride);
/* The same of rows of neighbouring positions: `pitch` elements of sums are from one to the next, and `out_pitch`, whole
 * rows of results, in these. */
void write_rows_of_results(const struct results *r, int64_t image, int64_t channel,
                           int64_t channels, int64_t position, int64_t out_pitch, int64_t rows,
                           int64_t count, const char *sums, int64_t row_stride, int64_t pitch);
/* Activate numbers at neighbouring positions. */
void activate_results(const struct results *r, int64_t image, int64_t channel, int64_t channels,
                      int64_t position, int64_t count);
/* Write the results of sums without terms, activated. */
void write_empty_results(const struct results *r, int64_t image, int64_t channel,
                         int64_t channels, int64_t position, int64_t count);

#endif
