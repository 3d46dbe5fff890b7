/* Products of matrices, block by block; multiply() and attend() share them. */
#ifndef DECONV_PRODUCTS_H
#define DECONV_PRODUCTS_H

#include "python/call.h"
#include "simd/codes.h"
#include "simd/microkernels.h"
#include "simd/quantized.h"

#define MOST_STACKED 8
#define MOST_ROWS 240  /* of a job: a multiple of the rows of all micro-kernels */
#define MOST_DEPTH 384 /* terms that are packed at once */
#define MOST_PANEL 4   /* vectors of columns of a panel */
/* Blocks of a compressed matrix that few rows are multiplied by stay in the first-level cache. */
#define FEW_ROWS 16
#define FEW_ROWS_DEPTH 64
#define MOST_PRODUCT_LANES (CACHE_LINE / (int)sizeof(float)) /* of any instruction set */
#define MOST_QUANTIZED_TERMS 65793 /* products of 255 and 128 whose sum has 32 bits */
/* For attention: bytes of the weights of a job, if it has at least LEAST_VECTORS vectors of
 * queries; and keys whose mask is copied at once. */
#define MOST_WEIGHT_BYTES (1 << 20)
#define LEAST_VECTORS 3
#define MASKED_KEYS 32

/* Matrices in memory: elements from one row, column and matrix to the next. */
struct matrices {
    const float *first;
    int64_t row, column, stack[MOST_STACKED];
};

/* Products of data that are quantised when they are packed, or are codes, with weights of signed bytes, stored as
 * code + 128.  Codes in memory are signed bytes, code - 128; packed elements hold four terms, or two, those of even or of odd places.  For weights w, and what their zero point
 * adds, z: sum of data * (w + z) = sum of (data - 128) * (w + 128) - (128 - z) * sum of (data - 128) + 128 * sum of
 * (w + z). */
struct quantized_factor {
    const struct quantized_functions *functions;
    struct quantizer quantizer; /* of the data */
    struct column_dequantizer columns; /* its factors are 128 - z, its bases 128 * sum of (w + z) */
    struct epilogue finish; /* of results in f32 */
    int reads_codes, writes_codes;
    /* Of results that are codes: from numbers, or, if it is part of the range of codes what becomes of these, from sums. */
    struct quantizer results;
    struct column_requantizer requantizer;
    int from_sums;
    int shorts; /* whether elements are extended when they are packed: ACC_SHORTS */
};

struct product {
    const struct microkernels *kernels, *moves; /* moves: of f32, which copy any elements of 4 bytes */
    struct matrices a, b;
    const float *packed; /* b, or NULL */
    const struct compressed_matrix *compressed; /* b, or NULL */
    const struct compressed_functions *unpacks;
    const struct coded_matrix *coded; /* b, or NULL */
    const struct coded_functions *decodes;
    const struct quantized_factor *quantized; /* or NULL; b is packed, and a.column the terms of an element */
    /* Or NULL: likewise, with two terms of bf16 in an element, to which rows are rounded when they are packed. */
    const struct quantized_functions *pairs;
    const float *bias;   /* initial value of the sums of each row; or NULL */
    const struct epilogue *finish; /* of complete sums, or NULL */
    void *out;
    float scale; /* factor of a */
    int64_t a_bytes, out_bytes; /* of an element in memory */
    int stacked; /* axes of the stack */
    int64_t stack[MOST_STACKED];
    int64_t m, n, k, step, vectors, panels; /* step: from one row of `out` to the next */
    int64_t terms; /* if elements hold several: k elements do */
    int64_t depth; /* terms of a block */
    int padded; /* whether rows of `out` hold whole vectors */
    int64_t row_jobs, column_jobs, panels_at_once;
    int64_t pieces, pieces_at_once; /* of a copy */
    int64_t packed_a, packed_b, panel_sums; /* elements of scratch */
    /* Where terms are before they are packed, and after codes are unpacked; `offsets`: in a panel. */
    int32_t places[MOST_DEPTH], unpacked[MOST_DEPTH], offsets[MOST_PANEL + 1][MOST_DEPTH + AHEAD];
};

/* The buffers of a thread: packed `a` and `b`, a vector per term, and unpacked codes. */
struct pack_buffers {
    float *a, *b, *gathered, *unpacked; /* unpacked: columns of codes, or rows of quantised data */
    int32_t *row_sums; /* of quantised data */
    uint32_t *sums;    /* of some rows and a panel, where results are codes */
};

/* Set the fields that depend on the instruction set and on n.  Returns whether it can be used. */
int take_kernels(struct product *p, int64_t isa, enum accumulator accumulator);

/* Change the number of columns, for the same kernels. */
void set_columns(struct product *p, int64_t n);

/* Whether a buffer holds matrices of f32 that can be addressed by elements. */
int take_matrices(const Py_buffer *buffer, struct matrices *all);

/* Copy `width` lines of `depth` elements, at most MOST_DEPTH, from `in`, whose elements are `step`
 * and whose lines are `line` apart: out[element][line], padded with zeros to `padded` lines.
 * `gathered` has room for a vector per element. */
void pack(const struct product *p, const float *in, int64_t step, int64_t line, int64_t depth,
          int64_t width, int64_t padded, float *gathered, float *out);

/* The first element of a matrix of a stack. */
const float *matrix_at(const struct product *p, const struct matrices *all, int64_t index);

/* Sum some rows, in some panels of columns; `b` is read if it is not in another form. */
void sum_panels(const struct product *p, const void *a, const float *b, int64_t rows,
                int64_t first_panel, int64_t last_panel, struct pack_buffers to, void *out);

/* Count the scratch of a thread for `rows` rows at once.  Returns the bytes of all. */
int64_t count_packed(struct product *p, int64_t rows);

/* Divide memory among the buffers that count_packed() has counted. */
struct pack_buffers places_at(const struct product *p, float *scratch);

/* Divide the work among all threads: rows, which are packed for all columns of a job, and columns if
 * rows are few. */
int run_product(struct product *p, int64_t threads);

PyObject *module_pack_columns(PyObject *module, PyObject *arguments);
PyObject *module_multiply_codes(PyObject *module, PyObject *arguments);
PyObject *module_multiply_compressed(PyObject *module, PyObject *arguments);
PyObject *module_multiply_quantized(PyObject *module, PyObject *arguments);
PyObject *module_multiply(PyObject *module, PyObject *arguments);
PyObject *module_copy_matrices(PyObject *module, PyObject *arguments);
PyObject *module_attend(PyObject *module, PyObject *arguments);

#endif
