/* LSTM and GRU over time: products and gates, with packed weights.
 *
 * Units are processed in blocks of RECURRENT_UNITS; a block's weights for all gates are contiguous,
 * [block][input or hidden unit][gate][unit], so that a product reads them once, in order.  The last
 * block is filled up with units whose weights are 0.
 */
#ifndef DECONV_MOMENTS_H
#define DECONV_MOMENTS_H

#include "simd/microkernels.h"

#define RECURRENT_UNITS 16
#define PROJECTED_ROWS 4

/* The products of X in the gates of a block: `count` rows of X, from `rows` on. */
struct projection {
    int64_t depth;                     /* inputs */
    const float *rows[PROJECTED_ROWS];
    const float *weights, *bias;       /* of the block */
    float *out;                        /* of the block and the first row; `pitch` apart */
    int64_t pitch;
};

/* A block of units of one direction at one moment, for `batch` sequences. */
struct time_step {
    int64_t depth;           /* hidden units */
    int64_t pitch;           /* of the states of two sequences: whole blocks */
    int64_t batch;
    const float *weights;    /* of the block */
    const float *inner;      /* GRU: the bias within the reset, of the block */
    const float *before;     /* hidden state of all units */
    const float *projected;  /* X's products in the block's gates; `gates * pitch` apart */
    const float *old;        /* GRU: the block's hidden state; `pitch` apart, like the next */
    float *cell, *hidden;    /* LSTM: the block's cell state; its next hidden state */
};

struct recurrent_functions {
    int gates;
    void (*project)(const struct projection *projection, int64_t rows);
    void (*move)(const struct time_step *moment);
};

/* LSTM (gates f, i, c, o), and GRU (z, r, h) whose reset is applied after the product. */
extern const struct recurrent_functions functions_recurrent_baseline[2];
#ifdef DECONV_X86
extern const struct recurrent_functions functions_recurrent_avx2[2];
extern const struct recurrent_functions functions_recurrent_avx512[2];
#endif

#endif
