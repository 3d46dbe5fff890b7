/* Integer arithmetic of extents and sizes. */
#ifndef DECONV_ARITHMETIC_H
#define DECONV_ARITHMETIC_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }
static inline int64_t floor_divide(int64_t a, int64_t b) { /* b > 0 */
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

#endif
