/* Vectors of 16 bytes: SSE2, NEON, or whatever the compiler makes of them. */
#include "native.h"
#include "half.h"

#define VECTOR_LANES_32 4
#define VECTOR_LANES_64 2
#define SUFFIX baseline
/* 16 registers of 16 bytes: 12 sums, and the rest for data and weights. */
#define ROWS 6
#define COLUMNS {0, 8, 6, 4, 3, 2, 2}
#define SHAPES                                                                                \
    SHAPE(1, 1) SHAPE(1, 2) SHAPE(1, 4) SHAPE(1, 8)                                           \
    SHAPE(2, 1) SHAPE(2, 2) SHAPE(2, 3) SHAPE(2, 6)                                           \
    SHAPE(3, 1) SHAPE(3, 2) SHAPE(3, 4)                                                       \
    SHAPE(4, 1) SHAPE(4, 2) SHAPE(4, 3)                                                       \
    SHAPE(5, 1) SHAPE(5, 2)                                                                   \
    SHAPE(6, 1) SHAPE(6, 2)

static void half_to_float_row(const uint16_t *in, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++) out[i] = half_to_float(in[i]);
}

static void float_to_half_row(const float *in, int64_t count, uint16_t *out) {
    for (int64_t i = 0; i < count; i++) out[i] = float_to_half(in[i]);
}

#include "simd_types.inc.h"

const struct kernels *const kernels_baseline[ACCUMULATORS] = {
    [ACC_F32] = &kernels_f32_baseline,
    [ACC_F64] = &kernels_f64_baseline,
    [ACC_U32] = &kernels_u32_baseline,
    [ACC_U64] = &kernels_u64_baseline,
};
