/* Vectors of 16 bytes: SSE2, NEON, or whatever the compiler makes of them. */
#include "native.h"
#include "pointwise/pointwise.h"
#include "winograd/winograd.h"
#include "simd/half.h"

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

#ifdef __SSE2__
#include <emmintrin.h>
/* Copy past the caches: whole lines of the output; what is left of others is stored. */
static void stream(const char *in, int64_t bytes, char *out) {
    int64_t i = least(bytes, (int64_t)(-(uintptr_t)out % LINE));
    memcpy(out, in, (size_t)i);
    for (; i + LINE <= bytes; i += LINE)
        for (int64_t j = i; j < i + LINE; j += 16)
            _mm_stream_si128((__m128i *)(out + j), _mm_loadu_si128((const __m128i *)(in + j)));
    memcpy(out + i, in + i, (size_t)(bytes - i));
}
#else
static void stream(const char *in, int64_t bytes, char *out) { memcpy(out, in, (size_t)bytes); }
#endif

#include "simd/element_types.inc.h"

const struct kernels *const kernels_baseline[ACCUMULATORS] = {
    [ACC_F32] = &kernels_f32_baseline,
    [ACC_F64] = &kernels_f64_baseline,
    [ACC_U32] = &kernels_u32_baseline,
    [ACC_U64] = &kernels_u64_baseline,
};
const struct transforms *const transforms_baseline = &transforms_wino_baseline;
