/* The four accumulators for one instruction set.
 *
 * Included once by each simd_*.c, which defines VECTOR_BYTES, SUFFIX, SHAPES,
 * ROWS, COLUMNS, and the two conversions of rows of f16. */

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

/* Rows of so many whole steps, then one that may overlap the last of these; shorter rows are
 * two pieces that may overlap. */
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
    else if (steps < 2) COPY_ROWS(1, COPY_STEP);
    else if (steps == 2) COPY_ROWS(2, COPY_STEP);
    else if (steps == 3) COPY_ROWS(3, COPY_STEP);
    else COPY_ROWS(steps, COPY_STEP);
#undef COPY_ROWS
}

#define ELEMENT float
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, f32, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F32)
#include "direct/microkernel.inc.h"

#define ELEMENT double
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, f64, SUFFIX)
#define IS_FLOAT 1
#define NATIVE(e) ((e) == F64)
#include "direct/microkernel.inc.h"

#define ELEMENT uint32_t
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, u32, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I32)
#include "direct/microkernel.inc.h"

#define ELEMENT uint64_t
#define LANES VECTOR_LANES_64
#define NAME(x) JOIN(x, u64, SUFFIX)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == I64)
#include "direct/microkernel.inc.h"

#include "pointwise/functions.inc.h"
#include "winograd/transforms.inc.h"
