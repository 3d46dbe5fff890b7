/* Vectors of 64 bytes. */
#include "native.h"
#include "pointwise/pointwise.h"
#include "winograd/winograd.h"
#ifdef DECONV_X86
#pragma GCC push_options
#ifdef DECONV_LOWER_AVX512
/* For tests on machines without: the same text, its vectors made of halves. */
#pragma GCC target("avx2,fma,f16c")
#else
#pragma GCC target("avx512f,avx512dq,avx2,fma,f16c")
#endif
#include <immintrin.h>
#include "simd/half.h"

#define VECTOR_LANES_32 16
#define VECTOR_LANES_64 8
#define SUFFIX avx512
/* 32 registers: 24 sums, 3 of data; weights are broadcast by the multiply-add. */
#define ROWS 8
#define COLUMNS {0, 12, 8, 6, 6, 4, 4, 3, 3}
#define SHAPES                                                                                \
    SHAPE(1, 1) SHAPE(1, 2) SHAPE(1, 3) SHAPE(1, 6) SHAPE(1, 12)                              \
    SHAPE(2, 1) SHAPE(2, 2) SHAPE(2, 3) SHAPE(2, 8)                                           \
    SHAPE(3, 1) SHAPE(3, 2) SHAPE(3, 3) SHAPE(3, 6)                                           \
    SHAPE(4, 1) SHAPE(4, 2) SHAPE(4, 3) SHAPE(4, 6)                                           \
    SHAPE(5, 1) SHAPE(5, 2) SHAPE(5, 4)                                                       \
    SHAPE(6, 1) SHAPE(6, 2) SHAPE(6, 4)                                                       \
    SHAPE(7, 1) SHAPE(7, 2) SHAPE(7, 3)                                                       \
    SHAPE(8, 1) SHAPE(8, 2) SHAPE(8, 3)

static void half_to_float_row(const uint16_t *in, int64_t count, float *out) {
    int64_t i = 0;
#ifndef DECONV_LOWER_AVX512
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + i))));
#endif
    for (; i < count; i++) out[i] = half_to_float(in[i]);
}

static void float_to_half_row(const float *in, int64_t count, uint16_t *out) {
    int64_t i = 0;
#ifndef DECONV_LOWER_AVX512
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(out + i),
            _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++) out[i] = float_to_half(in[i]);
}

/* Copy past the caches: whole lines of the output; what is left of others is stored. */
static void stream(const char *in, int64_t bytes, char *out) {
    int64_t i = least(bytes, (int64_t)(-(uintptr_t)out % LINE));
    memcpy(out, in, (size_t)i);
#ifndef DECONV_LOWER_AVX512
    for (; i + LINE <= bytes; i += LINE)
        _mm512_stream_si512((__m512i *)(out + i), _mm512_loadu_si512((in + i)));
#endif
    memcpy(out + i, in + i, (size_t)(bytes - i));
}

#ifndef DECONV_LOWER_AVX512
#define LARGER_BITS(a, b) ((NAME(bits))_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#endif
#include "simd/element_types.inc.h"

const struct kernels *const kernels_avx512[ACCUMULATORS] = {
    [ACC_F32] = &kernels_f32_avx512,
    [ACC_F64] = &kernels_f64_avx512,
    [ACC_U32] = &kernels_u32_avx512,
    [ACC_U64] = &kernels_u64_avx512,
};
const struct transforms *const transforms_avx512 = &transforms_wino_avx512;
#pragma GCC pop_options
#endif
