/* Vectors of 64 bytes. */
#include "simd/microkernels.h"
#include "simd/rows.h"
#include "simd/functions.h"
#include "simd/windows.h"
#include "simd/moments.h"
#include "simd/taps.h"
#include "simd/planes.h"
#include "simd/codes.h"
#include "simd/compressed.h"
#include "simd/ranks.h"
#include "simd/quantized.h"
#include "simd/transforms.h"
#ifdef DECONV_X86
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#ifdef DECONV_LOWER_AVX512
/* For tests on machines without AVX-512: the same code, with vectors made of halves. */
#pragma GCC target("avx2,fma,f16c")
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx2,fma,f16c")
#endif
#endif
#include <immintrin.h>

#define VECTOR_LANES_32 16
#define VECTOR_LANES_64 8
#define SUFFIX avx512
#define REGISTERS 32

#ifndef DECONV_LOWER_AVX512
#define HALVES 16
#define LOAD_HALVES(from, to) \
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from))))
#define STORE_HALVES(from, to) \
    _mm256_storeu_si256((void *)(to), \
                        _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#define STREAM_STEP 64
#define STREAM(from, to) _mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))
#define MULTIPLY_PAIRS(data, weights) \
    (DOTS(lanes))_mm512_madd_epi16((__m512i)(data), (__m512i)(weights))
#define EXTEND_EVEN(weights) \
    _mm512_srai_epi16(_mm512_slli_epi16((__m512i)(weights), 8), 8)
#define EXTEND_ODD(weights) _mm512_srai_epi16((__m512i)(weights), 8)
#define HOLD(vector) __asm__("" : "+v"(vector))
#define LARGER_BITS(a, b) ((NAME(bits))_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#endif
#include "simd/instruction_set.inc.h"
#ifdef DECONV_LOWER_AVX512
const struct microkernels *const dots_avx512 = NULL, *const pairs_avx512 = NULL;
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512vnni,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512vnni,avx512vl")
#endif
#define DOTS(x) JOIN(x, dots, vnni)
#define SUM_DOTS(sum, data, weights) \
    _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(data), (__m512i)(weights))
#define SUM_ROW_DOTS(sum, data, weights) \
    _mm256_dpbusd_epi32((__m256i)(sum), (__m256i)(data), (__m256i)(weights))
#include "simd/dots.inc.h"
const struct microkernels *const dots_avx512 = &kernels_dots_vnni;
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#if defined(__clang__) ? __clang_major__ < 9 : __GNUC__ < 10
const struct microkernels *const pairs_avx512 = NULL;
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512bf16,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512bf16,avx512vl")
#endif
#define PAIRS(x) JOIN(x, pairs, avx512bf16)
#define SUM_PAIRS(sum, data, weights) \
    _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(data), (__m512bh)(weights))
#define SUM_ROW_PAIRS(sum, data, weights) \
    _mm256_dpbf16_ps((__m256)(sum), (__m256bh)(data), (__m256bh)(weights))
#include "simd/pairs.inc.h"
const struct microkernels *const pairs_avx512 = &kernels_pairs_avx512bf16;
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#endif
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
