/* Vectors of 32 bytes with fused multiply-add. */
#include "native.h"
#include "pointwise/pointwise.h"
#include "winograd/winograd.h"
#ifdef DECONV_X86
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#include <immintrin.h>
#include "simd/half.h"

#define VECTOR_LANES_32 8
#define VECTOR_LANES_64 4
#define SUFFIX avx2
/* 16 registers: 12 sums (two multiply-adds a cycle, each 4 to 5 cycles long,
 * need 8 to 10 of them at work), and the rest for data and weights. */
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
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
    for (; i < count; i++) out[i] = half_to_float(in[i]);
}

static void float_to_half_row(const float *in, int64_t count, uint16_t *out) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; i++) out[i] = float_to_half(in[i]);
}

/* Copy past the caches: whole lines of the output; what is left of others is stored. */
static void stream(const char *in, int64_t bytes, char *out) {
    int64_t i = least(bytes, (int64_t)(-(uintptr_t)out % LINE));
    memcpy(out, in, (size_t)i);
    for (; i + LINE <= bytes; i += LINE)
        for (int64_t j = i; j < i + LINE; j += 32)
            _mm256_stream_si256((__m256i *)(out + j),
                                _mm256_loadu_si256((const __m256i *)(in + j)));
    memcpy(out + i, in + i, (size_t)(bytes - i));
}

#define LARGER_BITS(a, b) ((NAME(bits))_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#include "simd/element_types.inc.h"

const struct kernels *const kernels_avx2[ACCUMULATORS] = {
    [ACC_F32] = &kernels_f32_avx2,
    [ACC_F64] = &kernels_f64_avx2,
    [ACC_U32] = &kernels_u32_avx2,
    [ACC_U64] = &kernels_u64_avx2,
};
const struct transforms *const transforms_avx2 = &transforms_wino_avx2;
#pragma GCC pop_options
#endif
