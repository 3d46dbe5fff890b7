/* When the nearest level of a number is known in f32. */
#ifndef DECONV_SIMD_LEVELS_H
#define DECONV_SIMD_LEVELS_H

#include <math.h>
#include <stdint.h>

/* The levels of numbers in f32 are known if the ends of the range, in steps of the levels, are below
 * MOST_LEVEL_32, and the distance from the nearest integer is below TIE.  Those of sums with numbers of the
 * magnitude `others`, in steps, if it is below 0.5 - ERROR_32(ends, others), which bounds the rounding errors. */
#define MOST_LEVEL_32 512
#define TIE (0.5f - 0x1p-12f)
#define ERROR_32(ends, others) (0x1p-24 * (7 * (ends) + 5 * (others)))

/* Levels from 0 to 255 are computed in f32 as (level + 0.5) * LEVEL_PARTS plus a margin, and truncated: the nearest level
 * is the upper half of 32 bits, unless the lower half is at most least_rest(), which is never if errors are larger. */
#define LEVEL_PARTS 65536.0f

static inline double margin_of(double error) { return ceil(error * (double)LEVEL_PARTS) + 2; }

static inline uint16_t least_rest(double margin) {
    return margin < (double)LEVEL_PARTS / 4 ? (uint16_t)(2 * margin) : UINT16_MAX;
}

/* Whether truncated levels, of this magnitude, have 32 bits. */
static inline int are_truncated(double magnitude) { return magnitude < 0x1p14; }

static inline double level_of_ends(double low, double high, double factor) {
    return fmax(fabs(low), fabs(high)) * fabs(factor);
}

static inline int levels_are_near(double low, double high, double factor) {
    return level_of_ends(low, high, factor) <= MOST_LEVEL_32;
}

#endif
