/* Declarations that the files of the compiled kernels share.
 *
 * docs/kernels.md explains the terms.  In short: all outputs y = s*v + q of one remainder q, often
 * called a phase, use the same kernel taps at the same distances: they are a dense correlation over
 * v, the sub-convolution q (`sub` in names).  A tile is a block of v for some images and one group.
 *
 * A convolution is one sub-convolution.  Its data are split by their position modulo the stride,
 * the `residue`, when they are copied.
 */
#ifndef DECONV_NATIVE_H
#define DECONV_NATIVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "interface.h"

#define MAX_ROWS 8  /* output channels of the largest micro-kernel */
#define MAX_COLUMNS 12 /* vectors of positions of the largest micro-kernel */
#define OUT_VECTORS 4   /* vectors of output channels that are summed together */
#define OUT_POSITIONS 6 /* positions at which these are summed together */
#define CACHE_LINE 64 /* bytes */
#define COPY_STEP 32 /* bytes that short copies move at once */
#define MOST_THREADS 256 /* of one run */

/* Reasons for which a run ends early. */
enum { OUT_OF_MEMORY = -1, INTERRUPTED = -2 };

/* ------------------------------------------------------------ numbers -- */

/* Types in which elements are multiplied and summed. */
enum accumulator { ACC_F32, ACC_F64, ACC_U32, ACC_U64, ACCUMULATORS };

/* An operation of elementwise programs: compute `count` elements, in whole vectors, from up to
 * three operands, which may include `out`. */
typedef void (*pointwise_function)(const float *const *operands, const float *immediates,
                                   int64_t count, float *out);

struct epilogue {
    enum activation activation;
    double low, high; /* ACT_CLAMP */
    double slope;     /* ACT_LEAKY: factor of negative values */
    pointwise_function function; /* ACT_FUNCTION, of f32 */
    float immediates[2];
    float scale, offset; /* of the function's result, if `scales` */
    int scales;
    /* Bytes from sums in the output to the values that micro-kernels add to them; 0: no
     * addition. */
    intptr_t addend;
};

/* A tensor in f32, of the output's shape, that is added to complete results before an epilogue. */
struct addition {
    const struct microkernels *kernels;
    struct epilogue epilogue, alone; /* alone: without an activation */
};

/* The micro-kernel prefetches the data of the tap this far ahead; lists of offsets are longer than
 * their depth by this number. */
#define AHEAD 12

/* Distance in bytes at which it prefetches weights: a page, where the hardware prefetcher stops. */
#define WEIGHTS_AHEAD 4096
/* The same distance if weights of several blocks of rows are read together. */
#define BLOCKS_AHEAD 512

/* Bytes of data that stay in the first-level cache while weights are streamed. */
#define FIRST_LEVEL_SHARE ((int64_t)16 << 10)

/* Sums `blocks` neighbouring blocks of rows x columns vectors:
 *
 *     sums[row][position] (+)= sum over k < depth of
 *                              weights[k][row] * data[offsets[k] + position]
 *
 * begins: whether these are the first terms; otherwise they are added to `sums`.
 * bias: one value per row, added last, or NULL; with BEGINS_WITH_BIAS, one value per position.
 * finish: the epilogue, or NULL. */
#define BEGINS_WITH_BIAS 2
typedef void (*microkernel)(int64_t depth, const int32_t *offsets, const void *data,
                            const void *weights, void *sums, int64_t row_stride,
                            int64_t blocks, int begins, const void *bias,
                            const struct epilogue *finish);

/* Sums in vectors of output channels: `depth` taps, the offsets of their data, and of their
 * weights, or NULL if these are contiguous.  The weights of each half of a vector are `block_step`
 * elements apart, the sums of a vector `pitch` from those of the next.  The same number of weights
 * as in one half is prefetched from `ahead`. */
struct out_sums {
    int64_t depth;
    const int32_t *offsets, *weights;
    int64_t block_step, pitch;
    int begins;
    const float *ahead;
};

/* A position, and its sums in the first vector. */
struct out_place {
    const float *data;
    float *sums;
};

/* Rows of positions of one channel, and the taps that are summed at each. */
struct channel_rows {
    int64_t taps;
    const int32_t *offsets;
    int64_t rows, count;
    int64_t pitch, sums_pitch; /* elements from one row's data, and sums, to the next */
};

/* The functions of one accumulator for one instruction set. */
struct microkernels {
    int lanes;                  /* elements of a vector */
    int size;                   /* bytes of an element */
    int rows;                   /* most rows of a micro-kernel */
    int columns[MAX_ROWS + 1];  /* best number of vectors for a number of rows */
    microkernel table[MAX_ROWS + 1][MAX_COLUMNS + 1]; /* NULL: not available */
    /* The sums of a micro-kernel of this number of rows, at one position. */
    void (*sum_position)(int rows, int64_t depth, const int32_t *offsets, const void *data,
                         const void *weights, void *sums, int64_t row_stride, int begins,
                         const void *bias, const struct epilogue *finish);
    /* Sum `depth` channels of one position, whose weights are `step` elements apart, into the
     * results of some taps, [tap][row].  Up to a vector beyond the end may be accessed. */
    void (*sum_taps)(int rows, int64_t taps, int64_t depth, const void *data, const void *weights,
                     int64_t step, const void *bias, const struct epilogue *finish, void *sums);
    /* The same for one tap and several blocks of equal rows, whose weights are `step` elements
     * apart; the sums of the blocks are contiguous. */
    void (*sum_row_blocks)(int rows, int64_t blocks, int64_t depth, const void *data,
                           const void *weights, int64_t step, const void *bias,
                           const struct epilogue *finish, void *sums);
    /* Sum a channel of a depthwise layer, which has one weight per tap.  If a row is shorter than a
     * vector, a whole vector is summed and stored. */
    void (*sum_channel)(const struct channel_rows *rows, const void *data, const void *weights,
                        const void *bias, const struct epilogue *finish, void *sums);
    /* Copy rows of `count` elements that are `pitch` apart to rows that are `out_pitch` apart.
     * Memory outside of the rows is not accessed. */
    void (*copy_lines)(const void *in, int64_t pitch, int64_t rows, int64_t count, void *out,
                       int64_t out_pitch);
    /* Copy the `count` even elements of rows, and the `pairs` odd ones (the same number or one
     * fewer) to `odds` elements after them. */
    void (*split_lines)(const void *in, int64_t pitch, int64_t rows, int64_t count,
                        int64_t pairs, void *out, int64_t out_pitch, int64_t odds);
    /* For f32, else NULL: copy element i of at most `lanes` channels, which are `step` elements
     * apart, to vector places[i] of `out`; and back, from vector i of `in`. */
    void (*gather_channels)(const void *in, int64_t step, int64_t channels, int64_t count,
                            const int32_t *places, void *out);
    void (*scatter_channels)(const void *in, int64_t step, int64_t channels, int64_t count,
                             void *out);
    /* Like sum_channel(), for vectors of channels; the sums of the rows are contiguous. */
    void (*sum_vectors)(const struct channel_rows *rows, const void *data, const void *weights,
                        const void *bias, const struct epilogue *finish, void *sums);
    /* Sum at OUT_POSITIONS places, in OUT_VECTORS vectors of output channels, for f32; NULL for
     * others. */
    void (*sum_outputs)(const struct out_sums *sums, const struct out_place *places,
                        const float *weights, const float *bias);
    /* Interleave `stride` lines, `pitch` elements apart, into `count` outputs.  Up to a vector
     * beyond the end may be read. */
    void (*interleave)(const void *lines, int64_t pitch, int64_t stride, int64_t count,
                       void *out);
    void (*load)(enum element from, const void *in, int64_t stride, int64_t count, void *out);
    void (*store)(enum element to, const void *in, int64_t count, void *out);
    void (*activate)(const struct epilogue *epilogue, void *row, int64_t count);
    /* Add other elements, and activate the sums. */
    void (*add)(const struct epilogue *epilogue, const void *others, void *row, int64_t count);
    /* Interleave two lines with non-temporal stores; returns 0, and does nothing, unless `count`
     * outputs fill whole cache lines. */
    int (*stream_pairs)(const void *lines, int64_t pitch, int64_t count, void *out);
    /* Copy with non-temporal stores for whole cache lines. */
    void (*stream)(const char *in, int64_t bytes, char *out);
    /* Copy rows of `bytes`, a multiple of 4, which are `step` apart, each followed by `gap` zeros.
     * Up to COPY_STEP bytes beyond the last are overwritten.  Prefetches the rows that lie `ahead`
     * of them. */
    void (*copy_rows)(const char *in, int64_t step, int64_t rows, int64_t bytes, int64_t gap,
                      int64_t ahead, char *out);
};

/* Add the elements of an addition to complete results, which begin at `to`. */
static inline void add_to(const struct addition *a, const char *to, void *row, int64_t count) {
    a->kernels->add(&a->epilogue, to + a->epilogue.addend, row, count);
}

struct kernel;
struct run;

/* Results of at least this size do not stay in cache.  An ordinary store would read each cache line
 * first; non-temporal stores avoid that and pay off if most of a row is whole cache lines. */
#define STREAMED_BYTES ((int64_t)8 << 20)
#define STREAMED_ROW 256
int is_streamed(const struct kernel *k, const struct run *run);
struct plan;
/* Whether rows of sums are rows of results: nothing is interleaved, converted or streamed. */
int rows_are_plain(const struct kernel *k, const struct run *run, const struct plan *plan);
/* Make this thread's non-temporal stores visible to other threads. */
void finish_streams(void);

extern const struct microkernels *const kernels_baseline[ACCUMULATORS];
#if defined(__x86_64__)
#define DECONV_X86 1
extern const struct microkernels *const kernels_avx2[ACCUMULATORS];
extern const struct microkernels *const kernels_avx512[ACCUMULATORS];
#endif

/* The definition for an instruction set, such as name_avx2. */
#ifdef DECONV_X86
#define BY_ISA(isa, name)                                                                     \
    ((isa) == ISA_AVX512 ? name##_avx512 : (isa) == ISA_AVX2 ? name##_avx2 : name##_baseline)
#else
#define BY_ISA(isa, name) ((void)(isa), name##_baseline)
#endif

const char *isa_name(enum isa isa);
int isa_available(int64_t isa);
const struct microkernels *microkernels_for(enum isa isa, enum accumulator accumulator);

/* Choose the next micro-kernels for `vectors` vectors: return their columns, at most `columns`, and
 * set `blocks` to their number.  The last two micro-kernels have nearly equal widths, since one
 * with a single column would wait for its weights. */
static inline int next_blocks(const struct microkernels *kernels, int rows, int columns,
                              int64_t vectors, int64_t *blocks) {
    const int evens = columns == 3 || columns == 4;
    if (evens && vectors == columns + 1) columns = (columns + 2) / 2;
    while (columns > vectors || !kernels->table[rows][columns]) columns--;
    *blocks = vectors / columns;
    if (evens && *blocks > 1 && vectors % columns == 1) --*blocks;
    return columns;
}
enum accumulator accumulator_of(enum element element);
static inline int element_size(enum element element) {
    static const signed char sizes[ELEMENTS] = {4, 8, 2, 2, 1, 2, 4, 8};
    return sizes[element];
}

/* ---------------------------------------------------------- geometries -- */

/* The figures of a processor that the cost models use, in addition to its instructions; see
 * cpu.py. */
struct machine {
    int64_t level2;       /* bytes of a core's second-level cache */
    int64_t sure_level2;  /* of it, bytes that no hidden thread shares: direct sums are planned so */
    int64_t level3;       /* of the third-level cache that it shares */
    double multiply_adds; /* vector multiply-adds that a core issues per cycle */
};

/* The results of CPUID; an empty vendor and zeros if it is not available. */
struct processor {
    char vendor[13];
    int family, model;
    int64_t level2, level3;
    int is_virtual; /* whether a hypervisor runs this system */
    int lowered; /* whether this build compiles AVX-512 code to pairs of AVX2 vectors, for tests */
};
void processor_ask(struct processor *processor);

/* The description of a layer, which native.py has checked. */
struct layer {
    int64_t forward; /* 0: transposed convolution, 1: convolution */
    int64_t element, isa;
    int64_t groups, channels_in, channels_out; /* of one group */
    /* With few output channels, the `folded` sub-convolutions of the last axis become channels,
     * sub-convolution*outs + out, of a layer with stride 1 there; 1: not folded. */
    int64_t folded;
    /* The number of sub-convolutions of a folded layer that have the last tap of the last axis. For
     * the others the packed filter has zeros, which must not be multiplied by an infinity or a
     * NaN.  0: all have it. */
    int64_t guarded;
    int64_t winograd; /* enum winograd_use */
    int64_t kernel[AXES], strides[AXES], dilations[AXES];
    int64_t channel_block; /* see struct packing; 0: chosen by packing_make() */
    struct machine machine;
};

struct run {
    int64_t batch;
    int64_t data[AXES], output[AXES], pads_begin[AXES];
    /* Elements from one image, channel and position of the data to the next. */
    int64_t image_step, channel_step, step[AXES];
    int64_t threads, scratch_bytes;
    int64_t thread_bytes; /* scratch of a thread beyond which larger tiles are not faster */
    int64_t winograd; /* enum winograd_choice */
    /* For a folded layer: the extent of the output's last axis, and the number of interleaved
     * positions before its first. */
    int64_t extent, crop;
    const struct addition *addition; /* or NULL; no plan depends on it */
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
    int rows;             /* most rows of a block */
    int64_t blocks;       /* blocks of rows: the first `larger` have `rows`, the rest one less */
    int64_t larger;
    struct subs subs[AXES];
    int64_t *sub_start; /* element at which each sub-convolution of all axes begins */
    int64_t group_size;   /* elements of one group */
    /* Input channels that are summed before a sum is stored.  Results depend on it, so it is a
     * property of the layer, never of the tiles of a run. */
    int64_t channel_block;
};

/* A layer with packed weights, shared by all its plans and runs. */
struct kernel {
    struct layer layer;
    const struct microkernels *kernels;
    struct packing packing;
    struct epilogue epilogue;
    void *packed, *bias; /* in the accumulator's type; bias: or NULL */
};

int packing_make(const struct layer *layer, const struct microkernels *kernels,
                 struct packing *packing);
void packing_free(struct packing *packing);
static inline int packing_rows(const struct packing *p, int64_t block) {
    return p->rows - (block >= p->larger);
}
static inline int64_t packing_channel(const struct packing *p, int64_t block) {
    return block * p->rows - (block > p->larger ? block - p->larger : 0);
}
/* Extent of the first axis of Python's filter, for one group. */
static inline int64_t filter_rows(const struct layer *layer) {
    return layer->forward ? layer->channels_out : layer->channels_in;
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
/* Whether `count` f32 or f64 are finite. */
int all_finite(const void *values, int64_t count, int size);
/* Undo the packing: write the caller's filter, in the accumulator's type. */
void unpack_filter(const struct kernel *k, void *filter);

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

/* ----------------------------------------------------------- execution -- */

typedef void (*job_function)(void *context, int64_t job, void *scratch);

/* Run jobs 0 .. count-1 on up to `threads` threads, this one included, each
 * with `scratch_bytes` of scratch.  Returns 0, OUT_OF_MEMORY or INTERRUPTED, which mean that some
 * jobs were not done. */
int parallel_run(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes);

/* Run pieces 0 .. count-1 of a job, from within that job.  Threads without jobs steal pieces, with
 * their own scratch, so that all threads end at about the same time even if jobs are few or cores
 * differ in speed. */
void parallel_pieces(job_function function, void *context, int64_t count, void *scratch);

/* Take memory that all jobs of the calling thread's next runs share; each thread of these runs
 * needs `scratch_bytes` besides.  give_shared() releases it. */
void *take_shared(int64_t bytes, int64_t scratch_bytes);
void give_shared(void);

/* Whether a signal ends the calling thread's run; if so, its exception is set. */
int run_is_interrupted(void);
/* Release the interpreter lock, and acquire it again. */
void begin_unlocked(void);
void end_unlocked(void);

/* Executes a run.  Returns the result of parallel_run(). */
int execute(const struct kernel *k, const struct run *run, const struct plan *plan,
            const void *data, void *out);

/* Positions of an axis. */
struct spans {
    int64_t count;
    struct span {
        int64_t begin, end;
    } *span;
};

/* Fill the results that no tap reaches with the bias, activated.  fill_outside() fills those
 * outside of [low, high) on any axis; fill_unreached() finds them all, for layers that are not
 * folded and whose sub-convolutions all have taps.  Both return the result of parallel_run(). */
int fill_unreached(const struct kernel *k, const struct run *run, void *out);
int fill_outside(const struct kernel *k, const struct run *run, void *out,
                 const int64_t low[AXES], const int64_t high[AXES]);

/* Allocate memory, to be freed with free(); in huge pages if it is large, since a data block spans
 * more small pages than the TLB holds. */
#define HUGE_PAGE ((int64_t)2 << 20)
void *allocate_huge(int64_t bytes);

/* The same for weights, with cleared bytes after them: vectors may read a little past the last
 * weight, and each prefetch of a page that is not mapped walks the page table. */
void *allocate_weights(int64_t bytes);

/* Set the bounds of the memory pool for results, on free blocks and on all, and free its blocks. */
void keep_blocks(int64_t most_kept, int64_t most_in_all);

/* Prefetch the row `ahead` bytes after a row, such as that of the next channel, which the hardware
 * prefetchers do not predict. */
static inline void fetch_row(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t at = (uintptr_t)row + (uintptr_t)ahead;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)i));
}

/* Rows of results between the one that is written and the one that is prefetched for writing. */
#define ROWS_AHEAD 4

/* Prefetch the ends of the row of results `ahead` bytes after a row: cache lines that rows share
 * are stored as usual, and each store would wait for its line. */
static inline void fetch_ends(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t begin = (uintptr_t)row + (uintptr_t)ahead, end = begin + (uintptr_t)bytes;
    if (begin % CACHE_LINE) __builtin_prefetch((const void *)begin, 1);
    if (end % CACHE_LINE) __builtin_prefetch((const void *)end, 1);
}

/* Prefetch the whole row of results `ahead` bytes after a row, for ordinary stores. */
static inline void fetch_results(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t begin = (uintptr_t)row + (uintptr_t)ahead;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch((const char *)begin + i, 1);
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }
static inline int64_t floor_divide(int64_t a, int64_t b) { /* b > 0 */
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

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
