/* Vectors of 16 bytes: SSE2, NEON, or the compiler's emulation. */
#if defined(__aarch64__) && !defined(__clang__)
/* Before registers are allocated, GCC would move loads so far ahead that sums leave registers. */
#pragma GCC optimize("no-schedule-insns")
#endif
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

#define VECTOR_LANES_32 4
#define VECTOR_LANES_64 2
#define SUFFIX baseline
#define EMULATES_PAIRS

#ifdef __SSE2__
#include <emmintrin.h>
#define MULTIPLY_PAIRS(data, weights) \
    (DOTS(lanes))_mm_madd_epi16((__m128i)(data), (__m128i)(weights))
#define EXTEND_EVEN(weights) _mm_srai_epi16(_mm_slli_epi16((__m128i)(weights), 8), 8)
#define EXTEND_ODD(weights) _mm_srai_epi16((__m128i)(weights), 8)
#define STREAM_STEP 16
#define STREAM(from, to) _mm_stream_si128((void *)(to), _mm_loadu_si128((const void *)(from)))
#endif
#ifdef __aarch64__
#include <arm_neon.h>
#define REGISTERS 32
#define HALVES 4
#define LOAD_HALVES(from, to) \
    vst1q_f32(to, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))))
#define STORE_HALVES(from, to) \
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from))))
#define LARGER_BITS(a, b) ((NAME(bits))vmaxq_s32((int32x4_t)(a), (int32x4_t)(b)))
#endif
#include "simd/instruction_set.inc.h"
#ifdef __aarch64__
/* The headers of other compilers lack the instructions, or have them for whole files alone. */
#if defined(__clang__) ? __clang_major__ < 17 : __GNUC__ < 10
const struct microkernels *const dots_signed = NULL, *const dots_mixed = NULL;
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
/* Signed bytes alone: sums of (data - 128) * weights, and of 128 * weights, which the compiler computes
 * once for all vectors of data. */
#define MIDDLE vdupq_n_s8(-128)
#define DOTS(x) JOIN(x, dots, signed)
#define SUM_DOTS(sum, data, weights)                                                                \
    vsubq_s32(vdotq_s32((int32x4_t)(sum), veorq_s8((int8x16_t)(data), MIDDLE), (int8x16_t)(weights)), \
              vdotq_s32(vdupq_n_s32(0), MIDDLE, (int8x16_t)(weights)))
#include "simd/dots.inc.h"
const struct microkernels *const dots_signed = &kernels_dots_signed;
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("i8mm"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+i8mm")
#endif
#define DOTS(x) JOIN(x, dots, mixed)
#define SUM_DOTS(sum, data, weights) \
    vusdotq_s32((int32x4_t)(sum), (uint8x16_t)(data), (int8x16_t)(weights))
#include "simd/dots.inc.h"
const struct microkernels *const dots_mixed = &kernels_dots_mixed;
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#endif
