/* Vectors of 16 bytes: SSE2, NEON, or the compiler's emulation. */
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
