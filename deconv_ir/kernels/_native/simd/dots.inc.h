/* The micro-kernels of ACC_DOTS: sums of the products of four unsigned bytes of data with four signed
 * bytes of weights, exact in 32 bits.
 *
 * Included for each instruction set: for fours of bytes, with SHORTS for elements of two bytes that are extended
 * to 16 bits, and again where an instruction sums products of bytes, which then defines DOTS(x), x with a suffix
 * of its own, and
 *   SUM_DOTS(sum, data, weights)      for vectors of VECTOR_LANES_32
 *   SUM_ROW_DOTS(sum, data, weights)  for those of MAX_ROWS; default: several vectors
 */
typedef uint32_t DOTS(rows) __attribute__((vector_size(MAX_ROWS * 4)));
typedef uint32_t DOTS(lanes) __attribute__((vector_size(VECTOR_LANES_32 * 4)));

#ifdef SHORTS
#define PRODUCTS_ARE_APART 1
#define SUM_HALVES(sum, data, weights, signed_vector)                                             \
    ((sum) + (__typeof__(sum))((signed_vector)((data) << 16) >> 16) *                             \
                 (__typeof__(sum))((signed_vector)((weights) << 16) >> 16) +                      \
     (__typeof__(sum))((signed_vector)(data) >> 16) *                                             \
         (__typeof__(sum))((signed_vector)(weights) >> 16))
typedef int32_t DOTS(signed_rows) __attribute__((vector_size(MAX_ROWS * 4)));
typedef int32_t DOTS(signed_lanes) __attribute__((vector_size(VECTOR_LANES_32 * 4)));
#ifdef MULTIPLY_PAIRS
#define SUM_DOTS(sum, data, weights) ((sum) + MULTIPLY_PAIRS(data, weights))
#else
#define SUM_DOTS(sum, data, weights) SUM_HALVES(sum, data, weights, DOTS(signed_lanes))
#endif
#if VECTOR_LANES_32 > MAX_ROWS
#define SUM_ROW_DOTS(sum, data, weights) SUM_HALVES(sum, data, weights, DOTS(signed_rows))
#endif
#elif !defined(SUM_DOTS)
/* Products of 16 bits cannot be exact: 255 * -128 twice is beyond them. */
#define SUM_BYTES(sum, data, weights, signed_vector)                                                \
    ((sum) + ((data) & 255) * (__typeof__(sum))((signed_vector)((weights) << 24) >> 24) +           \
     ((data) >> 8 & 255) * (__typeof__(sum))((signed_vector)((weights) << 16) >> 24) +              \
     ((data) >> 16 & 255) * (__typeof__(sum))((signed_vector)((weights) << 8) >> 24) +              \
     ((data) >> 24) * (__typeof__(sum))((signed_vector)(weights) >> 24))
typedef int32_t DOTS(signed_rows) __attribute__((vector_size(MAX_ROWS * 4)));
typedef int32_t DOTS(signed_lanes) __attribute__((vector_size(VECTOR_LANES_32 * 4)));
#define SUM_ROW_DOTS(sum, data, weights) SUM_BYTES(sum, data, weights, DOTS(signed_rows))
#ifdef MULTIPLY_PAIRS
/* Bytes of even and odd places, as pairs of 16 bits. */
#define SUM_DOTS(sum, data, weights)                                                                \
    ((sum) + MULTIPLY_PAIRS((data) & 0x00ff00ff, EXTEND_EVEN(weights)) +                            \
     MULTIPLY_PAIRS((data) >> 8 & 0x00ff00ff, EXTEND_ODD(weights)))
#else
#define SUM_DOTS(sum, data, weights) SUM_BYTES(sum, data, weights, DOTS(signed_lanes))
#endif
#endif

static inline __attribute__((always_inline)) DOTS(lanes) DOTS(add_dots)(
    DOTS(lanes) sum, DOTS(lanes) data, DOTS(lanes) weights) {
    return (DOTS(lanes))SUM_DOTS(sum, data, weights);
}

static inline __attribute__((always_inline)) DOTS(rows) DOTS(add_row_dots)(
    DOTS(rows) sum, DOTS(rows) data, DOTS(rows) weights) {
#ifdef SUM_ROW_DOTS
    return (DOTS(rows))SUM_ROW_DOTS(sum, data, weights);
#else
    DOTS(lanes) sums[MAX_ROWS / VECTOR_LANES_32], some[MAX_ROWS / VECTOR_LANES_32];
    DOTS(lanes) others[MAX_ROWS / VECTOR_LANES_32];
    memcpy(sums, &sum, sizeof sum);
    memcpy(some, &data, sizeof data);
    memcpy(others, &weights, sizeof weights);
    for (int i = 0; i < MAX_ROWS / VECTOR_LANES_32; i++)
        sums[i] = DOTS(add_dots)(sums[i], some[i], others[i]);
    memcpy(&sum, sums, sizeof sum);
    return sum;
#endif
}

#define ELEMENT uint32_t
#define LANES VECTOR_LANES_32
#define NAME(x) DOTS(x)
#define IS_FLOAT 0
#define NATIVE(e) ((e) == U8X4 || (e) == I16X2)
#define ADD_PRODUCT(sum, data, weight) ((sum) = DOTS(add_dots)(sum, data, weight))
#define ADD_ROW_PRODUCT(sum, data, weight) ((sum) = DOTS(add_row_dots)(sum, data, weight))
#include "simd/microkernel.inc.h"
#undef SUM_DOTS
#undef SUM_ROW_DOTS
#undef SUM_HALVES
#undef DOTS
