/* The vector code of Winograd F(m, r): transforms of data, weights and products. */
#ifndef DECONV_TRANSFORMS_H
#define DECONV_TRANSFORMS_H

#include "simd/microkernels.h"

#define MOST_POINTS 6        /* of an axis */
#define MOST_OUTPUTS 4
#define MOST_VALUES (MOST_POINTS * MOST_POINTS * MOST_POINTS)
#define MOST_TAPS 27         /* that are transformed together */
#define PANEL_COLUMNS 2      /* usual columns of a micro-kernel, in vectors of positions */
#define WIDEST_PANEL 3       /* maximum columns */
#define MOST_ALTERNATING 4   /* sub-convolutions whose rows of weights are interleaved in vectors */

/* F(outputs, taps) of one axis.  F(4, 2) and F(4, 3) are for integers alone: f32 would lose digits. */
enum wino_size { F_1_1, F_2_2, F_3_2, F_2_3, F_4_2, F_4_3, WINO_SIZES };

static inline int wino_points(enum wino_size size) {
    static const signed char points[WINO_SIZES] = {1, 3, 4, 4, 5, 6};
    return points[size];
}

/* What integer results are divided by: weights at the points are multiples, so that they are whole numbers.
 * Sums are exact modulo 2^32, so results with 32 - shift bits are: they are multiplied by `inverse` modulo 2^32,
 * then shifted. */
struct wino_divisor {
    int shift, halves; /* a power of two; that of F(3, 2) and F(2, 3), with which weights are multiplied */
    uint32_t inverse;  /* of the rest, a power of three */
};

#define INVERSE_OF_THREE UINT32_C(0xaaaaaaab)
#define DIVISOR_OF_ONE ((struct wino_divisor){0, 0, 1})

static inline struct wino_divisor wino_divisor_of(const enum wino_size *size) {
    struct wino_divisor d = DIVISOR_OF_ONE;
    for (int a = 0; a < AXES; a++) {
        d.halves += size[a] == F_3_2 || size[a] == F_2_3;
        d.shift += size[a] == F_4_3 ? 3 : size[a] >= F_3_2;
        if (size[a] >= F_4_2) d.inverse *= INVERSE_OF_THREE;
    }
    return d;
}

/* The taps of a sub-convolution, or of a part of it. */
struct wino_taps {
    enum wino_size size[AXES];
    int count[AXES], first[AXES]; /* number, and the first of F(m, r)'s taps */
    int at[MOST_TAPS];            /* index of each among the packed taps of a channel */
};

/* The packed weights of a row, and the distances between its taps and channels. */
struct wino_source {
    const float *from;
    int64_t step, channel_step;
};

/* Vector code for f32, or for elements of I16X2: see transforms.inc.h.  Arrays of these hold their bits; those
 * functions that only judge weights of f32 are NULL. */
struct transforms {
    /* Transform one element for each point: `count` vectors, which are `step` apart in the data. If
     * there are four points, only the first `points` may be requested. */
    void (*input_transform)(enum wino_size size, const float *const *from, int64_t step,
                            float *const *to, int64_t count, int points);
    /* Transform the products at the points into outputs at `count` positions, plus a bias; integers are divided
     * instead.  Up to a vector beyond the end is written. */
    void (*output_transform)(enum wino_size size, const float *const *from, float *const *to,
                             int64_t count, float bias, struct wino_divisor divisor);
    /* Gather vectors of channels: copy element i of each channel's row to vector i + at of `to`,
     * which is [position modulo dilation][pitch][channel].  Memory from `end` on is not read; if it
     * is NULL, up to a vector beyond the row is read.  For f32, raises the `levels` of the positions to the
     * largest magnitude, scaled by a factor for each row; those of NaN are above all others. */
    void (*gather)(const float *const *from, const float *scales, int64_t count,
                   const char *end, int64_t at, int64_t dilation, int64_t pitch, float *levels,
                   float *to);
    /* The inverse: copy `groups` whole vectors of positions, from `position` on, of the first
     * `channels` to a panel as in tile_line(). */
    void (*tile_vectors)(const float *from, int64_t groups, int64_t channels, int64_t position,
                int64_t width, float *panel, int64_t step);
    /* Copy a line into `blocks` of a panel, of `width` positions each, `step` floats apart. */
    void (*tile_line)(const float *line, int64_t blocks, int64_t width, float *panel, int64_t step);
    /* Interleave lines from position `at` on: count * lines elements, rounded up to whole vectors
     * of positions. */
    void (*interleave)(const float *const *from, int64_t at, int64_t lines, int64_t count,
                  float *out);
    /* Compute the weights of `count` rows at all points, for `channels` input channels: those of
     * point i are written to to[i], unless it is NULL, as [channel][row], step[i] from channel to
     * channel.  With `are_channels`, the rows are channels of one row. */
    void (*weights)(const struct wino_taps *taps, const struct wino_source *rows, int count,
                    int are_channels, int64_t channels, float *const *to, const int64_t *step);
    /* Compute the weights of a block of `rows` rows, [channel][tap][row], `step` floats from channel to channel, at all
     * points in f32: those of point i are written to to[i], `to_step` floats from channel to channel.  Up to MAX_ROWS
     * floats beyond the last row are read and written. */
    void (*weights_of_block)(const struct wino_taps *taps, const float *from, int64_t rows, int64_t channels,
                             int64_t step, float *const *to, int64_t to_step);
    /* Interleave the rows of 2 or 4 sub-convolutions, [channel][MAX_ROWS], `step` floats apart, to that many blocks of
     * rows, [channel][MAX_ROWS]. */
    void (*interleave_rows)(const float *from, int64_t subs, int64_t step, int64_t channels, float *const *to);
    /* The largest of some magnitudes; NaN is above all others. */
    float (*largest)(const float *values, int64_t count);
    /* Raise each row's value to the largest magnitude of some taps' weights, [tap][row]. */
    void (*raise_taps)(const float *from, int64_t taps, int64_t rows, float *to);
    /* Add the magnitudes of some taps' weights, times a factor, to sums of their rows; those of a tap
     * are `step` apart. */
    void (*add_taps)(const float *from, int64_t taps, int64_t rows, float factor, float *to,
                     int64_t step);
};
extern const struct transforms *const transforms_baseline, *const transforms_of_pairs_baseline;
#ifdef DECONV_X86
extern const struct transforms *const transforms_avx2, *const transforms_of_pairs_avx2;
extern const struct transforms *const transforms_avx512, *const transforms_of_pairs_avx512;
#endif
const struct transforms *transforms_for(enum isa isa, enum element element);

#endif
