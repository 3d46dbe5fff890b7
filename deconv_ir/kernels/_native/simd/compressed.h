/* Matrices that stay compressed in memory: codes of 4, 8 or 16 bits, scaled, in strips of columns. */
#ifndef DECONV_COMPRESSED_H
#define DECONV_COMPRESSED_H

#include "simd/microkernels.h"

#define STRIP 16       /* columns of a strip of a matrix */
#define CODES 16       /* of four bits */
#define BYTE_CODES 256 /* of eight bits */

struct compressed_matrix {
    enum compressed_form form;
    int64_t k, n, group; /* terms; columns; terms of a column with the same scale */
    int64_t width; /* columns that are neighbours in memory: a strip */
    /* [strip][k][column]; of four bits: [strip][k / 2, rounded up][column], even terms in the lower half
     * of a byte. */
    const uint8_t *codes;
    /* The numbers of codes: CODES of COMPRESSED_4, BYTE_CODES of COMPRESSED_TABLE. */
    const float *table;
    /* Of f16 or f32, [strip][k / group][column], or NULL.  An element is (number - zero) * scale; if
     * `halves`, it is rounded to f16. */
    const void *scales, *zeros;
    int half_scales, half_zeros, halves;
};

struct compressed_functions {
    /* Unpack elements, terms from `begin` to before `end`, in vectors of columns:
     * out[term * step + column].  `column` is the first, and all are in its strip if `m->width` is not a
     * multiple of the vector's lanes; `begin` and `m->group` are even for codes of four bits.  Up to a vector
     * is read, and written, beyond the end of a strip that is narrower than a vector. */
    void (*unpack)(const struct compressed_matrix *m, int64_t column, int64_t vectors, int64_t begin,
                   int64_t end, float *out, int64_t step);
    /* The same for four bits and all columns of a matrix of half a vector, with scales and zeros of f32 for all
     * terms, to contiguous terms: an odd last one is written with the next.  NULL if vectors have no such half. */
    void (*unpack_pairs)(const struct compressed_matrix *m, int64_t begin, int64_t end, float *out);
};

extern const struct compressed_functions functions_compressed_baseline;
#ifdef DECONV_X86
extern const struct compressed_functions functions_compressed_avx2;
extern const struct compressed_functions functions_compressed_avx512;
#endif

#endif
