/* The micro-kernels of direct sums and products, and the epilogue of complete sums. */
#ifndef DECONV_MICROKERNELS_H
#define DECONV_MICROKERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "interface.h"
#include "runtime/arithmetic.h"
#include "runtime/cpu.h"
#include "runtime/memory.h"
#include "simd/prefetch.h"

#define MAX_ROWS 8  /* output channels of the largest micro-kernel */
#define MAX_COLUMNS 12 /* vectors of positions of the largest micro-kernel */
#define OUT_VECTORS 4   /* vectors of output channels that are summed together */
#define OUT_POSITIONS 6 /* positions at which these are summed together */
#define COPY_STEP 32 /* bytes that short copies move at once */

_Static_assert(CACHE_LINE * MAX_ROWS <= BEYOND_WEIGHTS, "micro-kernels read beyond the weights");

/* Types in which elements are multiplied and summed.  ACC_SHORTS: elements of two terms of 16 bits, signed. */
enum accumulator {
    ACC_F32,
    ACC_F64,
    ACC_U32,
    ACC_U64,
    ACC_DOTS,
    ACC_PLAIN_DOTS,
    ACC_PAIRS,
    ACC_SHORTS,
    ACCUMULATORS
};

/* An operation of elementwise programs: compute `count` elements, in whole vectors, from up to
 * three operands, which may include `out`. */
typedef void (*pointwise_function)(const float *const *operands, const float *immediates,
                                   int64_t count, float *out);

struct epilogue {
    enum activation activation;
    double low, high; /* ACT_CLAMP */
    double slope;     /* ACT_LEAKY: factor of negative values */
    pointwise_function function; /* ACT_FUNCTION, of f32 */
    float immediates[2];
    float scale, offset; /* of the function's result, if `scales` */
    int scales;
    /* Bytes from sums in the output to the values that micro-kernels add to them; 0: no
     * addition. */
    intptr_t addend;
};

/* A tensor in f32, of the output's shape, that is added to complete results before an epilogue. */
struct addition {
    const struct microkernels *kernels;
    struct epilogue epilogue, alone; /* alone: without an activation */
};

/* The micro-kernel prefetches the data of the tap this far ahead; lists of offsets are longer than
 * their depth by this number. */
#define AHEAD 12

/* The same distance if weights of several blocks of rows are read together. */
#define BLOCKS_AHEAD 512

/* Bytes of data that stay in the first-level cache while weights are streamed. */
#define FIRST_LEVEL_SHARE ((int64_t)16 << 10)

/* Sums `blocks` neighbouring blocks of rows x columns vectors:
 *
 *     sums[row][position] (+)= sum over k < depth of
 *                              weights[k][row] * data[offsets[k] + position]
 *
 * begins: whether these are the first terms; otherwise they are added to `sums`.
 * bias: one value per row, added last, or NULL; with BEGINS_WITH_BIAS, one value per position.
 * finish: the epilogue, or NULL.
 * ahead: prefetched while the terms are summed, `depth` times a column of weights: weights_ahead(), or
 * what the caller reads next. */
#define BEGINS_WITH_BIAS 2
typedef void (*microkernel)(int64_t depth, const int32_t *offsets, const void *data,
                            const void *weights, void *sums, int64_t row_stride,
                            int64_t blocks, int begins, const void *bias,
                            const struct epilogue *finish, const void *ahead);

/* Sums in vectors of output channels: `depth` taps, the offsets of their data, and of their
 * weights, or NULL if these are contiguous.  The weights of each half of a vector are `block_step`
 * elements apart, the sums of a vector `pitch` from those of the next.  The same number of weights
 * as in one half is prefetched from `ahead`. */
struct out_sums {
    int64_t depth;
    const int32_t *offsets, *weights;
    int64_t block_step, pitch;
    int begins;
    const float *ahead;
};

/* A position, and its sums in the first vector. */
struct out_place {
    const float *data;
    float *sums;
};

/* Rows of positions of one channel, and the taps that are summed at each. */
struct channel_rows {
    int64_t taps;
    const int32_t *offsets;
    int64_t rows, count;
    int64_t pitch, sums_pitch; /* elements from one row's data, and sums, to the next */
};

/* The functions of one accumulator for one instruction set. */
struct microkernels {
    int lanes;                  /* elements of a vector */
    int size;                   /* bytes of an element */
    int rows;                   /* most rows of a micro-kernel */
    int columns[MAX_ROWS + 1];  /* best number of vectors for a number of rows */
    microkernel table[MAX_ROWS + 1][MAX_COLUMNS + 1]; /* NULL: not available */
    /* The sums of a micro-kernel of this number of rows, at one position. */
    void (*sum_position)(int rows, int64_t depth, const int32_t *offsets, const void *data,
                         const void *weights, void *sums, int64_t row_stride, int begins,
                         const void *bias, const struct epilogue *finish);
    /* Sum `depth` channels of one position, whose weights are `step` elements apart, into the
     * results of some taps, [tap][row].  Up to a vector beyond the end may be accessed.  Unless it `begins`,
     * terms are added to these; `finish` is NULL if more follow. */
    void (*sum_taps)(int rows, int64_t taps, int64_t depth, const void *data, const void *weights,
                     int64_t step, int begins, const void *bias, const struct epilogue *finish, void *sums);
    /* The same for one tap and several blocks of equal rows, whose weights are `step` elements
     * apart; the sums of the blocks are contiguous. */
    void (*sum_row_blocks)(int rows, int64_t blocks, int64_t depth, const void *data,
                           const void *weights, int64_t step, const void *bias,
                           const struct epilogue *finish, void *sums);
    /* Sum a channel of a depthwise layer, which has one weight per tap.  If a row is shorter than a
     * vector, a whole vector is summed and stored. */
    void (*sum_channel)(const struct channel_rows *rows, const void *data, const void *weights,
                        const void *bias, const struct epilogue *finish, void *sums);
    /* Copy rows of `count` elements that are `pitch` apart to rows that are `out_pitch` apart.
     * Memory outside of the rows is not accessed. */
    void (*copy_lines)(const void *in, int64_t pitch, int64_t rows, int64_t count, void *out,
                       int64_t out_pitch);
    /* Copy the `count` even elements of rows, and the `pairs` odd ones (the same number or one
     * fewer) to `odds` elements after them. */
    void (*split_lines)(const void *in, int64_t pitch, int64_t rows, int64_t count,
                        int64_t pairs, void *out, int64_t out_pitch, int64_t odds);
    /* For f32, else NULL: copy element i of at most `lanes` channels, which are `step` elements
     * apart, to vector places[i] of `out`; and back, from vector i of `in`. */
    void (*gather_channels)(const void *in, int64_t step, int64_t channels, int64_t count,
                            const int32_t *places, void *out);
    void (*scatter_channels)(const void *in, int64_t step, int64_t channels, int64_t count,
                             void *out);
    /* Like sum_channel(), for vectors of channels; the sums of the rows are contiguous. */
    void (*sum_vectors)(const struct channel_rows *rows, const void *data, const void *weights,
                        const void *bias, const struct epilogue *finish, void *sums);
    /* Sum at OUT_POSITIONS places, in OUT_VECTORS vectors of output channels, for f32; NULL for
     * others. */
    void (*sum_outputs)(const struct out_sums *sums, const struct out_place *places,
                        const float *weights, const float *bias);
    /* Interleave `stride` lines, `pitch` elements apart, into `count` outputs.  Up to a vector
     * beyond the end may be read. */
    void (*interleave)(const void *lines, int64_t pitch, int64_t stride, int64_t count,
                       void *out);
    void (*load)(enum element from, const void *in, int64_t stride, int64_t count, void *out);
    void (*store)(enum element to, const void *in, int64_t count, void *out);
    void (*activate)(const struct epilogue *epilogue, void *row, int64_t count);
    /* Add other elements, and activate the sums. */
    void (*add)(const struct epilogue *epilogue, const void *others, void *row, int64_t count);
    /* Interleave two lines with non-temporal stores; returns 0, and does nothing, unless `count`
     * outputs fill whole cache lines. */
    int (*stream_pairs)(const void *lines, int64_t pitch, int64_t count, void *out);
    /* Copy with non-temporal stores for whole cache lines. */
    void (*stream)(const char *in, int64_t bytes, char *out);
    /* Copy rows of `bytes`, a multiple of 4, which are `step` apart, each followed by `gap` zeros.
     * Up to COPY_STEP bytes beyond the last are overwritten.  Prefetches the rows that lie `ahead`
     * of them. */
    void (*copy_rows)(const char *in, int64_t step, int64_t rows, int64_t bytes, int64_t gap,
                      int64_t ahead, char *out);
};

/* Add the elements of an addition to complete results, which begin at `to`. */
static inline void add_to(const struct addition *a, const char *to, void *row, int64_t count) {
    a->kernels->add(&a->epilogue, to + a->epilogue.addend, row, count);
}

extern const struct microkernels *const kernels_baseline[ACCUMULATORS];
#ifdef DECONV_X86
extern const struct microkernels *const kernels_avx2[ACCUMULATORS];
extern const struct microkernels *const kernels_avx512[ACCUMULATORS];
#endif
/* Of ACC_DOTS, with the processor's instruction for it; NULL if the compiler lacks it. */
#if defined(DECONV_X86)
extern const struct microkernels *const dots_avx2, *const dots_avx512;
/* Of ACC_PAIRS, likewise. */
extern const struct microkernels *const pairs_avx512;
#elif defined(__aarch64__)
extern const struct microkernels *const dots_signed, *const dots_mixed;
#endif

/* Whether an instruction sums products of two bf16, with vectors of ISA_AVX512. */
int has_pairs(void);

/* Whether an instruction sums products of four bytes, with vectors of a set. */
int has_dots(enum isa isa);

/* Return NULL if there are none. */
const struct microkernels *microkernels_for(enum isa isa, enum accumulator accumulator);

/* Choose the next micro-kernels for `vectors` vectors: return their columns, at most `columns`, and
 * set `blocks` to their number. */
static inline int next_blocks(const struct microkernels *kernels, int rows, int columns,
                              int64_t vectors, int64_t *blocks) {
    while (columns > vectors || !kernels->table[rows][columns]) columns--;
    *blocks = vectors / columns;
    return columns;
}
enum accumulator accumulator_of(enum element element);
static inline int element_size(enum element element) {
    static const signed char sizes[ELEMENTS] = {4, 8, 2, 2, 1, 2, 4, 8, 4, 4, 4};
    return sizes[element];
}

/* Whether biases, sums and results are f32. */
static inline int sums_are_f32(int64_t element) {
    return element == F32 || element == BF16X2;
}

#endif
