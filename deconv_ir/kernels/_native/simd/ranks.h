/* TopK: the greatest or smallest elements along an axis, for few of them. */
#ifndef DECONV_RANKS_H
#define DECONV_RANKS_H

#include "simd/microkernels.h"

#define MOST_SELECTED 32
#define MOST_SELECTION_LANES 16

/* Elements are compared as integers whose order is that of the elements to select, the first of
 * equal ones first; NaN is greater than any number. */
struct selection {
    int64_t extent, inner, count; /* of the axis, of the axes after it, of selected elements */
    int32_t flip;                 /* all bits for the smallest elements, else 0 */
    int by_index;                 /* whether the selected elements are in the order of indices */
};

struct selection_functions {
    int lanes;
    /* Select from a row; `places` gets the indices. */
    void (*of_row)(const struct selection *s, const float *row, int32_t *places);
    /* Select along the axis at `lanes` neighbouring positions: places[selected][lane]. */
    void (*of_positions)(const struct selection *s, const float *data, int64_t positions,
                         int32_t *places);
};

extern const struct selection_functions functions_selection_baseline;
#ifdef DECONV_X86
extern const struct selection_functions functions_selection_avx2;
extern const struct selection_functions functions_selection_avx512;
#endif

#endif
