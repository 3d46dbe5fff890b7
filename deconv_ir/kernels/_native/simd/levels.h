/* When the nearest level of a number is known in f32. */
#ifndef DECONV_SIMD_LEVELS_H
#define DECONV_SIMD_LEVELS_H

#include <math.h>

/* The levels of numbers in f32 are known if the ends of the range, in steps of the levels, are below
 * MOST_LEVEL_32, and the distance from the nearest integer is below TIE.  Those of sums with numbers of the
 * magnitude `others`, in steps, if it is below 0.5 - ERROR_32(ends, others), which bounds the rounding errors. */
#define MOST_LEVEL_32 512
#define TIE (0.5f - 0x1p-12f)
#define ERROR_32(ends, others) (0x1p-24 * (7 * (ends) + 5 * (others)))

static inline double level_of_ends(double low, double high, double factor) {
    return fmax(fabs(low), fabs(high)) * fabs(factor);
}

static inline int levels_are_near(double low, double high, double factor) {
    return level_of_ends(low, high, factor) <= MOST_LEVEL_32;
}

#endif
