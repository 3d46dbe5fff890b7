/* Vectors of 32 bytes with fused multiply-add. */
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
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#include <immintrin.h>

#define VECTOR_LANES_32 8
#define VECTOR_LANES_64 4
#define SUFFIX avx2

#define HALVES 8 /* of f16 that are converted at once */
#define LOAD_HALVES(from, to) \
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from))))
#define STORE_HALVES(from, to) \
    _mm_storeu_si128((void *)(to), \
                     _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#define STREAM_STEP 32
#define STREAM(from, to) \
    _mm256_stream_si256((void *)(to), _mm256_loadu_si256((const void *)(from)))
#define LARGER_BITS(a, b) ((NAME(bits))_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define MULTIPLY_PAIRS(data, weights) \
    (DOTS(lanes))_mm256_madd_epi16((__m256i)(data), (__m256i)(weights))
#define EXTEND_EVEN(weights) \
    _mm256_srai_epi16(_mm256_slli_epi16((__m256i)(weights), 8), 8)
#define EXTEND_ODD(weights) _mm256_srai_epi16((__m256i)(weights), 8)
#include "simd/instruction_set.inc.h"
#if defined(__clang__) ? __clang_major__ < 12 : __GNUC__ < 11
const struct microkernels *const dots_avx2 = NULL;
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avxvnni")
#endif
#define DOTS(x) JOIN(x, dots, avxvnni)
#define SUM_DOTS(sum, data, weights) \
    _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(data), (__m256i)(weights))
#define SUM_ROW_DOTS SUM_DOTS
#include "simd/dots.inc.h"
const struct microkernels *const dots_avx2 = &kernels_dots_avxvnni;
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
