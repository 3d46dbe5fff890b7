/* The micro-kernels of ACC_PAIRS: sums in f32 of products of two bf16, those of neighbouring channels.
 *
 * Included where one instruction does it, which then defines
 *   SUM_PAIRS(sum, data, weights)      for vectors of VECTOR_LANES_32
 *   SUM_ROW_PAIRS(sum, data, weights)  for those of MAX_ROWS
 * and once without, so that every processor can compute the same; PAIRS(x) is x with a suffix of its own.
 *
 * The first channel of a pair is in the lower half of its element.  Elements of data and weights are
 * only moved: none is an operand of f32 arithmetic.
 */
typedef float PAIRS(rows) __attribute__((vector_size(MAX_ROWS * 4)));
typedef float PAIRS(lanes) __attribute__((vector_size(VECTOR_LANES_32 * 4)));

#ifndef SUM_PAIRS
typedef uint32_t PAIRS(row_bits) __attribute__((vector_size(MAX_ROWS * 4)));
typedef uint32_t PAIRS(lane_bits) __attribute__((vector_size(VECTOR_LANES_32 * 4)));
/* The products of bf16 are exact in f32. */
#define SUM_HALVES(sum, data, weights, bits)                                                        \
    ((sum) +                                                                                        \
     (__typeof__(sum))((bits)(data) & 0xffff0000) * (__typeof__(sum))((bits)(weights) & 0xffff0000) + \
     (__typeof__(sum))((bits)(data) << 16) * (__typeof__(sum))((bits)(weights) << 16))
#define SUM_PAIRS(sum, data, weights) SUM_HALVES(sum, data, weights, PAIRS(lane_bits))
#define SUM_ROW_PAIRS(sum, data, weights) SUM_HALVES(sum, data, weights, PAIRS(row_bits))
#endif

static inline __attribute__((always_inline)) PAIRS(lanes) PAIRS(add_pairs)(
    PAIRS(lanes) sum, PAIRS(lanes) data, PAIRS(lanes) weights) {
    return (PAIRS(lanes))SUM_PAIRS(sum, data, weights);
}

static inline __attribute__((always_inline)) PAIRS(rows) PAIRS(add_row_pairs)(
    PAIRS(rows) sum, PAIRS(rows) data, PAIRS(rows) weights) {
    return (PAIRS(rows))SUM_ROW_PAIRS(sum, data, weights);
}

#define ELEMENT float
#define LANES VECTOR_LANES_32
#define NAME(x) PAIRS(x)
#define IS_FLOAT 1
#define IS_PAIRS
#define NATIVE(e) ((e) == BF16X2)
#define ADD_PRODUCT(sum, data, weight) ((sum) = PAIRS(add_pairs)(sum, data, weight))
#define ADD_ROW_PRODUCT(sum, data, weight) ((sum) = PAIRS(add_row_pairs)(sum, data, weight))
#include "simd/microkernel.inc.h"
#undef SUM_HALVES
#undef SUM_PAIRS
#undef SUM_ROW_PAIRS
#undef PAIRS
