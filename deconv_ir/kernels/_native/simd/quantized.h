/* Real numbers to codes, and sums of products of codes to real numbers, each rounded once. */
#ifndef DECONV_SIMD_QUANTIZED_H
#define DECONV_SIMD_QUANTIZED_H

#include "simd/levels.h"
#include "simd/microkernels.h"

/* The codes of numbers from `low` to `high`: (number - low) * factor, from 0 to `highest`. */
struct quantizer {
    float least, most; /* the lower and the higher bound */
    double low, factor;
    float tie;   /* TIE, or -1: levels are not near enough in f32 */
    double ends; /* level_of_ends() */
};

/* The quantizer of numbers from `low` to `high`, finite and in this order. */
static inline struct quantizer quantizer_between(double low, double high, int64_t highest) {
    const double factor = (double)highest / (high - low);
    const int near = levels_are_near(low, high, factor);
    return (struct quantizer){(float)low, (float)high, low, factor, near ? TIE : -1,
                              level_of_ends(low, high, factor)};
}

/* The zero point of weights adds `whole` times windows to the sums, and `scale` times windows to the numbers. */
struct window_factor {
    int32_t whole;
    double scale;
};

/* The numbers of sums: sum * scale + offset, with offsets for each, or one.  Up to a vector of sums, offsets and
 * windows is read beyond the ends. */
struct dequantizer {
    double scale, offset;
    const double *offsets; /* or NULL */
    const float *addend;   /* or NULL: added before the result is rounded */
    const uint32_t *windows; /* or NULL: sums of the same codes of data, with weights of 1 */
    struct window_factor of_window;
};

/* What becomes of numbers before they become codes: nothing, a slope of negative ones, HSwish. */
enum bend { UNBENT, SLOPED, SWISHED };

/* From sums to codes: number = (sum + base) * scale + offset, bent. */
struct requantizer {
    double scale, offset;
    struct quantizer codes;
    enum bend bend;
    float slope;
    pointwise_function hswish;
    int32_t base;
    double greatest; /* magnitude of an offset, and of what windows add to it */
    struct window_factor of_window;
    /* The same in LEVEL_PARTS of a step of the levels, and rounded; `zero` is (level of 0 + 0.5) * LEVEL_PARTS + margin, which is
     * added at once if numbers are not bent. */
    float step_scale, step_offset, step_slope, step_least, step_most, step_window, zero;
    uint16_t rest; /* least_rest() */
    int is_within; /* whether the range is that of a byte, and levels have 32 bits: results need not be limited */
};

/* The numbers of sums in vectors of columns: (sum + bases[i] - row_sum * factors[i]) * scales[i] + offsets[i] +
 * row_sum * row_scales[i]. */
struct column_dequantizer {
    const double *scales, *offsets, *row_scales;
    const int32_t *bases, *factors;
};

/* Make an activation part of the range of codes, and return the factor of negative numbers. */
static inline float take_activation(const struct epilogue *e, double slope,
                                    struct quantizer *codes) {
    const float low = codes->least, high = codes->most;
    if (e->activation == ACT_RELU) codes->least = fminf(fmaxf(low, 0), high);
    if (e->activation == ACT_CLAMP) {
        codes->least = fminf(fmaxf((float)e->low, low), high);
        codes->most = fminf(fmaxf((float)e->high, low), high);
    }
    return e->activation == ACT_LEAKY ? (float)slope : 1;
}

/* From sums in columns to codes: numbers in LEVEL_PARTS of a step are those of columns times `parts`, plus `first`. */
struct column_requantizer {
    struct quantizer codes;
    double parts, first;
    float least, most; /* in parts */
    uint16_t rest;     /* least_rest() */
};

/* The requantizer of numbers whose offsets have magnitudes up to `greatest`, with those of rows. */
static inline struct column_requantizer column_requantizer_of(struct quantizer q, double greatest) {
    const double margin = margin_of(ERROR_32(q.ends, greatest * q.factor));
    const double parts = q.factor * (double)LEVEL_PARTS, rounding = (double)LEVEL_PARTS / 2 + margin;
    /* Limits are codes themselves, so that those between two codes are known. */
    const double least = rint((q.least - q.low) * q.factor), most = rint((q.most - q.low) * q.factor);
    return (struct column_requantizer){
        .codes = q,
        .parts = parts,
        .first = rounding - q.low * parts,
        .least = (float)(least * (double)LEVEL_PARTS + rounding),
        .most = (float)(most * (double)LEVEL_PARTS + rounding),
        .rest = least_rest(margin),
    };
}

/* From two codes to one: the sum or product of low[0] + code * step[0] and low[1] + another * step[1], times
 * `slope` if it is negative; both numbers and the result are rounded to f32. */
struct code_pair {
    double low[2], step[2];
    int multiplies;
    int64_t second_step; /* 1; 0: all positions have the same second code, which is repeated */
    struct quantizer codes;
    float slope;
};

/* Rows of sums of up to four channels. */
struct rows_of_sums {
    const char *sums;
    int64_t step, pitch; /* elements from one channel's sums, and from one row's, to the next */
    int64_t rows, count;
    /* Their offsets, in parts of steps as well, or NULL; those of each channel are `apart` elements apart.  With classes, rows
     * have those from width * class on. */
    const double *offsets;
    const float *in_steps;
    int64_t apart, width;
    const int32_t *classes; /* of every `class_step` rows */
    int64_t class_step;
    const uint32_t *windows[4]; /* of each channel, or NULL; rows are `out_pitch` elements apart */
    uint32_t *out;
    int64_t out_pitch;
};

struct quantized_functions {
    /* The codes of `channels` rows, at most 4, which are `step` elements apart, in the bytes of
     * `out`; each has a quantizer. */
    void (*quantize)(const struct quantizer *q, const float *rows, int64_t step, int64_t channels,
                     int64_t count, uint32_t *out);
    /* The codes of a row, as signed bytes: code - 128.  Returns their sum. */
    int32_t (*quantize_row)(const struct quantizer *q, const float *row, int64_t count, int8_t *out);
    /* The sum of signed bytes. */
    int32_t (*sum_row)(const int8_t *row, int64_t count);
    /* Extend bytes, signed or not, to 16 bits: the first two and the last two of each element;
     * `last` may be `in`. */
    void (*extend)(int is_signed, const uint32_t *in, int64_t count, uint32_t *first, uint32_t *last);
    /* The numbers of rows of sums, in whole vectors. */
    void (*dequantize_columns)(const struct column_dequantizer *d, const int32_t *row_sums,
                               int64_t rows, int64_t columns, const uint32_t *sums, float *out,
                               int64_t step);
    /* The codes of rows of sums, in whole vectors, as signed bytes: code - 128. */
    void (*requantize_columns)(const struct column_requantizer *q, const struct column_dequantizer *d,
                               const int32_t *row_sums, int64_t rows, int64_t columns,
                               const uint32_t *sums, int8_t *out, int64_t step);
    /* The numbers of sums. */
    void (*dequantize)(const struct dequantizer *d, int64_t count, const void *sums, float *out);
    /* The codes of sums.  Up to a vector of sums, offsets and windows is read beyond the ends. */
    void (*requantize)(const struct requantizer *r, int64_t channels,
                       const struct rows_of_sums *rows);
    /* The codes of sums or products: each byte on its own. */
    void (*combine)(const struct code_pair *s, const uint32_t *first, const uint32_t *second,
                    int64_t count, uint32_t *out);
    /* Those of one byte of each element, as numbers. */
    void (*combine_numbers)(const struct code_pair *s, const uint32_t *first,
                            const uint32_t *second, int byte, int64_t count, float *out);
    /* Two rows, rounded to bf16, in the lower and upper half of elements; `second` may be NULL. */
    void (*pair)(const float *first, const float *second, int64_t count, uint32_t *out);
    /* A row, rounded to bf16. */
    void (*round_row)(const float *row, int64_t count, uint16_t *out);
};

extern const struct quantized_functions functions_quantized_baseline;
#ifdef DECONV_X86
extern const struct quantized_functions functions_quantized_avx2;
extern const struct quantized_functions functions_quantized_avx512;
#endif

#endif
