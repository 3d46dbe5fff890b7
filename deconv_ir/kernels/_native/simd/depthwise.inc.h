/* Sums of a depthwise layer: one channel, with one weight per tap.
 *
 *   for each block of `height` rows x `width` vectors of positions:
 *     for each tap: sums[row][vector] += weight * data[row][vector + offset]
 *
 * Data are used for one output channel only, so loads are the bottleneck.  All blocks have the same
 * size: the last ones overlap those before.  Included by simd/microkernel.inc.h.
 */
#undef DEPTHWISE_VECTORS
#define DEPTHWISE_VECTORS 8 /* sums in registers, to hide a multiply-add's latency */

/* The bias of sums, and the lower bound of the results: NaN stays NaN. */
struct NAME(finish) {
    ELEMENT bias, floor;
};

INLINE VEC NAME(finished)(VEC sum, struct NAME(finish) finish) {
    const VEC result = sum + (finish.bias - (VEC){0}), floor = finish.floor - (VEC){0};
    const __typeof__(result < floor) less = result < floor;
    return (VEC)(((__typeof__(less))floor & less) | ((__typeof__(less))result & ~less));
}

/* `last`: the position of the last vector of a row. */
INLINE void NAME(sum_rows)(const int height, const int width, const struct channel_rows *rows,
                           int64_t last, const ELEMENT *data, const ELEMENT *restrict weights,
                           struct NAME(finish) finish, ELEMENT *sums) {
    VEC sum[DEPTHWISE_VECTORS];
    const int32_t *restrict offsets = rows->offsets;
    const int64_t taps = rows->taps, pitch = rows->pitch;
#pragma GCC unroll 8
    for (int v = 0; v < height * width; v++) sum[v] = (VEC){0};
    for (int64_t k = 0; k < taps; k++) {
        const ELEMENT *at = data + offsets[k];
        const VEC weight = weights[k] - (VEC){0};
#pragma GCC unroll 8
        for (int r = 0; r < height; r++)
#pragma GCC unroll 8
            for (int c = 0; c < width; c++)
                ADD_PRODUCT(sum[r * width + c],
                            LOAD(at + r * pitch + (c < width - 1 ? c * LANES : last)), weight);
    }
#pragma GCC unroll 8
    for (int r = 0; r < height; r++)
#pragma GCC unroll 8
        for (int c = 0; c < width; c++)
            STORE(sums + r * rows->sums_pitch + (c < width - 1 ? c * LANES : last),
                  NAME(finished)(sum[r * width + c], finish));
}

/* Keep a vector in its register: the compiler would load it again for each use, and most loads
 * cross cache lines. */
#ifndef HOLD
#define HOLD(vector) (void)(vector)
#endif

/* Like sum_rows() for kernel x kernel taps, with each loaded vector used for all rows of sums that
 * read it: with tap k + stride * kernel, a row reads the data of the next row with tap k. */
INLINE void NAME(sum_shared)(const int kernel, const int stride, const int height, const int width,
                             const struct channel_rows *rows, int64_t last, const ELEMENT *data,
                             const ELEMENT *restrict weights, struct NAME(finish) finish,
                             ELEMENT *restrict sums) {
    VEC sum[DEPTHWISE_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < height * width; v++) sum[v] = (VEC){0};
    /* The data of the first `stride` rows of taps; those of the others are whole rows further
     * on. */
    const ELEMENT *taps[2 * 5];
#pragma GCC unroll 10
    for (int k = 0; k < stride * kernel; k++) taps[k] = data + rows->offsets[k];
    int64_t further = 0;
#pragma GCC unroll 20
    for (int y = 0; y < (height - 1) * stride + kernel; y++) {
        if (y > 0 && y % stride == 0) further += rows->pitch;
#pragma GCC unroll 5
        for (int x = 0; x < kernel; x++) {
            const ELEMENT *at = taps[y % stride * kernel + x];
            VEC in[2];
#pragma GCC unroll 2
            for (int c = 0; c < width; c++) {
                in[c] = LOAD(at + (c < width - 1 ? further : further + last));
                HOLD(in[c]);
            }
#pragma GCC unroll 8
            for (int r = 0; r < height; r++) {
                const int k = y - r * stride;
                if (k < 0 || k >= kernel) continue;
                const VEC weight = weights[k * kernel + x] - (VEC){0};
#pragma GCC unroll 2
                for (int c = 0; c < width; c++) 
                    ADD_PRODUCT(sum[r * width + c], in[c], weight);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < height; r++)
#pragma GCC unroll 2
        for (int c = 0; c < width; c++)
            STORE(sums + r * rows->sums_pitch + (c < width - 1 ? 0 : last),
                  NAME(finished)(sum[r * width + c], finish));
}

/* Whether sum_shared() can be used: there are kernel x kernel taps, and rows of sums share data. */
INLINE int NAME(is_shared)(const struct channel_rows *rows, int64_t kernel, int64_t stride) {
    if (rows->taps != kernel * kernel) return 0;
    for (int64_t k = stride * kernel; k < rows->taps; k++)
        if (rows->offsets[k] != rows->offsets[k - stride * kernel] + rows->pitch) return 0;
    return 1;
}

/* Sums all rows, at least `height`, in blocks; of kernel x kernel taps, or any taps if that is
 * 0. */
INLINE void NAME(sum_blocks)(const int kernel, const int stride, const int height,
                             const int width, const struct channel_rows *rows,
                             const ELEMENT *data, const ELEMENT *weights,
                             struct NAME(finish) finish,
                             ELEMENT *sums) {
    const int64_t end = most(rows->count - width * LANES, 0);
    const int64_t last = most(least((width - 1) * LANES, rows->count - LANES), 0);
    for (int64_t y = 0; y < rows->rows; y += height) {
        const int64_t row = least(y, rows->rows - height);
        for (int64_t x = 0; x < rows->count; x += width * LANES)
            if (kernel)
                NAME(sum_shared)(kernel, stride, height, width, rows, last,
                                 data + row * rows->pitch + least(x, end), weights, finish,
                                 sums + row * rows->sums_pitch + least(x, end));
            else
                NAME(sum_rows)(height, width, rows, last,
                               data + row * rows->pitch + least(x, end), weights, finish,
                               sums + row * rows->sums_pitch + least(x, end));
    }
}

/* Sum rows with 3 x 3 or 5 x 5 taps if they share data; returns whether they do. */
static int NAME(sum_square)(const struct channel_rows *rows, const ELEMENT *data,
                            const ELEMENT *weights, struct NAME(finish) finish, ELEMENT *sums) {
#if IS_FLOAT
    const int wide = rows->count > LANES;
    if (rows->rows < (wide ? 4 : 8)) return 0;
#define SQUARE(KERNEL, STRIDE)                                                                \
    if (NAME(is_shared)(rows, KERNEL, STRIDE)) {                                              \
        if (wide) NAME(sum_blocks)(KERNEL, STRIDE, 4, 2, rows, data, weights, finish, sums);  \
        else NAME(sum_blocks)(KERNEL, STRIDE, 8, 1, rows, data, weights, finish, sums);       \
        return 1;                                                                             \
    }
    SQUARE(3, 1) SQUARE(5, 1) SQUARE(3, 2) SQUARE(5, 2)
#undef SQUARE
#endif
    (void)rows, (void)data, (void)weights, (void)finish, (void)sums;
    return 0;
}

static void NAME(sum_channel)(const struct channel_rows *rows, const void *data,
                              const void *weights, const void *bias,
                              const struct epilogue *epilogue, void *sums) {
    const int is_relu = !IS_FLOAT || epilogue->activation == ACT_RELU;
    const struct NAME(finish) finish = {bias ? *(const ELEMENT *)bias : 0,
                                        is_relu ? 0 : (ELEMENT)-__builtin_inf()};
    const int64_t vectors = divide_up(rows->count, LANES);
    const int64_t width = divide_up(vectors, divide_up(vectors, DEPTHWISE_VECTORS));
    /* The rows of a block, at most the rows of the layer. */
    const int64_t fit = least(rows->rows, DEPTHWISE_VECTORS / most(width, 1));
    const int64_t height = fit >= 8 ? 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
#define BLOCKS(HEIGHT, WIDTH)                                                                 \
    case HEIGHT * 16 + WIDTH:                                                                 \
        NAME(sum_blocks)(0, 1, HEIGHT, WIDTH, rows, data, weights, finish, sums);             \
        break;
    const int done = NAME(sum_square)(rows, data, weights, finish, sums);
    switch (done ? 0 : height * 16 + width) {
        BLOCKS(8, 1) BLOCKS(4, 1) BLOCKS(2, 1) BLOCKS(1, 1)
        BLOCKS(4, 2) BLOCKS(2, 2) BLOCKS(1, 2)
        BLOCKS(2, 3) BLOCKS(1, 3) BLOCKS(2, 4) BLOCKS(1, 4)
        BLOCKS(1, 5) BLOCKS(1, 6) BLOCKS(1, 7) BLOCKS(1, 8)
    default: break;
    }
#undef BLOCKS
    if (epilogue->activation == ACT_NONE || epilogue->activation == ACT_RELU) return;
    if (rows->sums_pitch == rows->count)
        NAME(activate)(epilogue, sums, rows->rows * rows->count);
    else
        for (int64_t row = 0; row < rows->rows; row++)
            NAME(activate)(epilogue, (ELEMENT *)sums + row * rows->sums_pitch, rows->count);
}

/* Copy rows of `count` elements in two pieces of `piece`, which may overlap. */
INLINE void NAME(copy_short)(const int64_t piece, const ELEMENT *in, int64_t pitch, int64_t rows,
                             int64_t count, ELEMENT *out, int64_t out_pitch) {
    for (int64_t row = 0; row < rows; row++, in += pitch, out += out_pitch) {
        ELEMENT ends[2 * LANES];
        memcpy(ends, in, (size_t)piece * sizeof(ELEMENT));
        memcpy(ends + LANES, in + count - piece, (size_t)piece * sizeof(ELEMENT));
        memcpy(out, ends, (size_t)piece * sizeof(ELEMENT));
        memcpy(out + count - piece, ends + LANES, (size_t)piece * sizeof(ELEMENT));
    }
}

static void NAME(copy_lines)(const void *from, int64_t pitch, int64_t rows, int64_t count,
                             void *to, int64_t out_pitch) {
    const ELEMENT *in = from;
    ELEMENT *out = to;
    if (count >= LANES)
        for (int64_t row = 0; row < rows; row++, in += pitch, out += out_pitch)
            for (int64_t at = 0; at < count; at += LANES) {
                const int64_t begin = least(at, count - LANES);
                STORE(out + begin, LOAD(in + begin));
            }
#if LANES > 8
    else if (count >= 8) NAME(copy_short)(8, in, pitch, rows, count, out, out_pitch);
#endif
#if LANES > 4
    else if (count >= 4) NAME(copy_short)(4, in, pitch, rows, count, out, out_pitch);
#endif
#if LANES > 2
    else if (count >= 2) NAME(copy_short)(2, in, pitch, rows, count, out, out_pitch);
#endif
    else if (count == 1) NAME(copy_short)(1, in, pitch, rows, count, out, out_pitch);
}

/* Split a row into `count` even elements and `pairs` odd ones: the same number, or one fewer. */
INLINE void NAME(split_line)(const ELEMENT *in, int64_t count, int64_t pairs, ELEMENT *evens,
                             ELEMENT *odds) {
    int64_t done = 0;
    if (pairs >= LANES) {
        for (int64_t at = 0; at < pairs; at += LANES) {
            const int64_t begin = least(at, pairs - LANES);
            const VEC a = LOAD(in + 2 * begin), b = LOAD(in + 2 * begin + LANES);
            STORE(evens + begin, EVEN_LANES(a, b));
            STORE(odds + begin, ODD_LANES(a, b));
        }
        done = pairs;
    } else if (2 * pairs >= LANES) {
        const VEC a = LOAD(in), b = LOAD(in + 2 * pairs - LANES);
        const VEC even = EVEN_LANES(a, b), odd = ODD_LANES(a, b);
        const size_t half = LANES / 2 * sizeof(ELEMENT);
        memcpy(evens, &even, half);
        memcpy(odds, &odd, half);
        memcpy(evens + pairs - LANES / 2, (const char *)&even + half, half);
        memcpy(odds + pairs - LANES / 2, (const char *)&odd + half, half);
        done = pairs;
    }
    for (int64_t i = done; i < pairs; i++) {
        evens[i] = in[2 * i];
        odds[i] = in[2 * i + 1];
    }
    if (count > pairs) evens[pairs] = in[2 * pairs];
}

static void NAME(split_lines)(const void *from, int64_t pitch, int64_t rows, int64_t count,
                              int64_t pairs, void *to, int64_t out_pitch, int64_t odds) {
    const ELEMENT *in = from;
    ELEMENT *out = to;
    for (int64_t row = 0; row < rows; row++, in += pitch, out += out_pitch)
        NAME(split_line)(in, count, pairs, out, out + odds);
}
