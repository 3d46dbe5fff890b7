/* Plans and execution of direct sums. */
#ifndef DECONV_DIRECT_PLAN_H
#define DECONV_DIRECT_PLAN_H

#include "convolution/convolution.h"

/* One axis of one run. */
struct axis {
    int64_t data, output;
    int64_t out_stride, in_stride; /* the stride is one of them; the other is 1 */
    int64_t first, last;           /* v that are computed */
    int64_t low, high;             /* smallest and largest offset of a tap */
    int64_t residues, residue;     /* that taps read, and the first of them */
    int64_t patterns;              /* distinct lists of offsets */
    int64_t *pattern_of;           /* [out_stride]: the list of a sub-convolution */
    int64_t *sub_of;               /* [out_stride]: its packed sub-convolution */
    int64_t *pattern_first;        /* [patterns + 1] */
    struct tap_place {
        int64_t offset, residue; /* counted from the first that is read */
    } *places;                     /* the concatenated lists */
};

struct tiling {
    int straight;       /* sum all positions of a plane at once, in the output itself */
    int outputs;        /* vectors hold output channels: see output_vectors.c */
    int compact;        /* copy every sub-convolution's data into a panel without gaps */
    int64_t images;     /* images of a tile */
    int64_t shape[AXES]; /* of a tile, in v */
    int64_t threads;    /* number of threads */
    int64_t channels;   /* input channels at a time */
    int64_t blocks;     /* blocks of rows of a job */
    int one_position;   /* the data are one position: see direct/one_position.c */
    int depthwise;      /* channel by channel, `groups` of them to a job; else one group */
    int64_t vectors;    /* channels of a depthwise layer in one vector, or 1 */
    int64_t groups;     /* of a job */
    int64_t together;   /* blocks of rows that are summed before any is written */
    /* of the data block, in elements */
    int64_t extent[AXES], pitch, plane, image_stride, residue_stride, channel_stride;
    int64_t line;       /* positions of one image and one v[0], rounded up */
    int64_t panel;      /* positions of a compact panel, rounded up */
    /* scratch of a worker: the last two if some tiles skip taps */
    int64_t data_bytes, panel_bytes, sums_bytes, row_bytes, weights_bytes, offsets_bytes, bytes;
    int64_t jobs, grid[AXES], image_groups, row_groups;
    double cycles;      /* of a run, as the cost model predicts */
};

struct plan {
    struct axis axes[AXES];
    int64_t residues; /* residues of all axes */
    int64_t depth;     /* most taps of a sub-convolution */
    int leaves_out;    /* whether tiles skip taps that read only zeros: see direct/taken_taps.c */
    int32_t **offsets; /* [patterns of all axes]: one offset per channel and tap */
    int32_t *panel_offsets; /* the same in a compact panel */
    struct tiling tiling;
};

/* Return the run with each plane as one row, if a layer has one tap and the data have no gaps;
 * otherwise return the run unchanged. */
struct run join_axes(const struct kernel *k, const struct run *run);
int plan_make(const struct kernel *k, const struct run *run, struct plan *plan);
void plan_free(struct plan *plan);

/* The cost function, of a struct plan and a struct tiling: see convolution/search.h. */
double direct_cycles(const struct kernel *k, const struct run *run, const void *plan,
                     const void *tiling);

/* Executes a run.  Returns the result of parallel_run(). */
int execute(const struct kernel *k, const struct run *run, const struct plan *plan,
            const void *data, void *out);

#endif
