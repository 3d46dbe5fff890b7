/* Winograd F(m, r): fewer multiplications for sub-convolutions of two taps or more.
 *
 * Winograd (1980); Lavin and Gray, "Fast Algorithms for Convolutional Neural
 * Networks" (2016).  F(m, t) computes m neighbouring sums of t taps from m + t - 1 products of the
 * data's and the weights' values at m + t - 1 points. docs/kernels.md has the formulas and the
 * division of a layer.
 *
 * A window is an input tile of F(m, r): m + r - 1 samples along each axis, from which m outputs are
 * computed.  A tile, as elsewhere, is the part of a run that a job computes: a block of windows.
 */
#ifndef DECONV_WINOGRAD_H
#define DECONV_WINOGRAD_H

#include "convolution/convolution.h"
#include "simd/transforms.h"

#define MOST_AXIS_SUBS 64  /* of an axis */
#define MOST_AXIS_PARTS 4    /* of an axis */
#define MOST_PARTS (MOST_AXIS_PARTS * MOST_AXIS_PARTS * MOST_AXIS_PARTS)
#define MOST_DILATION 16       /* positions between taps */
#define MOST_LANES 16        /* of a vector of f32 */
#define MOST_INTERLEAVED 1364 /* lines that form a row of the output */
#define NARROWEST_PANEL 16   /* fewest positions of a micro-kernel */

/* A level is a magnitude of the data, scaled by the weights of its channel: see docs/numerics.md.
 * A window is summed directly if its largest level is more than MOST_UNEVEN times that of one of
 * its results, or that of half of its data (zeros not counted), or more than LARGEST_LEVEL, where a
 * transform could overflow.  Scales are from 1 to 2^60, so that only zeros have level 0. */
#define MOST_UNEVEN 64
#define LARGEST_SCALE 0x1p60f
#define LARGEST_LEVEL 0x1p120f
#define LARGEST_WEIGHT 0x1p40f
/* A filter is not transformed if, for an output channel, the ratio of two taps exceeds this. */
#define MOST_UNEVEN_TAPS 16

struct wino_shape {
    int points, outputs, taps;
    double weights[MOST_POINTS][3]; /* [point][tap]: the factor of a tap at a point */
};
extern const struct wino_shape wino_shapes[WINO_SIZES];

/* One axis of a packed layer.  Window w of sublattice r starts at data position
 * step*w + r + origin; output j of sub-convolution q is at v = step*w + dilation*j + r + shift. */
struct wino_axis {
    enum wino_size size;
    int points, outputs;
    int64_t stride;     /* sub-convolutions */
    int64_t dilation;   /* positions from one tap of a sub-convolution to the next */
    int64_t step;       /* outputs * dilation */
    int64_t alignments; /* distinct windows: sub-convolutions of one alignment share them */
    /* An axis of one sub-convolution may have more taps than F(m, r): these are divided into parts
     * with separate windows, whose products are summed like those of more channels. */
    int parts;
    struct {
        int taps, first; /* number, and the first tap of the sub-convolution */
        unsigned uses;   /* as below */
    } part[MOST_AXIS_PARTS];
    int64_t origins;    /* windows of all alignments, or of all parts */
    int64_t origin[MOST_AXIS_SUBS]; /* [alignment], or [part] */
    struct {
        int64_t packed;    /* the packed sub-convolution with this one's weights */
        int64_t alignment, shift;
        int taps, first;   /* its taps of F(m, r) */
        unsigned uses;     /* bit set of points at which it has weights */
    } sub[MOST_AXIS_SUBS];
};

/* The form of the transformed weights, as chosen for runs of some extents. */
struct wino_choice {
    enum wino_size size[AXES];
    int64_t merged[AXES];  /* whether all sub-convolutions share their windows */
    int64_t threads;       /* number of threads among which chunks divide evenly */
    int64_t residue[AXES]; /* of the pads, modulo the stride */
};

/* A unit is one output channel of one sub-convolution of the first two axes: its rows are
 * the sub-convolutions of the last axis.  Chunks are runs of units; chunks that begin at the same
 * sub-convolution and have the same length have the same layout. */
struct wino_layout {
    int64_t first, count; /* unit modulo the number of sub-convolutions, units */
    int32_t *line;        /* [unit][last sub-convolution][point]: line of its sums, or -1 */
    int32_t *rows;        /* [alignment][point] */
    int64_t lines, weights; /* floats of its weights */
};

struct wino_packing {
    struct wino_choice choice;
    struct wino_axis axes[AXES];
    int64_t points, alignments, subs; /* of all axes; sub-convolutions of the first two */
    int64_t parts, origins; /* of all axes */
    int64_t channels;       /* of a group */
    int64_t depth[MOST_VALUES]; /* [point]: channels of all parts with weights there */
    int8_t at_depth[MOST_PARTS][MOST_VALUES]; /* index of a part among these, or -1 */
    int64_t units, chunk_units, chunks; /* of a group */
    int64_t layout_count;
    struct wino_layout *layouts;
    int64_t *chunk_first;  /* [chunks + 1]: first weight of a chunk */
    /* [group][chunk][alignment][point][block of rows][part][channel][row]; NULL if the filter has codes: jobs transform
     * those of a chunk. */
    float *weights;
    float *bias;   /* with one point: [group][chunk][alignment][row] */
    float *scales; /* [group][channel]: the factors of levels; not used for integers */
};

struct wino_tiling {
    int64_t images, shape[AXES], chunks; /* of a job; shape: in windows */
    int64_t threads; /* number of threads */
    int64_t grid[AXES], image_groups, row_groups, jobs;
    int even; /* whether tiles along the second axis have equal numbers of windows */
    int64_t places; /* tiles of positions, not counting groups of rows */
    /* Number of jobs that fill each panel, all before any panel is used; 0: every job fills its own
     * panel. */
    int64_t fills;
    /* Data that a tile reads, [z][y][x modulo dilation][x / dilation][channel]: positions of the
     * axes, vectors of the last, floats of a row and of a plane. */
    int64_t extent[AXES], pitch, row, plane;
    int64_t ready_step;          /* floats of windows that wait to be transposed, at one point */
    int64_t loaded_step;         /* floats of a row of one channel */
    int64_t positions, padded;   /* of a tile; rounded up to whole panels */
    int64_t line;                /* from one line of sums to the next */
    int64_t width;               /* positions of a micro-kernel: whole vectors */
    int64_t panel_block;         /* floats of a block of `width` positions */
    int64_t blocks;              /* number of such blocks of a tile */
    int64_t rows_together;       /* rows of windows that are interleaved at once */
    int64_t out_step, row_step;  /* floats of the outputs, and of the rows, of one channel */
    /* Scratch of a worker: floats of its parts, bytes of all. */
    int64_t block_size, z_size, y_size, ready_size, loaded_size, flat_size, panel_size;
    int64_t level_size, uneven_size, sums_size, out_size, row_size, weights_size, bytes;
    int64_t work_size; /* of filling a panel or computing results: the larger one */
    /* If panels are shared: floats of the panel and the levels of each fill of a place, and bytes
     * of all places. */
    int64_t shared_size, shared_bytes;
    double cycles;
};

struct wino_plan {
    const struct wino_packing *packing;
    int64_t windows[AXES];
    int64_t low[AXES];        /* the data position at which the first window begins */
    int64_t origin[AXES][MOST_AXIS_SUBS]; /* [origin]: relative to `low` */
    int64_t reach[AXES];      /* positions that windows with one index read */
    /* The interleaved lines of the last axis, in order. */
    int64_t interleaved_base, interleaved_lines, interleaved_high;
    struct wino_line {
        int32_t sub, sublattice, output, shift;
    } *interleaved;
    int32_t *offsets;
    /* [origin][point]: the place of the values in a panel, in floats from channel 0 on; -1 without
     * weights. */
    int64_t *panel_start;
    struct wino_tiling tiling;
};

/* Channels whose results are written together: codes of four are in an element. */
static inline int64_t wino_together(const struct kernel *k) {
    return problem_has_codes(&k->problem) ? 4 : 1;
}
static inline const struct transforms *wino_transforms(const struct kernel *k) {
    return transforms_for((enum isa)k->problem.isa, (enum element)k->problem.element);
}
/* Most taps of a sub-convolution of the direct packing. */
int64_t wino_taps(const struct packing *direct, int axis);
/* Whether Winograd can compute a layer, if it takes the weights. */
int wino_supports(const struct kernel *k);
/* The first window of a tile along an axis; for the tile after the last, the end of all windows. */
static inline int64_t wino_tile_begin(const struct wino_plan *plan, const struct wino_tiling *t,
                                      int axis, int64_t at) {
    const int64_t all = plan->windows[axis];
    return axis == 1 && t->even ? at * all / t->grid[1] : least(at * t->shape[axis], all);
}

/* Cycles of a barrier: until all threads know that panels are filled. */
#define BARRIER_CYCLES 9000
/* With fewer input or output channels, Winograd is not considered unless it is forced. */
#define WINO_FEWEST_CHANNELS 8
/* The cost function, of a struct wino_plan and a struct wino_tiling: see convolution/search.h. */
double wino_cycles(const struct kernel *k, const struct run *run, const void *plan,
                   const void *tiling);

/* Count the blocks of positions of all tiles of an image, if a tile has `height` windows along the
 * second axis; tiles at the edges have fewer. */
int64_t wino_count_blocks(const struct wino_plan *plan, const struct wino_tiling *tiling,
                          int64_t height);
/* Choose the form of the weights for a run, and predict its `cycles`; `takes` is that of wino_takes_weights().
 * Returns 1 if Winograd cannot compute it, OUT_OF_MEMORY, or 0. */
int wino_choose(const struct kernel *k, const struct run *run, int takes,
                struct wino_choice *choice, double *cycles);
/* Adapt a choice to the pads of a run. */
void wino_place(const struct kernel *k, const struct run *run, struct wino_choice *choice);
/* Arrange the chunks of a choice for the threads of a run.  Returns OUT_OF_MEMORY, or 0. */
int wino_arrange(const struct kernel *k, const struct run *run, struct wino_choice *choice);
/* Whether two choices are equal, except for their chunks. */
int wino_choices_agree(const struct wino_choice *a, const struct wino_choice *b);
/* Plan a run with the weights of a packing, filled or not.  Returns the values of wino_choose(). */
int wino_plan_make(const struct kernel *k, const struct run *run,
                   const struct wino_packing *packing, struct wino_plan *plan);
void wino_plan_free(struct wino_plan *plan);

int wino_packing_make(const struct kernel *k, const struct wino_choice *choice,
                      struct wino_packing *packing);
void wino_packing_free(struct wino_packing *packing);
/* Bytes of the weights of a packing that are kept, filled or not. */
int64_t wino_weight_bytes(const struct kernel *k, const struct wino_packing *packing);
/* Whether weights are finite, small enough and even enough to be transformed; or OUT_OF_MEMORY.  Of integers, 1 more
 * than the bits by which any of their sums can be shifted. */
int wino_takes_weights(const struct kernel *k);
/* Find the taps of a part of sub-convolution q. */
void wino_taps_make(const struct problem *problem, const struct wino_packing *packing, const int64_t q[AXES],
                    int64_t part, struct wino_taps *taps);
/* Sub-convolutions of the packed filter; the taps of one; the first weight of a block of its rows. */
int64_t wino_subs(const struct packing *direct);
int64_t wino_taps_of(const struct kernel *k, int64_t sub);
int64_t wino_packed_at(const struct kernel *k, int64_t group, int64_t sub, int64_t block);
/* Input channels of a filter of codes that are unpacked at once. */
int64_t wino_unpacked_channels(const struct kernel *k);
/* Floats of scratch for a block of rows of these. */
int64_t wino_block_size(const struct kernel *k);
/* Return the weights of a block of rows of a packed sub-convolution, for `count` input channels from `first` on,
 * [channel in][tap][row]; codes are unpacked to `room`. */
const float *wino_block_weights(const struct kernel *k, int64_t group, int64_t sub, int64_t block, int64_t first,
                                int64_t count, float *room);
/* Floats of scratch for the transformed weights of a chunk of codes. */
int64_t wino_chunk_size(const struct kernel *k, const struct wino_packing *packing);
/* Floats after the weights of a chunk of codes at each point, so that points do not share a few sets of the cache, and
 * rows of vectors may be written beyond the last. */
#define CODES_GAP 16
/* Unpack and transform the weights of a chunk of a group to `scratch`. */
void wino_transform_codes(const struct kernel *k, const struct wino_packing *packing, int64_t group, int64_t chunk,
                          float *scratch);
/* Fetch a piece of the codes of a chunk into the second-level cache, of `pieces` equal ones. */
void wino_fetch_codes(const struct kernel *k, const struct wino_packing *packing, int64_t group, int64_t chunk,
                      int64_t piece, int64_t pieces);
/* Compute the scale of each input channel in levels.  Returns nonzero when out of memory. */
int wino_scales_make(const struct kernel *k, struct wino_packing *packing);
/* Transform the weights of a packing, unless they are codes; with `frees`, the memory of the packed filter is discarded part by
 * part, so that both are never in memory at once.  Returns OUT_OF_MEMORY, or 0. */
int wino_pack(const struct kernel *k, int64_t threads, int frees, struct wino_packing *packing);

/* Execute a run; returns the result of execute(), or NEEDS_FILTER, with `out` undefined, if windows are summed
 * directly and the filter is not packed. */
#define NEEDS_FILTER 2
int wino_execute(const struct kernel *k, const struct run *run, const struct wino_plan *plan,
                 const void *data, void *out);

/* Maximum number of channels that are summed at once: their data at the positions of a panel of the
 * usual width fit FIRST_LEVEL_SHARE.  Results depend on it, so it is the same for all widths. */
static inline int64_t wino_go(const struct microkernels *kernels) {
    return FIRST_LEVEL_SHARE / (PANEL_COLUMNS * kernels->lanes * (int64_t)sizeof(float));
}
static inline const struct wino_layout *wino_layout_of(const struct wino_packing *p,
                                                       int64_t chunk) {
    const int64_t unit = chunk * p->chunk_units;
    const int64_t first = unit % p->subs, count = least(p->chunk_units, p->units - unit);
    const struct wino_layout *layout = p->layouts;
    while (layout->first != first || layout->count != count) layout++;
    return layout;
}
/* The position of output j of window w of a sublattice, for a sub-convolution. */
static inline int64_t wino_output(const struct wino_axis *a, int64_t sub, int64_t w,
                                  int64_t sublattice, int64_t j) {
    return (w * a->step + j * a->dilation + sublattice + a->sub[sub].shift) * a->stride + sub;
}
/* Most taps of a sub-convolution. */
static inline int64_t wino_most_taps(const struct wino_packing *p) {
    int64_t all = 1;
    for (int i = 0; i < AXES; i++) {
        int64_t taps = 1;
        for (int64_t q = 0; q < p->axes[i].stride; q++)
            taps = most(taps, p->axes[i].sub[q].taps);
        all *= taps;
    }
    return all;
}
/* Floats of scratch for the search for uneven windows. */
int64_t wino_search_size(const struct wino_tiling *tiling);
/* Floats of scratch for summing windows directly. */
int64_t wino_direct_size(const struct kernel *k, const struct wino_packing *packing, int64_t width);
/* Maximum number of jobs at a time, and so of threads that use scratch. */
static inline int64_t wino_jobs(const struct wino_tiling *t) {
    return most(t->jobs, t->places * t->fills);
}
/* The number of micro-kernels for some rows, which are divided evenly among them. */
static inline int64_t wino_blocks(int64_t rows, const struct microkernels *kernels) {
    return divide_up(rows, kernels->rows);
}
static inline int64_t wino_block_first(int64_t rows, int64_t blocks, int64_t block) {
    const int64_t least_rows = rows / blocks, larger = rows % blocks;
    return block * least_rows + least(block, larger);
}

#endif
