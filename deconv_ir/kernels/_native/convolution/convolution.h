/* A convolution, transposed or not: its problem, a run of it, and its packed filter.
 *
 * docs/kernels.md explains the terms.  In short: all outputs y = s*v + q of one remainder q, often
 * called a phase, use the same kernel taps at the same distances: they are a dense correlation over
 * v, the sub-convolution q (`sub` in names).  A tile is a block of v for some images and one group.
 *
 * A convolution is one sub-convolution.  Its data are split by their position modulo the stride,
 * the `residue`, when they are copied.
 */
#ifndef DECONV_CONVOLUTION_H
#define DECONV_CONVOLUTION_H

#include <stdatomic.h>
#include <stdint.h>

#include "interface.h"
#include "quantized/dequantize.h"
#include "runtime/threads.h"
#include "simd/compressed.h"
#include "simd/microkernels.h"

/* The figures of a processor that the cost models use, in addition to its instructions; see
 * cpu.py. */
struct machine {
    int64_t level2;       /* bytes of a core's second-level cache */
    int64_t sure_level2;  /* of it, bytes that no hidden thread shares: direct sums are planned so */
    int64_t level3;       /* of the third-level cache that it shares */
    double multiply_adds; /* vector multiply-adds that a core issues per cycle */
};

/* The numbers that define a convolution, which native.py has checked: `Problem` in Python. */
struct problem {
    int64_t forward; /* 0: transposed convolution, 1: convolution */
    int64_t element, isa;
    int64_t groups, channels_in, channels_out; /* of one group */
    /* With few output channels, the `folded` sub-convolutions of the last axis become channels,
     * sub-convolution*outs + out, of a problem with stride 1 there; 1: not folded. */
    int64_t folded;
    /* The number of sub-convolutions of a folded problem that have the last tap of the last axis, if
     * the others, for which the packed filter has zeros, do without it: see direct/longer_subs.c.
     * 0: all have it. */
    int64_t longer;
    int64_t winograd; /* enum winograd_use */
    int64_t kernel[AXES], strides[AXES], dilations[AXES];
    int64_t channel_block; /* see struct packing; 0: chosen by packing_make() */
    int64_t form; /* enum compressed_form of the packed filter; COMPRESSED_FORMS: not compressed */
    struct machine machine;
};

/* Whether data and weights are codes, whose sums are integers. */
static inline int problem_has_codes(const struct problem *problem) {
    return problem->element == U8X4 || problem->element == I16X2;
}
/* Channels of a layer that each channel of the data becomes, but for the last of a group. */
static inline int64_t spread_of(const struct problem *problem) {
    return problem->element == I16X2 ? 2 : 1;
}
/* Channels of a group's data. */
static inline int64_t data_channels(const struct problem *problem) {
    return divide_up(problem->channels_in, spread_of(problem));
}

struct run {
    int64_t batch;
    int64_t data[AXES], output[AXES], pads_begin[AXES];
    /* Elements from one image, channel and position of the data to the next. */
    int64_t image_step, channel_step, step[AXES];
    int64_t threads, scratch_bytes;
    int64_t thread_bytes; /* scratch of a thread beyond which larger tiles are not faster */
    int64_t winograd; /* enum winograd_choice */
    /* For a folded problem: the extent of the output's last axis, and the number of interleaved
     * positions before its first. */
    int64_t extent, crop;
    const struct addition *addition; /* or NULL; no plan depends on it */
    const struct results *results; /* how sums of codes are written; NULL: as integers; no plan depends on it */
    /* The algorithm is chosen for these extents: those of the whole layer, if the run is a tile. */
    struct {
        int64_t data[AXES], pads_begin[AXES], output[AXES];
    } whole;
};

/* One tap of one axis. */
struct tap {
    int64_t kernel; /* position in the kernel */
    int64_t shift;  /* d*k == s*shift + sub-convolution */
};

/* The taps of one axis, by sub-convolution, for packing. */
struct subs {
    int64_t count;    /* sub-convolutions: the stride, or 1 for a convolution */
    int64_t *first;   /* [count + 1]: the first tap of each sub-convolution */
    struct tap *taps; /* [kernel], by sub-convolution */
};

/* The layout of the packed filter: [group][sub-convolution][block of rows][channel][tap][row]. */
struct packing {
    int rows, fewer;      /* of a block: the first `larger` have `rows` */
    int64_t blocks, larger;
    struct subs subs[AXES];
    int64_t *sub_start; /* element at which each sub-convolution of all axes begins */
    int64_t group_size;   /* elements of one group */
    /* Input channels that are summed before a sum is stored.  Results depend on it, so it is a
     * property of the layer, never of the tiles of a run. */
    int64_t channel_block;
};

/* What computes weights from the codes of a compressed filter. */
struct filter_codes {
    float numbers[BYTE_CODES];
    float *scales, *zeros; /* of each output channel, or NULL */
    int halves;            /* whether a weight is rounded to f16 */
};

/* A problem and its packed filter, shared by all plans and runs of a layer. */
struct kernel {
    struct problem problem;
    const struct microkernels *kernels;
    struct packing packing;
    struct epilogue epilogue;
    void *packed, *bias; /* in the accumulator's type; bias: or NULL */
    /* NULL: the filter is not compressed.  Otherwise `packed` has codes in the same order; those of four bits
     * are [group][sub-convolution][block of rows][pair of terms][row], for terms of channels and taps. */
    struct filter_codes *codes;
};

static inline int is_compressed(const struct problem *problem) {
    return problem->form != COMPRESSED_FORMS;
}
/* Bytes of `weights` packed weights. */
static inline int64_t packed_size(const struct kernel *k, int64_t weights) {
    if (!is_compressed(&k->problem)) return weights * k->kernels->size;
    if (k->problem.form == COMPRESSED_4) return weights / 2;
    return k->problem.form == COMPRESSED_F16 || k->problem.form == COMPRESSED_BF16 ? 2 * weights
                                                                                     : weights;
}
/* Bytes of a weight that the caller gives. */
static inline int64_t given_size(const struct kernel *k) {
    if (!is_compressed(&k->problem)) return element_size((enum element)k->problem.element);
    return k->problem.form == COMPRESSED_F16 || k->problem.form == COMPRESSED_BF16 ? 2 : 1;
}
/* Whether blocks of channels and sub-convolutions begin with whole bytes of codes of four bits. */
int has_whole_pairs(const struct problem *problem, const struct packing *packing);
/* Unpack terms, of input channels and taps, from `begin`, which is even, to before `end`, for a block of rows of a
 * sub-convolution with `taps` taps that begins at element `packed`: [term][row].  Up to a vector beyond the
 * end is overwritten. */
void unpack_codes(const struct kernel *k, int64_t packed, int64_t group, int64_t block, int64_t taps,
                  int64_t begin, int64_t end, float *out);

/* Codes that are fetched into the second-level cache while others are multiplied or transformed: unpacked from memory,
 * they would keep the processor waiting. */
struct fetched_codes {
    const char *at;
    int64_t bytes;
};
static inline void fetch_codes(struct fetched_codes codes, int64_t piece, int64_t pieces) {
    const int64_t end = (piece + 1) * codes.bytes / pieces;
    for (int64_t i = piece * codes.bytes / pieces; i < end; i += CACHE_LINE)
        __builtin_prefetch(codes.at + i, 0, 2);
}

int packing_make(const struct problem *problem, const struct microkernels *kernels,
                 struct packing *packing);
void packing_free(struct packing *packing);
static inline int packing_rows(const struct packing *p, int64_t block) {
    return block < p->larger ? p->rows : p->fewer;
}
static inline int64_t packing_channel(const struct packing *p, int64_t block) {
    return block * p->rows - most(0, block - p->larger) * (p->rows - p->fewer);
}
/* Extent of the first axis of Python's filter, for one group. */
static inline int64_t filter_rows(const struct problem *problem) {
    return problem->forward ? problem->channels_out : problem->channels_in;
}
/* Read all rows from an open file and pack them, until `stopped` is set (or NULL). Returns the same
 * values as pack_rows(), or CANNOT_READ. */
#define CANNOT_READ 2
int read_rows(const struct kernel *k, int descriptor, int64_t offset, int64_t threads,
              const atomic_int *stopped);
/* Pack `count` rows from `first` on, counted over all groups; all rows if the first two axes of the
 * filter are `swapped`.  Returns 1 if one of their weights is infinite or NaN, else the result of
 * parallel_run(). */
int pack_rows(const struct kernel *k, int64_t first, int64_t count, const void *rows, int swapped,
              int64_t threads);
/* Undo the packing: write the caller's filter, in the accumulator's type. */
void unpack_filter(const struct kernel *k, void *filter);

/* Results of at least this size do not stay in cache.  An ordinary store would read each cache line
 * first; non-temporal stores avoid that and pay off if most of a row is whole cache lines. */
#define STREAMED_BYTES ((int64_t)8 << 20)
#define STREAMED_ROW 256
int is_streamed(const struct kernel *k, const struct run *run);

/* Fill the results that no tap reaches with the bias, activated.  fill_outside() fills those
 * outside of [low, high) on any axis; fill_unreached() finds them all, for layers that are not
 * folded and whose sub-convolutions all have taps.  Both return the result of parallel_run(). */
int fill_unreached(const struct kernel *k, const struct run *run, void *out);
int fill_outside(const struct kernel *k, const struct run *run, void *out,
                 const int64_t low[AXES], const int64_t high[AXES]);

/* The positions of an axis that a tile reads: `before` positions in front of the data, then `count`
 * with data, from `begin` on. */
struct stretch {
    int64_t begin, before, count;
};

/* The stretch of the positions from `first` up to `last` of an axis with `extent` elements. */
static inline struct stretch stretch_make(int64_t first, int64_t last, int64_t extent) {
    const int64_t begin = least(most(first, 0), last);
    return (struct stretch){begin, begin - first, most(0, least(last, extent) - begin)};
}

#endif
