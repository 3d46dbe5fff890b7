/* Depthwise layers whose vectors hold channels, LANES of them at one position:
 *
 *   for each row, and each block of `width` positions:
 *     for each tap: sums[position] += weights[tap] * data[position + offset]
 *
 * Vectors never cross cache lines for any tap, and rows may be short.  Included by
 * simd/microkernel.inc.h.
 */
#undef MOST_WIDTH
#define MOST_WIDTH 8 /* positions whose sums are in registers: they hide a multiply-add's latency */

static void NAME(gather_channels)(const void *in_, int64_t step, int64_t channels, int64_t count,
                                  const int32_t *places, void *out_) {
    const ELEMENT *in = in_, *rows[LANES];
    ELEMENT *out = out_, part[LANES][LANES] = {{0}};
    const int64_t last = most(count - LANES, 0);
    for (int64_t k = 0; k < LANES; k++) {
        rows[k] = in + least(k, channels - 1) * step;
        if (count >= LANES) continue;
        memcpy(part[k], rows[k], (size_t)count * sizeof *in);
        rows[k] = part[k];
    }
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t at = least(i, last);
        VEC from[LANES], to[LANES];
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++) from[k] = LOAD(rows[k] + at);
        NAME(transpose)(from, to);
        if (count >= LANES) {
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++) STORE(out + places[at + k] * (int64_t)LANES, to[k]);
        } else {
            for (int k = 0; k < count; k++) STORE(out + places[k] * (int64_t)LANES, to[k]);
        }
    }
}

static void NAME(scatter_channels)(const void *in_, int64_t step, int64_t channels, int64_t count,
                                   void *out_) {
    const ELEMENT *in = in_;
    ELEMENT *out = out_;
    const int64_t last = most(count - LANES, 0);
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t at = least(i, last);
        VEC from[LANES], to[LANES];
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++) from[k] = LOAD(in + (at + k) * LANES);
        NAME(transpose)(from, to);
        if (count >= LANES && channels == LANES) {
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++) STORE(out + k * step + at, to[k]);
        } else {
            for (int k = 0; k < channels; k++)
                memcpy(out + k * step + at, &to[k], (size_t)least(count, LANES) * sizeof *out);
        }
    }
}

INLINE void NAME(sum_positions)(const int width, const struct channel_rows *rows,
                                const ELEMENT *data, const ELEMENT *restrict weights, VEC bias,
                                ELEMENT *restrict sums) {
    VEC sum[MOST_WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < width; i++) sum[i] = (VEC){0};
    for (int64_t k = 0; k < rows->taps; k++) {
        const ELEMENT *at = data + rows->offsets[k] * (int64_t)LANES;
        const VEC weight = LOAD(weights + k * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < width; i++) sum[i] += weight * LOAD(at + i * LANES);
    }
#pragma GCC unroll 8
    for (int i = 0; i < width; i++) STORE(sums + i * LANES, sum[i] + bias);
}

static void NAME(sum_vectors)(const struct channel_rows *rows, const void *data_,
                              const void *weights, const void *bias_,
                              const struct epilogue *finish, void *sums_) {
    const ELEMENT *data = data_;
    ELEMENT *sums = sums_;
    const VEC bias = bias_ ? LOAD(bias_) : (VEC){0};
    const int64_t count = rows->count;
    const int width = count >= 8 ? 8 : count >= 4 ? 4 : count >= 2 ? 2 : 1;
    for (int64_t row = 0; row < rows->rows; row++) {
        for (int64_t i = 0; i < count; i += width) {
            const int64_t at = least(i, count - width) * LANES;
#define POSITIONS(WIDTH) \
    case WIDTH: NAME(sum_positions)(WIDTH, rows, data + at, weights, bias, sums + at); break;
            switch (width) {
                POSITIONS(8) POSITIONS(4) POSITIONS(2) POSITIONS(1)
            default: break;
            }
#undef POSITIONS
        }
        data += rows->pitch * LANES;
        sums += count * LANES;
    }
    NAME(activate)(finish, sums_, rows->rows * count * LANES);
}
