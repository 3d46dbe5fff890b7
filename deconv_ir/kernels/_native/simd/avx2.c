/* Vectors of 32 bytes with fused multiply-add. */
#include "simd/microkernels.h"
#include "simd/rows.h"
#include "simd/functions.h"
#include "simd/windows.h"
#include "simd/moments.h"
#include "simd/taps.h"
#include "simd/planes.h"
#include "simd/codes.h"
#include "simd/ranks.h"
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
#include "simd/instruction_set.inc.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
