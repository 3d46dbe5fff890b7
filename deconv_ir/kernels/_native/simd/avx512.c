/* Vectors of 64 bytes. */
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
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512dq,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#ifdef DECONV_LOWER_AVX512
/* For tests on machines without AVX-512: the same code, with vectors made of halves. */
#pragma GCC target("avx2,fma,f16c")
#else
#pragma GCC target("avx512f,avx512dq,avx2,fma,f16c")
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
#define HOLD(vector) __asm__("" : "+v"(vector))
#define LARGER_BITS(a, b) ((NAME(bits))_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#endif
#include "simd/instruction_set.inc.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
