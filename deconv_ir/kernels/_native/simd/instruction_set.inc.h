/* All vector code of one instruction set, with the sizes of its micro-kernels.
 *
 * Included once by each .c file of this folder, which defines VECTOR_LANES_32 and _64, SUFFIX,
 * REGISTERS if there are 32, not 16, EMULATES_PAIRS if it has products of bf16 without an instruction, and if
 * the instructions exist, HALVES, LOAD_HALVES, STORE_HALVES, STREAM, HOLD and LARGER_BITS. */
#include "simd/half.h"

#ifndef REGISTERS
#define REGISTERS 16
#endif

#if REGISTERS == 32
/* 32 registers: 24 sums and 3 of data; the multiply-add broadcasts the weights. */
#define ROWS 8
#define COLUMNS {0, 12, 8, 6, 6, 4, 4, 3, 3}
#define SHAPES                                                                                \
    SHAPE(1, 1) SHAPE(1, 2) SHAPE(1, 3) SHAPE(1, 6) SHAPE(1, 12)                              \
    SHAPE(2, 1) SHAPE(2, 2) SHAPE(2, 3) SHAPE(2, 8)                                           \
    SHAPE(3, 1) SHAPE(3, 2) SHAPE(3, 3) SHAPE(3, 6)                                           \
    SHAPE(4, 1) SHAPE(4, 2) SHAPE(4, 3) SHAPE(4, 6)                                           \
    SHAPE(5, 1) SHAPE(5, 2) SHAPE(5, 3) SHAPE(5, 4)                                           \
    SHAPE(6, 1) SHAPE(6, 2) SHAPE(6, 3) SHAPE(6, 4)                                           \
    SHAPE(7, 1) SHAPE(7, 2) SHAPE(7, 3)                                                       \
    SHAPE(8, 1) SHAPE(8, 2) SHAPE(8, 3)
#else
/* 16 registers: 12 sums, and the others for data and weights.  Two multiply-adds begin in a cycle
 * and take 4 to 5 cycles, so that at least 8 to 10 sums must be independent. */
#define ROWS 6
#define COLUMNS {0, 8, 6, 4, 3, 2, 2}
#define SHAPES                                                                                \
    SHAPE(1, 1) SHAPE(1, 2) SHAPE(1, 4) SHAPE(1, 8)                                           \
    SHAPE(2, 1) SHAPE(2, 2) SHAPE(2, 3) SHAPE(2, 6)                                           \
    SHAPE(3, 1) SHAPE(3, 2) SHAPE(3, 4)                                                       \
    SHAPE(4, 1) SHAPE(4, 2) SHAPE(4, 3)                                                       \
    SHAPE(5, 1) SHAPE(5, 2)                                                                   \
    SHAPE(6, 1) SHAPE(6, 2)
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

static void half_to_float_row(const uint16_t *in, int64_t count, float *out) {
    int64_t i = 0;
#ifdef HALVES
    for (; i + HALVES <= count; i += HALVES) LOAD_HALVES(in + i, out + i);
#endif
    for (; i < count; i++) out[i] = half_to_float(in[i]);
}

static void float_to_half_row(const float *in, int64_t count, uint16_t *out) {
    int64_t i = 0;
#ifdef HALVES
    for (; i + HALVES <= count; i += HALVES) STORE_HALVES(in + i, out + i);
#endif
    for (; i < count; i++) out[i] = float_to_half(in[i]);
}

/* Copy with non-temporal stores; partial cache lines at the ends are stored as usual. */
static void stream(const char *in, int64_t bytes, char *out) {
    int64_t i = least(bytes, (int64_t)(-(uintptr_t)out % CACHE_LINE));
    memcpy(out, in, (size_t)i);
#ifdef STREAM
    for (; i + CACHE_LINE <= bytes; i += CACHE_LINE)
        for (int64_t j = i; j < i + CACHE_LINE; j += STREAM_STEP) STREAM(in + j, out + j);
#endif
    memcpy(out + i, in + i, (size_t)(bytes - i));
}

/* Copy each row in `steps` steps and a last piece of `piece` bytes, which may overlap the steps;
 * without steps, in two pieces that may overlap. */
static inline __attribute__((always_inline)) void copy_rows_of(
    const int64_t steps, const int64_t piece, const char *in, int64_t step, int64_t rows,
    int64_t bytes, int64_t gap, int64_t ahead, char *out) {
    const int64_t last = bytes - piece;
    for (int64_t row = 0; row < rows; row++, in += step, out += bytes + gap) {
        fetch_row(in, ahead, bytes);
#pragma GCC unroll 4
        for (int64_t i = 0; i < steps; i++)
            memcpy(out + i * COPY_STEP, in + i * COPY_STEP, COPY_STEP);
        if (steps == 0) memcpy(out, in, (size_t)piece);
        memcpy(out + last, in + last, (size_t)piece);
        for (int64_t i = 0; i < gap; i += COPY_STEP) memset(out + bytes + i, 0, COPY_STEP);
    }
}

static void copy_rows(const char *in, int64_t step, int64_t rows, int64_t bytes, int64_t gap,
                      int64_t ahead, char *out) {
    const int64_t steps = (bytes - 1) / COPY_STEP;
#define COPY_ROWS(STEPS, PIECE) \
    copy_rows_of(STEPS, PIECE, in, step, rows, bytes, gap, ahead, out)
    if (bytes < 8) COPY_ROWS(0, 4);
    else if (bytes < 16) COPY_ROWS(0, 8);
    else if (bytes < COPY_STEP) COPY_ROWS(0, 16);
    else COPY_ROWS(steps, COPY_STEP);
#undef COPY_ROWS
}

#define ELEMENT float
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, f32, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F32)
#include "simd/microkernel.inc.h"

#define ELEMENT double
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, f64, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F64)
#include "simd/microkernel.inc.h"

#define ELEMENT uint32_t
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, u32, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I32)
#include "simd/microkernel.inc.h"

#define ELEMENT uint64_t
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, u64, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I64)
#include "simd/microkernel.inc.h"

#define DOTS(x) JOIN(x, dots, SUFFIX)
#include "simd/dots.inc.h"
#define DOTS(x) JOIN(x, shorts, SUFFIX)
#define SHORTS
#include "simd/dots.inc.h"
#undef SHORTS
#include "simd/functions.inc.h"
#include "simd/rows.inc.h"
#include "simd/windows.inc.h"
#include "simd/moments.inc.h"
#include "simd/taps.inc.h"
#include "simd/planes.inc.h"
#include "simd/codes.inc.h"
#include "simd/compressed.inc.h"
#include "simd/ranks.inc.h"
#include "simd/quantized.inc.h"
#include "simd/no_vectors.inc.h"
#include "simd/transforms.inc.h"

#ifdef EMULATES_PAIRS
#define PAIRS(x) JOIN(x, pairs, SUFFIX)
#include "simd/pairs.inc.h"
#define KERNELS_PAIRS(suffix) &kernels_pairs_##suffix
#else
#define KERNELS_PAIRS(suffix) NULL
#endif
#define TABLE_(suffix)                                              \
    const struct microkernels *const kernels_##suffix[ACCUMULATORS] = { \
        [ACC_F32] = &kernels_f32_##suffix,                         \
        [ACC_F64] = &kernels_f64_##suffix,                         \
        [ACC_U32] = &kernels_u32_##suffix,                         \
        [ACC_U64] = &kernels_u64_##suffix,                         \
        [ACC_DOTS] = &kernels_dots_##suffix,                       \
        [ACC_PLAIN_DOTS] = &kernels_dots_##suffix,                 \
        [ACC_PAIRS] = KERNELS_PAIRS(suffix),                       \
        [ACC_SHORTS] = &kernels_shorts_##suffix,                   \
    };                                                              \
    const struct transforms *const transforms_##suffix = &transforms_wino_##suffix; \
    const struct transforms *const transforms_of_pairs_##suffix = &transforms_of_pairs_wino_##suffix;
#define TABLE(suffix) TABLE_(suffix)
TABLE(SUFFIX)
