/* The transforms of Winograd F(m, r) of data and sums, and the vectors of channels that they read: included
 * by simd/transforms.inc.h for each type of elements of 4 bytes, which defines
 *   POINTS(x)            x with a suffix of its own
 *   DATA, SUMS           vectors of data and of sums
 *   FINISH(sum)          what becomes of a result
 *   RAISE(rows, levels)  the larger of some levels and those of a square of data; absent: no levels
 */
#define LOAD_AS(TYPE, p) ((TYPE)LOAD(p))
#define STORE_AS(p, v) STORE(p, (VEC)(v))

static void POINTS(input_transform)(enum wino_size size, const float *const *from, int64_t step,
                                    float *const *to, int64_t count, int points) {
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    switch (size) {
    case F_1_1:
        for (int64_t i = 0; i < count; i++) STORE(to[0] + i * LANES, LOAD(a + i * step));
        break;
    case F_4_2: /* the points are 0, 1, -1, 2 and infinity */
        for (int64_t i = 0; i < count; i++) {
            const DATA v = LOAD_AS(DATA, b + i * step), w = LOAD_AS(DATA, c + i * step);
            const DATA x = LOAD_AS(DATA, d + i * step), far = x - v, near = x - w - v - v;
            STORE_AS(to[0] + i * LANES, 2 * (LOAD_AS(DATA, a + i * step) - w) + far);
            STORE_AS(to[1] + i * LANES, near);
            STORE_AS(to[2] + i * LANES, x - w + 2 * (v - w));
            STORE_AS(to[3] + i * LANES, far);
            STORE_AS(to[4] + i * LANES, LOAD_AS(DATA, from[4] + i * step) - w - 2 * far);
        }
        break;
    case F_4_3: /* the points are 0, 1, -1, 2, -2 and infinity */
        for (int64_t i = 0; i < count; i++) {
            const DATA v = LOAD_AS(DATA, b + i * step), w = LOAD_AS(DATA, c + i * step);
            const DATA x = LOAD_AS(DATA, d + i * step), y = LOAD_AS(DATA, from[4] + i * step);
            const DATA even = y - 4 * w, odd = x - 4 * v, far = y - w, apart = 2 * (x - v);
            STORE_AS(to[0] + i * LANES, 4 * (LOAD_AS(DATA, a + i * step) - w) + far);
            STORE_AS(to[1] + i * LANES, even + odd);
            STORE_AS(to[2] + i * LANES, even - odd);
            STORE_AS(to[3] + i * LANES, far + apart);
            STORE_AS(to[4] + i * LANES, far - apart);
            STORE_AS(to[5] + i * LANES, 4 * (v - x) - x + LOAD_AS(DATA, from[5] + i * step));
        }
        break;
    case F_2_2:
        for (int64_t i = 0; i < count; i++) {
            const DATA middle = LOAD_AS(DATA, b + i * step);
            STORE_AS(to[0] + i * LANES, LOAD_AS(DATA, a + i * step) - middle);
            STORE_AS(to[1] + i * LANES, middle);
            STORE_AS(to[2] + i * LANES, LOAD_AS(DATA, c + i * step) - middle);
        }
        break;
    default: /* the points are 0, 1, -1 and infinity for both sizes */
        for (int64_t i = 0; i < count; i++) {
            const DATA v = LOAD_AS(DATA, b + i * step), w = LOAD_AS(DATA, c + i * step);
            STORE_AS(to[0] + i * LANES, LOAD_AS(DATA, a + i * step) - w);
            STORE_AS(to[1] + i * LANES, v + w);
            STORE_AS(to[2] + i * LANES, w - v);
            if (points == 4) STORE_AS(to[3] + i * LANES, LOAD_AS(DATA, d + i * step) - v);
        }
    }
}

static void POINTS(output_transform)(enum wino_size size, const float *const *from,
                                     float *const *to, int64_t count, float bias,
                                     struct wino_divisor divisor) {
    const VEC last = bias - (VEC){0};
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    (void)last, (void)divisor;
    switch (size) {
    case F_1_1: break;
    case F_4_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const SUMS near = LOAD_AS(SUMS, b + i), minus = LOAD_AS(SUMS, c + i);
            const SUMS far = LOAD_AS(SUMS, d + i), end = LOAD_AS(SUMS, from[4] + i);
            const SUMS first = LOAD_AS(SUMS, a + i), rest = minus - (near + 2 * near);
            STORE_AS(to[0] + i, FINISH(rest + (first + 2 * first) - 2 * minus + far));
            STORE_AS(to[1] + i, FINISH(rest + 2 * far));
            STORE_AS(to[2] + i, FINISH(rest - 2 * minus + 4 * far));
            STORE_AS(to[3] + i, FINISH(rest + 2 * (end + 2 * end) + 8 * far));
        }
        break;
    case F_4_3:
        for (int64_t i = 0; i < count; i += LANES) {
            const SUMS plus = LOAD_AS(SUMS, b + i) + LOAD_AS(SUMS, c + i);
            const SUMS minus = LOAD_AS(SUMS, b + i) - LOAD_AS(SUMS, c + i);
            const SUMS far = LOAD_AS(SUMS, d + i) + LOAD_AS(SUMS, from[4] + i);
            const SUMS apart = LOAD_AS(SUMS, d + i) - LOAD_AS(SUMS, from[4] + i);
            const SUMS first = LOAD_AS(SUMS, a + i), end = LOAD_AS(SUMS, from[5] + i);
            STORE_AS(to[0] + i, FINISH(2 * (first + 2 * (first - plus)) + far));
            STORE_AS(to[1] + i, FINISH(2 * (apart - 2 * minus)));
            STORE_AS(to[2] + i, FINISH(4 * (far - plus)));
            STORE_AS(to[3] + i, FINISH(4 * (2 * (apart + end + 2 * end) - minus)));
        }
        break;
    case F_2_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const SUMS middle = LOAD_AS(SUMS, b + i);
            STORE_AS(to[0] + i, FINISH(LOAD_AS(SUMS, a + i) + middle));
            STORE_AS(to[1] + i, FINISH(middle + LOAD_AS(SUMS, c + i)));
        }
        break;
    case F_3_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const SUMS plus = LOAD_AS(SUMS, b + i), minus = LOAD_AS(SUMS, c + i);
            const SUMS sum = plus + minus;
            STORE_AS(to[0] + i, FINISH(LOAD_AS(SUMS, a + i) + sum));
            STORE_AS(to[1] + i, FINISH(plus - minus));
            STORE_AS(to[2] + i, FINISH(sum + LOAD_AS(SUMS, d + i)));
        }
        break;
    default:
        for (int64_t i = 0; i < count; i += LANES) {
            const SUMS plus = LOAD_AS(SUMS, b + i), minus = LOAD_AS(SUMS, c + i);
            STORE_AS(to[0] + i, FINISH(LOAD_AS(SUMS, a + i) + (plus + minus)));
            STORE_AS(to[1] + i, FINISH((plus - minus) + LOAD_AS(SUMS, d + i)));
        }
    }
}

static void POINTS(gather)(const float *const *from, const float *scales, int64_t count,
                           const char *end, int64_t at, int64_t dilation, int64_t pitch,
                           float *levels, float *to) {
    int64_t residue = at % dilation;
    to += at / dilation * LANES;
    VEC in[LANES], out[LANES];
    int64_t i = 0;
    (void)scales, (void)levels;
    for (; i + LANES <= count; i += LANES) {
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++) in[k] = LOAD(from[k] + i);
#ifdef RAISE
        STORE(levels + i, RAISE(in, LOAD(levels + i)));
#endif
        JOIN(transpose, f32, SUFFIX)(in, out);
        if (dilation == 1) {
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++, to += LANES) STORE(to, out[k]);
            continue;
        }
        for (int k = 0; k < LANES; k++) {
            STORE(to + residue * pitch * LANES, out[k]);
            if (++residue < dilation) continue;
            residue = 0;
            to += LANES;
        }
    }
    if (i == count) return;
    for (int k = 0; k < LANES; k++) in[k] = NAME(load_some)(from[k] + i, count - i, end);
#ifdef RAISE
    const VEC before = NAME(load_some)(levels + i, count - i, (const char *)(levels + count));
    const VEC level = RAISE(in, before);
    for (int64_t k = 0; i + k < count; k++) levels[i + k] = level[k];
#endif
    JOIN(transpose, f32, SUFFIX)(in, out);
    for (int64_t k = 0; i + k < count; k++) {
        STORE(to + residue * pitch * LANES, out[k]);
        if (++residue < dilation) continue;
        residue = 0;
        to += LANES;
    }
}
#undef POINTS
#undef DATA
#undef SUMS
#undef FINISH
#undef RAISE
#undef LOAD_AS
#undef STORE_AS
