/* What the files that execute minimal filtering share: a run, and a tile of it. */
#ifndef DECONV_WINOGRAD_TILE_H
#define DECONV_WINOGRAD_TILE_H

#include "winograd/winograd.h"

#include <stdatomic.h>

struct context {
    const struct layer *layer;
    const struct run *run;
    const struct kernels *kernels;
    const struct transforms *transforms;
    const struct wino_plan *plan;
    const struct epilogue *epilogue;
    const struct arrays *arrays;
    float *shared; /* the panels of all tiles, or NULL */
    atomic_int *too_large;
    int streamed;
};

struct tile {
    int64_t group, first_image, images, first_chunk, chunks;
    int64_t first[AXES], box[AXES]; /* windows */
    int64_t positions, blocks;      /* blocks of positions of a product */
    float *block, *z, *y, *ready, *loaded, *flat, *panel, *sums, *zeros; /* scratch */
    float *out, *row;
    /* Of a row of the output: groups of woven lines, where the row begins in these and in
     * the output, and its elements. */
    int64_t groups, before, begin, elements;
};

/* Fill some channels of the panel, which is
 * [alignment][point][block of positions][part][channel][position]. */
void wino_fill_panel(const struct context *c, const struct tile *tile, int64_t first,
                     int64_t count);

#endif
