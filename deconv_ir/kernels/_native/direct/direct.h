/* Declarations that the files of direct sums share: a run, its tiles, and the sums of a tile. */
#ifndef DECONV_DIRECT_H
#define DECONV_DIRECT_H

#include "direct/plan.h"
#include "simd/quantized.h"

#include <stdatomic.h>
#include <string.h>

/* Make an axis of a plan: the taps of its sub-convolutions.  Returns nonzero when out of memory. */
int axis_make(const struct problem *problem, const struct run *run, int index,
              const struct subs *subs, struct axis *axis);

struct direct_context {
    const struct kernel *k;
    const struct problem *problem;
    const struct microkernels *kernels;
    const struct quantized_functions *functions;
    const struct packing *packing;
    const struct run *run;
    const struct plan *plan;
    const char *data;
    char *out;
    atomic_int *failed; /* set when out of memory */
    int streamed;       /* whether results are written with non-temporal stores */
    int plain;          /* whether data are one row a channel, with a result at each position */
    const int32_t *in_place; /* offsets of channels that are read in place, or NULL */
};

/* The taps of each channel that a tile uses, from `first` on: `runs` runs of `run` neighbours each,
 * which begin `step` taps apart. */
struct taken_taps {
    int64_t taps, first, runs, run, step;
};

/* The tile that a job computes. */
struct direct_tile {
    int64_t group, first_image, images, first_block, blocks;
    int64_t first[AXES], shape[AXES]; /* v */
    int64_t low[AXES], high[AXES];  /* smallest and largest offset of a used tap */
    int leaves_out;                 /* whether it uses only the taps in `taken` */
    struct taken_taps taken;
    char *data, *panel, *sums, *row, *weights; /* scratch */
    int32_t *offsets;
};

/* A sub-convolution: its index q on each axis, its taps, and the place of its weights. */
struct sub {
    int64_t q[AXES];
    const int32_t *offsets;
    int64_t taps, row_taps; /* used taps: of all axes, and of the first two */
    int64_t packed_taps;    /* all taps */
    int64_t packed;         /* element of the packed filter at which it begins */
};

/* A block of input channels that is summed before the next one. */
struct input_block {
    int64_t first, count;
    int begins, ends; /* whether it has the first channels, and the last */
};

/* Some blocks of rows of some sub-convolutions: their data, and the place of their sums. */
struct sweep {
    const struct sub *subs;
    int64_t sub_count, first_block, blocks;
    const char *data;
    const int32_t *offsets; /* shared by the sub-convolutions; NULL: each has its own */
    int64_t positions;
    int64_t channel_step;  /* elements from one channel's data to the next */
    int64_t channel_bytes; /* of one channel that a block of the micro-kernel reads */
    char *sums;
    int64_t row_stride, block_stride, sub_stride; /* elements */
    int together; /* whether rows of all blocks are row_stride apart */
};

/* Whether a group has one channel of data before these are spread, and one of results or the sums of codes of a block. */
static inline int sums_by_channel(const struct kernel *k) {
    return data_channels(&k->problem) == 1 &&
           (k->problem.channels_out == 1 ||
            (problem_has_codes(&k->problem) && k->packing.blocks == 1));
}

/* Number of sub-convolutions of an axis: the stride, or the output's extent if that is less. */
static inline int64_t subs_along(const struct axis *a) { return least(a->out_stride, a->output); }

/* Positions of a tile at which sub-convolution q has outputs. */
static inline int64_t positions_along(const struct direct_tile *tile, const struct axis *a,
                                      int axis, int64_t q) {
    return least(tile->shape[axis], divide_up(a->output - q, a->out_stride) - tile->first[axis]);
}

/* The part of a residue of the data that a tile reads. */
static inline struct stretch stretch_of(const struct direct_context *c,
                                        const struct direct_tile *tile, int axis, int64_t residue) {
    const struct axis *a = &c->plan->axes[axis];
    return stretch_make(tile->first[axis] + a->low, tile->first[axis] + tile->shape[axis] + a->high,
                        divide_up(a->data - residue, a->in_stride));
}

/* Most rows are short: calls of memset would take longer. */
static inline void clear_row(char *to, int64_t bytes) {
    if (bytes >= 8 * COPY_STEP) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    if (bytes < COPY_STEP) {
        for (int64_t i = 0; i < bytes; i += 4) memset(to + i, 0, 4);
        return;
    }
    for (int64_t i = 0; i < bytes - COPY_STEP; i += COPY_STEP) memset(to + i, 0, COPY_STEP);
    memset(to + bytes - COPY_STEP, 0, COPY_STEP);
}

/* Copy the data of some channels of a tile, with zeros around them. */
void copy_data(const struct direct_context *c, const struct direct_tile *tile, int64_t first_channel,
               int64_t channels);

struct sub sub_of(const struct direct_context *c, const struct direct_tile *tile, int64_t qz,
                  int64_t qy, int64_t qx);

#define SUBS_TOGETHER 8 /* sub-convolutions that read the same data while these are in cache */

/* Bytes of weights that stay in the second-level cache while the positions of a tile are summed. */
#define SECOND_LEVEL_SHARE ((int64_t)256 << 10)

/* Whether tiles skip taps; only the axes of `plan` are read. */
int plan_leaves_out(const struct kernel *k, const struct plan *plan);
/* The share of all taps that tiles use. */
double taken_share(const struct plan *plan, const struct tiling *tiling);
/* Set the bytes of scratch for the weights that are copied at once, and for the offsets of taps. */
void taken_sizes(const struct kernel *k, const struct plan *plan, struct tiling *tiling);
/* Find the taps that a tile uses, and the offsets of their data. */
void take_taps(const struct direct_context *c, struct direct_tile *tile);
/* Copy the weights of a block of rows that a tile uses, [channel][tap][row]. */
void take_weights(const struct direct_context *c, const struct direct_tile *tile,
                  const struct input_block *in, const struct sub *sub, int64_t block, char *to);
/* Sum rows at some positions, with the widest micro-kernels that fit. */
static inline void sum_rows(const struct microkernels *kernels, int rows, int64_t positions,
                            int64_t depth, const int32_t *offsets, const char *data,
                            const char *weights, char *sums, int64_t row_stride, int begins,
                            const void *bias, const struct epilogue *finish) {
    if (positions == 1 && rows > 1) {
        kernels->sum_position(rows, depth, offsets, data, weights, sums, row_stride, begins, bias,
                              finish);
        return;
    }
    int64_t vectors = divide_up(positions, kernels->lanes);
    int columns = kernels->columns[rows];
    while (vectors > 0) {
        int64_t blocks;
        columns = next_blocks(kernels, rows, columns, vectors, &blocks);
        kernels->table[rows][columns](depth, offsets, data, weights, sums, row_stride, blocks,
                                      begins, bias, finish, weights_ahead(weights));
        const int64_t done = blocks * columns;
        data += done * kernels->lanes * kernels->size;
        sums += done * kernels->lanes * kernels->size;
        vectors -= done;
    }
}

/* Folded layers some of whose sub-convolutions are longer: see direct/longer_subs.c. */
/* The share of the multiply-adds of all rows and taps that are needed. */
double needed_share(const struct problem *problem);
/* Whether a tap of the last axis, of `taps`, is in the part of a list of offsets; lists have two. */
static inline int is_in_part(const struct problem *problem, int64_t tap, int64_t taps, int part) {
    return (problem->longer && tap == taps - 1) == part;
}
/* Copy the weights of a block of rows in two parts, each [channel][tap][row]: those of all rows, and those
 * of the last tap for the rows that have it. */
void part_weights(const struct direct_context *c, const struct input_block *in, const struct sub *sub,
                  int64_t block, char *to);
/* Sum one block of rows with weights in two parts. */
void sum_parts(const struct direct_context *c, const struct sub *sub, int64_t block, int64_t channels,
               int64_t positions, const char *data, const char *weights, char *sums, int64_t row_stride,
               int begins, const char *bias, const struct epilogue *finish);
/* Sum some blocks of rows of some sub-convolutions.  If the epilogue is a function,
 * activate_blocks() applies it to complete sums. */
void sum_blocks(const struct direct_context *c, const struct direct_tile *tile,
                const struct input_block *all, const struct sweep *sweep);
void activate_blocks(const struct direct_context *c, const struct input_block *in,
                     const struct sweep *sweep);

/* Add to complete results in the output: rows that are `pitch` bytes apart. */
static inline void add_rows(const struct direct_context *c, char *out, int64_t pitch, int64_t rows,
                            int64_t count) {
    for (int64_t row = 0; c->run->addition && row < rows; row++, out += pitch)
        add_to(c->run->addition, out, out, count);
}

/* Spread the bytes of a channel of data, `elements` from `from` on, which may be the second place, to two. */
static inline void spread_channel(const struct direct_context *c, const char *from, int64_t elements, char *first,
                                  char *second) {
    c->functions->extend(0, (const uint32_t *)(const void *)from, elements, (uint32_t *)(void *)first,
                         (uint32_t *)(void *)second);
}

/* Copy plain data; of data that are read in place, only the last partial vector, since reading
 * beyond it might access unmapped memory. */
void copy_plain(const struct direct_context *c, const struct direct_tile *tile,
                const struct input_block *in);
/* Sum and write the blocks of rows of a sub-convolution from `b` on that are summed together. */
void run_flat(const struct direct_context *c, const struct direct_tile *tile,
              const struct input_block *in, int64_t qz, int64_t qy, int64_t b);
/* Plan a run with one position of data, without a search for tiles; returns 0, and leaves the plan
 * unchanged, if the run is of another kind or this would be slower. */
int plan_one_position(const struct kernel *k, const struct run *run, struct plan *plan);
/* Whether the taps of such a run reach all results of a plane. */
int one_position_reaches_all(const struct plan *plan);
/* Run a job of a plan made by plan_one_position(). */
void run_one_position(void *context, int64_t job, void *scratch);
/* The channels of a job of a depthwise layer. */
void run_depthwise(const struct direct_context *c, struct direct_tile *tile);

/* Whether rows of sums are rows of results: nothing is interleaved, converted or streamed. */
int rows_are_plain(const struct kernel *k, const struct run *run, const struct plan *plan);
/* The first element of a row of results. */
char *out_row(const struct direct_context *c, const struct direct_tile *tile, int64_t image,
              int64_t channel, int64_t oz, int64_t oy);
/* Interleave sub-convolutions of the last axis, whose lines are `pitch` elements apart, into rows
 * of some channels. */
void write_rows(const struct direct_context *c, const struct direct_tile *tile,
                int64_t first_channel, int64_t channels, const struct sub *sub, const char *sums,
                int64_t row_stride, int64_t pitch);
/* The same for a block of rows, or all of a folded layer, whose sums become results of codes. */
void write_codes(const struct direct_context *c, const struct direct_tile *tile, int64_t block,
                 const struct sub *sub, const char *sums, int64_t row_stride, int64_t pitch);
/* Write the rows of a panel, which has one sub-convolution of the last axis. */
void write_panel(const struct direct_context *c, const struct direct_tile *tile,
                 const int64_t shape[AXES], int64_t block, const struct sub *sub, const char *sums,
                 int64_t row_stride);

#endif
