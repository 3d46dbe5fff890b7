/* Declarations that the files that execute Winograd share: a run, and a tile of it. */
#ifndef DECONV_WINOGRAD_TILE_H
#define DECONV_WINOGRAD_TILE_H

#include "winograd/winograd.h"

struct wino_context {
    const struct kernel *k;
    const struct problem *problem;
    const struct microkernels *kernels;
    const struct transforms *transforms;
    const struct run *run;
    const struct wino_plan *plan;
    const char *data;
    char *out;
    float *shared; /* the panels and levels of all places, or NULL */
    int streamed;
    atomic_int *misses; /* whether a tile needs the packed filter, which is missing */
};

struct wino_tile {
    const struct wino_context *c;
    int64_t group, first_image, images, first_chunk, chunks;
    int64_t first[AXES], shape[AXES]; /* windows */
    int64_t positions, blocks;      /* blocks of positions of a product */
    float *block, *z, *y, *ready, *loaded, *flat, *panel, *sums, *zeros; /* scratch */
    float *out, *row; /* scratch */
    float *weights;   /* scratch of a chunk's transformed weights, if the filter has codes */
    float *levels; /* [image][z][y][x] */
    int32_t *uneven; /* windows that are summed directly: their positions */
    int64_t uneven_count;
    /* A row of the output: groups of interleaved lines, the start of the row in these and in the
     * output, and its elements. */
    int64_t groups, before, begin, elements;
};

/* Fill some channels of the panel, which is
 * [alignment][point][block of positions][part][channel][position]. */
void wino_fill_panel(const struct wino_context *c, const struct wino_tile *tile, int64_t first,
                     int64_t count);

/* The stretch of an axis that a tile reads. */
struct stretch wino_stretch(const struct wino_context *c, const struct wino_tile *tile, int axis);

/* The image, windows and sublattices of a position of a tile. */
struct window_place {
    int64_t image, window[AXES], sublattice[AXES];
};

struct window_place wino_place_of(const struct wino_context *c, const struct wino_tile *tile,
                                int64_t position);

/* Find the output channels of a job's units of one sub-convolution. */
void wino_channels_of(const struct wino_context *c, const struct wino_tile *tile,
                      const int64_t *sub, int64_t *first, int64_t *last);

/* Find the windows of a tile whose data are too uneven, huge or not finite, after its results are
 * written; results that depend only on zeros are written again.  `fills` are `count` arrays of
 * levels to be joined. */
void wino_find_uneven(const struct wino_context *c, struct wino_tile *tile, const float *fills,
                      int64_t count);
/* Sum these windows directly, and overwrite their results. */
void wino_sum_uneven(struct wino_tile *tile, void *scratch);

#endif
