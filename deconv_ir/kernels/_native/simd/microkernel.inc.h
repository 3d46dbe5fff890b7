/* The vector code of one accumulator type for one instruction set.
 *
 * The GEMM of a micro-kernel, sums[M][N] (+)= weights[K][M] * data[K][N]:
 *   M  up to MAX_ROWS output channels
 *   K  `depth`: channels x taps
 *   N  up to MAX_COLUMNS vectors of positions
 *
 * Included by simd/instruction_set.inc.h for each accumulator type, which defines
 *   ELEMENT         the accumulator's type
 *   LANES           elements of a vector
 *   NAME(x)         x with a suffix of its own
 *   IS_FLOAT        whether it is a floating-point type
 *   NATIVE(element) whether elements are stored in the type of the sums
 *   IS_PAIRS        if elements of data and weights are not numbers of the type of the sums
 *   ADD_PRODUCT     adds the product of data and weights to a vector, and ADD_ROW_PRODUCT to one of
 *                   MAX_ROWS elements; default: of one element each
 *   PRODUCTS_ARE_APART  whether a product is computed before it is added; default: 0
 *   SHAPES          the micro-kernels: SHAPE(rows, columns) ...
 *   ROWS, COLUMNS   most rows, and the best number of vectors for each
 *
 * GCC's vector extension is used, not intrinsics: one source serves all types
 * and instruction sets, and the compiler keeps the sums in registers because
 * rows and columns are constants once inlined.
 */

typedef ELEMENT NAME(vec) __attribute__((vector_size(LANES * sizeof(ELEMENT))));
/* A vector with the alignment of an element. */
typedef ELEMENT NAME(loose)
    __attribute__((vector_size(LANES * sizeof(ELEMENT)), aligned(sizeof(ELEMENT)), may_alias));
#define VEC NAME(vec)
#define LOAD(p) ((VEC)*(const NAME(loose) *)(p))
#define STORE(p, v) (*(NAME(loose) *)(p) = (v))
#define INLINE static inline __attribute__((always_inline))

#ifndef ADD_PRODUCT
#define ADD_PRODUCT(sum, data, weight) ((sum) += (weight) * (data))
#define ADD_ROW_PRODUCT ADD_PRODUCT
#endif
#ifndef PRODUCTS_ARE_APART
#define PRODUCTS_ARE_APART 0
#endif

#if LANES == 2
#define EVEN_LANES(x, y) __builtin_shufflevector(x, y, 0, 2)
#define ODD_LANES(x, y) __builtin_shufflevector(x, y, 1, 3)
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 2)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 1, 3)
#elif LANES == 4
#define EVEN_LANES(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#define ODD_LANES(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7)
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#elif LANES == 8
#define EVEN_LANES(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD_LANES(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15)
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 16
#define EVEN_LANES(x, y) \
    __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD_LANES(x, y) \
    __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define ZIP_LOW(x, y) \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(x, y) \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

#if IS_FLOAT
/* Apply an operation of elementwise programs, and its scale, to vectors of f32. */
static void NAME(apply_to_vectors)(const struct epilogue *e, float *line, int64_t count) {
    e->function((const float *const[]){line, line, line}, e->immediates, count, line);
    const float scale = e->scale, offset = e->offset;
    if (e->scales)
        for (int64_t i = 0; i < count; i++) line[i] = line[i] * scale + offset;
}

/* The last vector, which may overlap the one before, is computed in a copy. */
static void NAME(apply_function)(const struct epilogue *e, float *line, int64_t count) {
    float rest[LANES] = {0};
    const int64_t whole = count / LANES * LANES, last = most(count - LANES, 0);
    if (whole < count)
        memcpy(rest, line + last, count < LANES ? (size_t)count * sizeof *line : sizeof rest);
    if (whole) NAME(apply_to_vectors)(e, line, whole);
    if (whole == count) return;
    NAME(apply_to_vectors)(e, rest, LANES);
    memcpy(line + last, rest, count < LANES ? (size_t)count * sizeof *line : sizeof rest);
}
#endif

/* Not inlined: the compiler vectorises these loops only if no other code needs its registers. */
static __attribute__((noinline)) void NAME(activate)(const struct epilogue *e, void *row,
                                                     int64_t count) {
#if IS_FLOAT
    const ELEMENT low = (ELEMENT)e->low, high = (ELEMENT)e->high, slope = (ELEMENT)e->slope;
    ELEMENT *restrict line = row;
    if (e->activation == ACT_RELU)
        for (int64_t i = 0; i < count; i++) line[i] = line[i] < 0 ? 0 : line[i];
    else if (e->activation == ACT_LEAKY)
        for (int64_t i = 0; i < count; i++)
            line[i] = line[i] < 0 ? line[i] * slope : line[i];
    else if (e->activation == ACT_CLAMP)
        for (int64_t i = 0; i < count; i++)
            line[i] = line[i] < low ? low : line[i] > high ? high : line[i];
    else if (e->activation == ACT_FUNCTION) NAME(apply_function)(e, row, count);
#else
    (void)e, (void)row, (void)count; /* Python applies activations to integers. */
#endif
}

/* Replace negative elements by 0; NaN stays NaN. */
INLINE VEC NAME(relu)(VEC value) {
    return (VEC)((__typeof__(value < 0))value & ~(value < 0));
}

static void NAME(add)(const struct epilogue *e, const void *others_, void *row, int64_t count) {
    const ELEMENT *others = others_;
    ELEMENT *line = row;
    const int is_relu = e->activation == ACT_RELU;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const VEC sum = LOAD(line + i) + LOAD(others + i);
        STORE(line + i, is_relu ? NAME(relu)(sum) : sum);
    }
    for (; i < count; i++) {
        const ELEMENT sum = line[i] + others[i];
        line[i] = is_relu && sum < 0 ? 0 : sum;
    }
    if (e->activation != ACT_NONE && !is_relu) NAME(activate)(e, row, count);
}

/* Store a block of sums with their bias, the values `addend` bytes after it, and a ReLU. */
INLINE void NAME(store_block)(const int rows, const int columns, const int is_relu, const int adds,
                              const VEC *sum, ELEMENT *restrict sums, int64_t row_stride,
                              const ELEMENT *bias, intptr_t addend) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        const VEC last = (bias ? bias[r] : 0) - (VEC){0};
#pragma GCC unroll 12
        for (int c = 0; c < columns; c++) {
            VEC result = sum[r * columns + c] + last;
            ELEMENT *to = sums + r * row_stride + c * LANES;
            if (adds) result += LOAD((const ELEMENT *)((const char *)to + addend));
            STORE(to, is_relu ? NAME(relu)(result) : result);
        }
    }
}

/* Adds the products of one tap to a block of sums. */
INLINE void NAME(add_products)(const int rows, const int columns, const ELEMENT *restrict at,
                               const ELEMENT *restrict weights, VEC *sum) {
    /* Whether the last vector is loaded again for each use, since a product needs its register: the compiler would
     * keep a sum in memory. */
    const int again = PRODUCTS_ARE_APART && rows * columns + least(rows, columns) + 2 > REGISTERS;
    /* The shorter side stays in registers; the longer one is streamed through a register. */
    if (columns < rows) {
        VEC column[MAX_COLUMNS];
#pragma GCC unroll 12
        for (int c = 0; c < columns; c++) column[c] = LOAD(at + c * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const VEC weight = weights[r] - (VEC){0};
#pragma GCC unroll 12
            for (int c = 0; c < columns - again; c++)
                ADD_PRODUCT(sum[r * columns + c], column[c], weight);
            if (again) {
                const ELEMENT *last = at + (columns - 1) * LANES;
                __asm__ volatile("" : "+r"(last));
                ADD_PRODUCT(sum[(r + 1) * columns - 1], LOAD(last), weight);
            }
        }
    } else {
        VEC weight[MAX_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) weight[r] = weights[r] - (VEC){0};
#pragma GCC unroll 12
        for (int c = 0; c < columns; c++) {
            const VEC column = LOAD(at + c * LANES);
#pragma GCC unroll 8
            for (int r = 0; r < rows - again; r++)
                ADD_PRODUCT(sum[r * columns + c], column, weight[r]);
            if (again) {
                const ELEMENT *last = weights + rows - 1;
                __asm__ volatile("" : "+r"(last));
                ADD_PRODUCT(sum[(rows - 1) * columns + c], column, *last - (VEC){0});
            }
        }
    }
}

/* Sums a block of rows x columns vectors at `data`: the sums never leave registers. */
INLINE void NAME(block)(const int rows, const int columns, int64_t depth,
                        const int32_t *restrict offsets, const ELEMENT *restrict data,
                        const ELEMENT *restrict weights, ELEMENT *restrict sums,
                        int64_t row_stride, int begins, const ELEMENT *bias,
                        const struct epilogue *finish, const char *ahead) {
    VEC sum[MAX_ROWS * MAX_COLUMNS];
    const ELEMENT *const first = begins == BEGINS_WITH_BIAS ? bias : NULL;
    if (first) bias = NULL;
    /* Continues from `sums`: cutting the depth elsewhere does not change a bit. */
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 12
        for (int c = 0; c < columns; c++)
            sum[r * columns + c] = first    ? LOAD(first + c * LANES)
                                   : begins ? (VEC){0}
                                            : LOAD(sums + r * row_stride + c * LANES);
    if (finish && finish->addend)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 12
            for (int c = 0; c < columns; c++)
                __builtin_prefetch((const char *)(sums + r * row_stride + c * LANES) +
                                   finish->addend);
    if (begins)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            __builtin_prefetch(sums + r * row_stride, 1);
            __builtin_prefetch(sums + r * row_stride + columns * LANES - 1, 1);
        }
#pragma GCC unroll 2
    for (int64_t k = 0; k < depth; k++) {
        const ELEMENT *at = data + offsets[k];
        __builtin_prefetch(data + offsets[k + AHEAD] + columns * LANES - 1);
        NAME(add_products)(rows, columns, at, weights, sum);
        __builtin_prefetch(ahead);
        ahead += rows * sizeof *weights;
        weights += rows;
    }
    const int is_relu = IS_FLOAT && finish && finish->activation == ACT_RELU;
    const intptr_t addend = IS_FLOAT && sizeof(ELEMENT) == 4 && finish ? finish->addend : 0;
    if (is_relu && addend)
        NAME(store_block)(rows, columns, 1, 1, sum, sums, row_stride, bias, addend);
    else if (is_relu) NAME(store_block)(rows, columns, 1, 0, sum, sums, row_stride, bias, 0);
    else if (addend) NAME(store_block)(rows, columns, 0, 1, sum, sums, row_stride, bias, addend);
    else NAME(store_block)(rows, columns, 0, 0, sum, sums, row_stride, bias, 0);
    if (is_relu) return;
    if (finish && finish->activation != ACT_NONE)
        for (int r = 0; r < rows; r++)
            NAME(activate)(finish, sums + r * row_stride, columns * LANES);
}

#define SHAPE(rows, columns)                                                                  \
    static void NAME(block_##rows##_##columns)(                                               \
        int64_t depth, const int32_t *offsets, const void *data, const void *weights,         \
        void *sums, int64_t row_stride, int64_t blocks, int begins, const void *bias,         \
        const struct epilogue *finish, const void *ahead) {                                   \
        for (int64_t b = 0; b < blocks; b++)                                                  \
            NAME(block)(rows, columns, depth, offsets,                                        \
                        (const ELEMENT *)data + b * columns * LANES, weights,                 \
                        (ELEMENT *)sums + b * columns * LANES, row_stride, begins, bias,      \
                        finish, ahead);                                                              \
    }
SHAPES
#undef SHAPE

/* At one position, vectors hold the rows, which are contiguous in the weights: the same sums. */
typedef ELEMENT NAME(row_vec) __attribute__((vector_size(MAX_ROWS * sizeof(ELEMENT))));
typedef ELEMENT NAME(loose_rows)
    __attribute__((vector_size(MAX_ROWS * sizeof(ELEMENT)), aligned(sizeof(ELEMENT)), may_alias));

static void NAME(sum_position)(int rows, int64_t depth, const int32_t *offsets, const void *data_,
                               const void *weights_, void *sums_, int64_t row_stride, int begins,
                               const void *bias_, const struct epilogue *finish) {
    const ELEMENT *restrict data = data_, *restrict weights = weights_, *bias = bias_;
    ELEMENT *sums = sums_, row[MAX_ROWS] = {0};
    if (!begins)
        for (int r = 0; r < rows; r++) row[r] = sums[r * row_stride];
    NAME(row_vec) sum = (NAME(row_vec))*(const NAME(loose_rows) *)row;
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; k++, weights += rows) {
        __builtin_prefetch(weights_ahead(weights));
        /* Weights of the next tap follow the last row. */
        ADD_ROW_PRODUCT(sum, data[offsets[k]] - (NAME(row_vec)){0},
                        (NAME(row_vec))*(const NAME(loose_rows) *)weights);
    }
    *(NAME(loose_rows) *)row = sum;
    for (int r = 0; r < rows; r++) row[r] += bias ? bias[r] : 0;
    if (finish && finish->activation != ACT_NONE) NAME(activate)(finish, row, rows);
    for (int r = 0; r < rows; r++) sums[r * row_stride] = row[r];
}

/* Sums `vectors` contiguous vectors of weights over all channels. */
INLINE void NAME(taps_block)(const int vectors, int64_t depth, const ELEMENT *restrict data,
                             const ELEMENT *restrict weights, int64_t step, int begins,
                             ELEMENT *restrict sums) {
    VEC sum[MAX_ROWS];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sum[v] = begins ? (VEC){0} : LOAD(sums + v * LANES);
    for (int64_t k = 0; k < depth; k++, weights += step) {
        const VEC one = data[k] - (VEC){0};
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(weights_ahead(weights + v * LANES));
            ADD_PRODUCT(sum[v], one, LOAD(weights + v * LANES));
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) STORE(sums + v * LANES, sum[v]);
}

static void NAME(sum_taps)(int rows, int64_t taps, int64_t depth, const void *data,
                           const void *weights_, int64_t step, int begins, const void *bias_,
                           const struct epilogue *finish, void *sums_) {
    const ELEMENT *weights = weights_, *bias = bias_;
    ELEMENT *sums = sums_;
    const int64_t count = taps * rows;
    for (int64_t i = 0; i < count;) {
        const int64_t left = (count - i + LANES - 1) / LANES;
        const int vectors = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (vectors == 8) NAME(taps_block)(8, depth, data, weights + i, step, begins, sums + i);
        else if (vectors == 4) NAME(taps_block)(4, depth, data, weights + i, step, begins, sums + i);
        else if (vectors == 2) NAME(taps_block)(2, depth, data, weights + i, step, begins, sums + i);
        else NAME(taps_block)(1, depth, data, weights + i, step, begins, sums + i);
        i += vectors * LANES;
    }
    for (int64_t tap = 0; tap < taps; tap++)
        for (int r = 0; bias && r < rows; r++) sums[tap * rows + r] += bias[r];
    if (finish) NAME(activate)(finish, sums, count);
}

/* Sums rows of `blocks` blocks at the same time: a single block would wait for its sums. */
INLINE void NAME(row_blocks)(const int blocks, int rows, int64_t depth,
                             const ELEMENT *restrict data, const ELEMENT *restrict weights,
                             int64_t step, ELEMENT *restrict sums) {
    NAME(row_vec) sum[MAX_ROWS];
#pragma GCC unroll 8
    for (int b = 0; b < blocks; b++) sum[b] = (NAME(row_vec)){0};
    for (int64_t k = 0; k < depth; k++, weights += rows) {
        const NAME(row_vec) one = data[k] - (NAME(row_vec)){0};
#pragma GCC unroll 8
        for (int b = 0; b < blocks; b++) {
            __builtin_prefetch((const char *)(weights + b * step) + BLOCKS_AHEAD);
            ADD_ROW_PRODUCT(sum[b], one,
                            (NAME(row_vec))*(const NAME(loose_rows) *)(weights + b * step));
        }
    }
    /* Elements after the last row of a block are overwritten by the next. */
#pragma GCC unroll 8
    for (int b = 0; b < blocks; b++) *(NAME(loose_rows) *)(sums + b * rows) = sum[b];
}

static void NAME(sum_row_blocks)(int rows, int64_t blocks, int64_t depth, const void *data,
                             const void *weights_, int64_t step, const void *bias_,
                             const struct epilogue *finish, void *sums_) {
    const ELEMENT *weights = weights_, *bias = bias_;
    ELEMENT *sums = sums_;
    for (int64_t b = 0; b < blocks;) {
        const int64_t left = blocks - b;
        const ELEMENT *at = weights + b * step;
        ELEMENT *to = sums + b * rows;
        if (left >= 8) NAME(row_blocks)(8, rows, depth, data, at, step, to);
        else if (left >= 4) NAME(row_blocks)(4, rows, depth, data, at, step, to);
        else if (left >= 2) NAME(row_blocks)(2, rows, depth, data, at, step, to);
        else NAME(row_blocks)(1, rows, depth, data, at, step, to);
        b += left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    }
    for (int64_t i = 0; i < blocks * rows; i++) sums[i] += bias ? bias[i] : 0;
    NAME(activate)(finish, sums, blocks * rows);
}

/* ------------------------------------------------------- interleaving -- */

/* Interleaves LANES positions of `lines` lines, 4 or 2, which are neighbours among `stride`. */
INLINE void NAME(interleave_block)(const int lines, const ELEMENT *const *from, int64_t at,
                                   int64_t stride, ELEMENT *out) {
    VEC zipped[4];
    const VEC a = LOAD(from[0] + at), b = LOAD(from[1] + at);
    if (lines == 2) {
        zipped[0] = ZIP_LOW(a, b);
        zipped[1] = ZIP_HIGH(a, b);
    } else {
        const VEC c = LOAD(from[2] + at), d = LOAD(from[3] + at);
        const VEC e = ZIP_LOW(a, c), f = ZIP_HIGH(a, c);
        const VEC g = ZIP_LOW(b, d), h = ZIP_HIGH(b, d);
        zipped[0] = ZIP_LOW(e, g);
        zipped[1] = ZIP_HIGH(e, g);
        zipped[2] = ZIP_LOW(f, h);
        zipped[3] = ZIP_HIGH(f, h);
    }
    const int piece = lines < LANES ? lines : LANES;
#pragma GCC unroll 4
    for (int v = 0; v < lines; v++) {
        if (stride == lines) {
            STORE(out + v * LANES, zipped[v]);
            continue;
        }
#pragma GCC unroll 8
        for (int k = 0; k < LANES / piece; k++) {
            const int first = v * LANES + k * piece;
            memcpy(out + first / lines * stride + first % lines,
                   (const char *)&zipped[v] + k * piece * (int)sizeof(ELEMENT),
                   (size_t)piece * sizeof(ELEMENT));
        }
    }
}

/* Interleaves `count` positions from `at` on, rounded up to whole vectors. */
INLINE void NAME(interleave_group)(const int lines, const ELEMENT *const *from, int64_t at,
                                   int64_t count, int64_t stride, ELEMENT *out) {
    if (stride == lines)
        for (int64_t i = 0; i < count; i += LANES)
            NAME(interleave_block)(lines, from, at + i, lines, out + i * lines);
    else
        for (int64_t i = 0; i < count; i += LANES)
            NAME(interleave_block)(lines, from, at + i, stride, out + i * stride);
}

/* Interleaves the first lines of `left`: four, two or one.  Returns the number. */
INLINE int64_t NAME(interleave_some)(int64_t left, const ELEMENT *const *from, int64_t at,
                                     int64_t count, int64_t stride, ELEMENT *out) {
    if (left >= 4) {
        NAME(interleave_group)(4, from, at, count, stride, out);
        return 4;
    }
    if (left >= 2) {
        NAME(interleave_group)(2, from, at, count, stride, out);
        return 2;
    }
    for (int64_t i = 0; i < count; i++) out[i * stride] = from[0][at + i];
    return 1;
}

/* Interleaves all lines from position `at` on, for whole vectors of positions. */
static void NAME(interleave_lines)(const ELEMENT *in, int64_t pitch, int64_t stride, int64_t at,
                                   int64_t count, ELEMENT *out) {
    for (int64_t line = 0; line < stride;) {
        const ELEMENT *first = in + line * pitch;
        const ELEMENT *const from[] = {first, first + pitch, first + 2 * pitch, first + 3 * pitch};
        line += NAME(interleave_some)(stride - line, from, at, count, stride, out + line);
    }
}

/* Lines shorter than a vector are interleaved in a copy; a few positions one by one. */
#define FEW_POSITIONS 4
#define MOST_SHORT_LINES 8

static __attribute__((noinline)) void NAME(interleave_any)(const ELEMENT *in, int64_t pitch,
                                                           int64_t stride, int64_t count,
                                                           ELEMENT *out) {
    const int64_t whole = count / stride, rest = whole % LANES;
    int64_t done = whole - rest;
    NAME(interleave_lines)(in, pitch, stride, 0, done, out);
    if (rest >= FEW_POSITIONS && done > 0) {
        /* The last vector overlaps the one before. */
        const int64_t last = whole - LANES;
        NAME(interleave_lines)(in, pitch, stride, last, LANES, out + last * stride);
        done = whole;
    } else if (rest >= FEW_POSITIONS && stride <= MOST_SHORT_LINES) {
        ELEMENT zipped[MOST_SHORT_LINES * LANES];
        NAME(interleave_lines)(in, pitch, stride, 0, LANES, zipped);
        memcpy(out, zipped, (size_t)count * sizeof(ELEMENT));
        return;
    }
    for (int64_t v = done; v < whole; v++)
        for (int64_t q = 0; q < stride; q++) out[v * stride + q] = in[q * pitch + v];
    for (int64_t q = 0; q < count - whole * stride; q++)
        out[whole * stride + q] = in[q * pitch + whole];
}

/* Rows are often short: two lines, the usual case, skip the preparations of others. */
static void NAME(copy_lines)(const void *from, int64_t pitch, int64_t rows, int64_t count,
                             void *to, int64_t out_pitch);

static void NAME(interleave)(const void *lines, int64_t pitch, int64_t stride, int64_t count,
                             void *out_) {
    const ELEMENT *in = lines;
    ELEMENT *out = out_;
    const int64_t pairs = count / 2;
    if (stride == 1) {
        NAME(copy_lines)(in, 0, 1, count, out, 0);
    } else if (stride == 2 && pairs >= LANES) {
        const ELEMENT *const from[] = {in, in + pitch};
        for (int64_t i = 0; i < pairs; i += LANES) {
            const int64_t at = least(i, pairs - LANES); /* the last overlaps the one before */
            NAME(interleave_block)(2, from, at, 2, out + 2 * at);
        }
        if (count % 2) out[count - 1] = in[pairs];
    } else if (stride == 2 && 2 * pairs >= LANES && count % 2 == 0) {
        const ELEMENT *end = in + pairs - LANES / 2;
        const VEC first = ZIP_LOW(LOAD(in), LOAD(in + pitch));
        STORE(out + count - LANES, ZIP_LOW(LOAD(end), LOAD(end + pitch)));
        STORE(out, first);
    } else {
        NAME(interleave_any)(in, pitch, stride, count, out);
    }
}

/* Interleave two lines with non-temporal stores, if they fill whole cache lines; return whether. */
static int NAME(stream_pairs)(const void *lines, int64_t pitch, int64_t count, void *out_) {
#ifdef STREAM
    const ELEMENT *in = lines;
    ELEMENT *out = out_;
    if ((uintptr_t)out % CACHE_LINE || count % (2 * LANES)) return 0;
    for (int64_t i = 0; i < count / 2; i += LANES) {
        const VEC a = LOAD(in + i), b = LOAD(in + pitch + i);
        const VEC zipped[] = {ZIP_LOW(a, b), ZIP_HIGH(a, b)};
        STREAM(&zipped[0], out + 2 * i);
        STREAM(&zipped[1], out + 2 * i + LANES);
    }
    return 1;
#else
    (void)lines, (void)pitch, (void)count, (void)out_;
    return 0;
#endif
}

/* ------------------------------------------------------ element types -- */

#define COPY_IN(TYPE, VALUE)                                                                  \
    {                                                                                         \
        const TYPE *from_ = in;                                                               \
        for (int64_t i = 0; i < count; i++) {                                                 \
            const TYPE e = from_[i * stride];                                                 \
            out[i] = (ELEMENT)(VALUE);                                                        \
        }                                                                                     \
        return;                                                                               \
    }

static void NAME(load)(enum element from, const void *in, int64_t stride, int64_t count,
                       void *out_) {
    ELEMENT *restrict out = out_;
    if (stride == 1 && NATIVE(from)) {
        memcpy(out, in, (size_t)count * sizeof(ELEMENT));
        return;
    }
    if (stride == 2 && NATIVE(from)) {
        const ELEMENT *pairs = in;
        int64_t i = 0;
        /* The last vector would read beyond the last element: it begins one before. */
        for (; i + LANES < count; i += LANES)
            STORE(out + i, EVEN_LANES(LOAD(pairs + 2 * i), LOAD(pairs + 2 * i + LANES)));
        if (i > 0 && i < count) {
            const ELEMENT *last = pairs + 2 * (count - LANES) - 1;
            STORE(out + count - LANES, ODD_LANES(LOAD(last), LOAD(last + LANES)));
            return;
        }
        for (; i < count; i++) out[i] = pairs[2 * i];
        return;
    }
    switch (from) {
#ifdef IS_PAIRS
    case BF16X2: COPY_IN(float, e)
#elif IS_FLOAT
    case F32: COPY_IN(float, e)
    case F64: COPY_IN(double, e)
    case F16:
        if (stride == 1) {
            half_to_float_row(in, count, (void *)out);
            return;
        }
        COPY_IN(uint16_t, half_to_float(e))
    case BF16: COPY_IN(uint16_t, bfloat_to_float(e))
#else
    case I8: COPY_IN(uint8_t, e)
    case I16: COPY_IN(uint16_t, e)
    case I32: case U8X4: case I16X2: COPY_IN(uint32_t, e)
    case I64: COPY_IN(uint64_t, e)
#endif
    default: return;
    }
}
#undef COPY_IN

#define COPY_OUT(TYPE, VALUE)                                                                 \
    {                                                                                         \
        TYPE *restrict to_ = out;                                                             \
        for (int64_t i = 0; i < count; i++) {                                                 \
            const ELEMENT e = in[i];                                                          \
            to_[i] = (TYPE)(VALUE);                                                           \
        }                                                                                     \
        return;                                                                               \
    }

static void NAME(store)(enum element to, const void *in_, int64_t count, void *out) {
    const ELEMENT *restrict in = in_;
    if (NATIVE(to)) {
        NAME(copy_lines)(in, 0, 1, count, out, 0);
        return;
    }
    switch (to) {
#if IS_FLOAT
    case F32: COPY_OUT(float, e)
    case F64: COPY_OUT(double, e)
    case F16: float_to_half_row((const void *)in, count, out); return;
    case BF16: COPY_OUT(uint16_t, float_to_bfloat((float)e))
#else
    case I8: COPY_OUT(uint8_t, e)
    case I16: COPY_OUT(uint16_t, e)
    case I32: case U8X4: case I16X2: COPY_OUT(uint32_t, e)
    case I64: COPY_OUT(uint64_t, e)
#endif
    default: return;
    }
}
#undef COPY_OUT

#include "simd/depthwise.inc.h"
#if IS_FLOAT && LANES == VECTOR_LANES_32 && !defined(IS_PAIRS)
#include "simd/transpose.inc.h"
#include "simd/channel_vectors.inc.h"
#if LANES == 2 * ROWS
#include "simd/output_vectors.inc.h"
#endif
#endif

#define SHAPE(rows, columns) .table[rows][columns] = NAME(block_##rows##_##columns),
static const struct microkernels NAME(kernels) = {
    .lanes = LANES,
    .size = sizeof(ELEMENT),
    .rows = ROWS,
    .columns = COLUMNS,
    SHAPES
    .sum_position = NAME(sum_position),
    .sum_taps = NAME(sum_taps),
    .sum_row_blocks = NAME(sum_row_blocks),
    .sum_channel = NAME(sum_channel),
    .copy_lines = NAME(copy_lines),
    .split_lines = NAME(split_lines),
#if IS_FLOAT && LANES == VECTOR_LANES_32 && !defined(IS_PAIRS)
    .gather_channels = NAME(gather_channels),
    .sum_vectors = NAME(sum_vectors),
    .scatter_channels = NAME(scatter_channels),
#if LANES == 2 * ROWS
    .sum_outputs = NAME(sum_outputs),
#endif
#endif
    .interleave = NAME(interleave),
    .stream_pairs = NAME(stream_pairs),
    .load = NAME(load),
    .store = NAME(store),
    .activate = NAME(activate),
    .add = NAME(add),
    .stream = stream,
    .copy_rows = copy_rows,
};
#undef SHAPE

#undef VEC
#undef LOAD
#undef STORE
#undef INLINE
#undef EVEN_LANES
#undef ODD_LANES
#undef ZIP_LOW
#undef ZIP_HIGH
#undef ELEMENT
#undef LANES
#undef NAME
#undef IS_FLOAT
#undef IS_PAIRS
#undef NATIVE
#undef ADD_PRODUCT
#undef PRODUCTS_ARE_APART
#undef ADD_ROW_PRODUCT
