/* The transforms of one instruction set, for f32: included by simd_types.inc.h. */

#define VEC JOIN(vec, f32, SUFFIX)
#define LOOSE JOIN(loose, f32, SUFFIX)
#define LOAD(p) ((VEC)*(const LOOSE *)(p))
#define STORE(p, v) (*(LOOSE *)(p) = (v))
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, wino, SUFFIX)

typedef int32_t NAME(bits) __attribute__((vector_size(LANES * sizeof(int32_t))));

static void NAME(in)(enum filtering kind, const float *const *from, int64_t from_step,
                     float *const *to, int64_t to_step, int64_t rows, int64_t count) {
    for (int64_t row = 0; row < rows; row++) {
        const int64_t at = row * from_step, into = row * to_step;
        const float *a = from[0] + at, *b, *c, *d;
        switch (kind) {
        case F_1_1:
            for (int64_t i = 0; i < count; i += LANES) STORE(to[0] + into + i, LOAD(a + i));
            break;
        case F_2_2:
            b = from[1] + at, c = from[2] + at;
            for (int64_t i = 0; i < count; i += LANES) {
                const VEC middle = LOAD(b + i);
                STORE(to[0] + into + i, LOAD(a + i) - middle);
                STORE(to[1] + into + i, middle);
                STORE(to[2] + into + i, LOAD(c + i) - middle);
            }
            break;
        default: /* the points are 0, 1, -1 and infinity, whichever has more taps */
            b = from[1] + at, c = from[2] + at, d = from[3] + at;
            for (int64_t i = 0; i < count; i += LANES) {
                const VEC v = LOAD(b + i), w = LOAD(c + i);
                STORE(to[0] + into + i, LOAD(a + i) - w);
                STORE(to[1] + into + i, v + w);
                STORE(to[2] + into + i, w - v);
                STORE(to[3] + into + i, LOAD(d + i) - v);
            }
        }
    }
}

static void NAME(out)(enum filtering kind, const float *const *from, float *const *to,
                      int64_t count) {
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    switch (kind) {
    case F_1_1: break;
    case F_2_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC middle = LOAD(b + i);
            STORE(to[0] + i, LOAD(a + i) + middle);
            STORE(to[1] + i, middle + LOAD(c + i));
        }
        break;
    case F_3_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC plus = LOAD(b + i), minus = LOAD(c + i), sum = plus + minus;
            STORE(to[0] + i, LOAD(a + i) + sum);
            STORE(to[1] + i, plus - minus);
            STORE(to[2] + i, sum + LOAD(d + i));
        }
        break;
    default:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC plus = LOAD(b + i), minus = LOAD(c + i);
            STORE(to[0] + i, LOAD(a + i) + (plus + minus));
            STORE(to[1] + i, (plus - minus) + LOAD(d + i));
        }
    }
}

static void NAME(spread)(const float *line, int64_t blocks, float *panel, int64_t step) {
    for (; blocks > 0; blocks--, line += PANEL_COLUMNS * LANES, panel += step)
        for (int i = 0; i < PANEL_COLUMNS; i++) STORE(panel + i * LANES, LOAD(line + i * LANES));
}

static void NAME(halve)(const float *first, const float *second, int64_t ahead,
                        int64_t blocks, float *panel, int64_t step, int64_t product_step) {
    for (; blocks > 0; blocks--, panel += step)
        for (int i = 0; i < PANEL_COLUMNS; i++, first += LANES, second += LANES) {
            float *to = panel + i * LANES;
            const VEC a = LOAD(first), b = LOAD(first + ahead);
            const VEC c = LOAD(second), d = LOAD(second + ahead);
            const VEC e = b - a, f = d - e;
            STORE(to, a);
            STORE(to + product_step, c);
            STORE(to + 2 * product_step, d);
            STORE(to + 3 * product_step, f - c);
            STORE(to + 4 * product_step, e);
            STORE(to + 5 * product_step, f);
            STORE(to + 6 * product_step, d - b);
        }
}

static void NAME(join)(const float *products, int64_t rows, int64_t ahead, const float *start,
                       float *to, int64_t row_step) {
    const int64_t half = divide_up(rows, 2), step = half * PANEL_COLUMNS * LANES;
    for (int64_t row = 0; row < half; row++, to += row_step)
        for (int i = 0; i < PANEL_COLUMNS; i++, products += LANES) {
            const float *from[HALVES];
            for (int k = 0; k < HALVES; k++) from[k] = products + k * step;
            const VEC a = LOAD(from[0]), b = a + LOAD(from[5]);
            const VEC c = b + LOAD(from[6]), e = LOAD(from[4]);
            const float bias = start ? start[row] : 0;
            STORE(to + i * LANES, a + LOAD(from[1]) + bias);
            STORE(to + i * LANES + ahead, b + e + LOAD(from[2]) + bias);
            if (row + half == rows) continue; /* one row less */
            float *second = to + half * row_step + i * LANES;
            const float second_bias = start ? start[row + half] : 0;
            STORE(second, c - LOAD(from[3]) + second_bias);
            STORE(second + ahead, c + e + second_bias);
        }
}

static void NAME(activate)(const struct epilogue *e, float *line, int64_t count) {
    const enum activation activation = e->activation;
    const float low = (float)e->low, high = (float)e->high, slope = (float)e->slope;
    if (activation == ACT_RELU)
        for (int64_t i = 0; i < count; i++) line[i] = line[i] < 0 ? 0 : line[i];
    else if (activation == ACT_LEAKY)
        for (int64_t i = 0; i < count; i++)
            line[i] = line[i] < 0 ? line[i] * slope : line[i];
    else if (activation == ACT_CLAMP)
        for (int64_t i = 0; i < count; i++)
            line[i] = line[i] < low ? low : line[i] > high ? high : line[i];
}

#if LANES == 4
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#elif LANES == 8
#define ZIP_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define ZIP_LOW(x, y) \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(x, y) \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* LANES positions of `parts` lines, 4 or 2, that lie side by side among `lines`. */
static inline __attribute__((always_inline)) void NAME(weave_block)(
    const int parts, const float *const *from, int64_t at, int64_t lines, float *out) {
    VEC woven[4];
    const VEC a = LOAD(from[0] + at), b = LOAD(from[1] + at);
    if (parts == 2) {
        woven[0] = ZIP_LOW(a, b);
        woven[1] = ZIP_HIGH(a, b);
    } else {
        const VEC c = LOAD(from[2] + at), d = LOAD(from[3] + at);
        const VEC e = ZIP_LOW(a, c), f = ZIP_HIGH(a, c);
        const VEC g = ZIP_LOW(b, d), h = ZIP_HIGH(b, d);
        woven[0] = ZIP_LOW(e, g);
        woven[1] = ZIP_HIGH(e, g);
        woven[2] = ZIP_LOW(f, h);
        woven[3] = ZIP_HIGH(f, h);
    }
#pragma GCC unroll 4
    for (int v = 0; v < parts; v++) {
        if (lines == parts) {
            STORE(out + v * LANES, woven[v]);
            continue;
        }
#pragma GCC unroll 8
        for (int k = 0; k < LANES / parts; k++)
            memcpy(out + (v * LANES / parts + k) * lines,
                   (const char *)&woven[v] + k * parts * (int)sizeof(float),
                   (size_t)parts * sizeof(float));
    }
}

static inline __attribute__((always_inline)) void NAME(weave_part)(
    const int parts, const float *const *from, int64_t at, int64_t lines, int64_t count,
    float *out) {
    for (int64_t i = 0; i < count; i += LANES)
        NAME(weave_block)(parts, from, at + i, lines, out + i * lines);
}

static void NAME(weave)(const float *const *from, int64_t at, int64_t lines, int64_t count,
                        float *out) {
    int64_t line = 0;
    for (; line + 4 <= lines; line += 4)
        NAME(weave_part)(4, from + line, at, lines, count, out + line);
    for (; line + 2 <= lines; line += 2)
        NAME(weave_part)(2, from + line, at, lines, count, out + line);
    for (; line < lines; line++)
        for (int64_t i = 0; i < count; i++) out[i * lines + line] = from[line][at + i];
}

/* Of two vectors, every second element; of three, every third. */
#if LANES == 4
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#define ODD(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7)
#define THIRD_0(x, y, z) \
    __builtin_shufflevector(__builtin_shufflevector(x, y, 0, 3, 6, 6), z, 0, 1, 2, 5)
#define THIRD_1(x, y, z) \
    __builtin_shufflevector(__builtin_shufflevector(x, y, 1, 4, 7, 7), z, 0, 1, 2, 6)
#define THIRD_2(x, y, z) \
    __builtin_shufflevector(__builtin_shufflevector(x, y, 2, 5, 5, 5), z, 0, 1, 4, 7)
#elif LANES == 8
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15)
#define THIRD_0(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 0, 3, 6, 9, 12, 15, 15, 15), z, 0, 1, 2, 3, 4, 5, 10, 13)
#define THIRD_1(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 1, 4, 7, 10, 13, 13, 13, 13), z, 0, 1, 2, 3, 4, 8, 11, 14)
#define THIRD_2(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 2, 5, 8, 11, 14, 14, 14, 14), z, 0, 1, 2, 3, 4, 9, 12, 15)
#else
#define EVEN(x, y) \
    __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(x, y) \
    __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define THIRD_0(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 30, 30, 30, 30, \
                                30),                                                          \
        z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29)
#define THIRD_1(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 31, 31, 31,    \
                                31, 31),                                                      \
        z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30)
#define THIRD_2(x, y, z)                                                                      \
    __builtin_shufflevector(                                                                  \
        __builtin_shufflevector(x, y, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 29, 29, 29, 29,    \
                                29, 29),                                                      \
        z, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31)
#endif

/* The inverse of weaving, into lines that are `pitch` apart; whole vectors. */
static void NAME(deal)(const float *from, int64_t lines, int64_t count, float *to,
                       int64_t pitch) {
    if (lines == 2)
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC a = LOAD(from + 2 * i), b = LOAD(from + 2 * i + LANES);
            STORE(to + i, EVEN(a, b));
            STORE(to + pitch + i, ODD(a, b));
        }
    else if (lines == 3)
        for (int64_t i = 0; i < count; i += LANES) {
            const float *at = from + 3 * i;
            const VEC a = LOAD(at), b = LOAD(at + LANES), c = LOAD(at + 2 * LANES);
            STORE(to + i, THIRD_0(a, b, c));
            STORE(to + pitch + i, THIRD_1(a, b, c));
            STORE(to + 2 * pitch + i, THIRD_2(a, b, c));
        }
    else if (lines == 4)
        for (int64_t i = 0; i < count; i += LANES) {
            const float *at = from + 4 * i;
            const VEC a = LOAD(at), b = LOAD(at + LANES);
            const VEC c = LOAD(at + 2 * LANES), d = LOAD(at + 3 * LANES);
            const VEC even = EVEN(a, b), more_even = EVEN(c, d);
            const VEC odd = ODD(a, b), more_odd = ODD(c, d);
            STORE(to + i, EVEN(even, more_even));
            STORE(to + pitch + i, EVEN(odd, more_odd));
            STORE(to + 2 * pitch + i, ODD(even, more_even));
            STORE(to + 3 * pitch + i, ODD(odd, more_odd));
        }
    else
        for (int64_t i = 0; i < count; i++)
            for (int64_t line = 0; line < lines; line++)
                to[line * pitch + i] = from[i * lines + line];
}

static int NAME(split)(const struct split *s, const float *from, int64_t from_step,
                       int64_t count, float *to) {
    const NAME(bits) magnitude = (NAME(bits)){0} + INT32_C(0x7fffffff);
    NAME(bits) largest = {0};
    int32_t rest = 0;
    const int64_t row_size = s->lines * s->pitch;
    float *const rows = s->lines > 1 ? s->whole : to;
    const int64_t step = s->lines > 1 ? s->whole_step : row_size;
    while (count > 0) {
        const int64_t together = s->lines > 1 ? least(count, SPLIT_ROWS) : count;
        for (int64_t r = 0; r < together; r++, from += from_step) {
            float *row = rows + r * step + s->before;
            if (s->ahead)
                fetch_row((const char *)from, s->ahead * (int64_t)sizeof *from,
                          s->width * (int64_t)sizeof *from);
            int64_t i = 0;
            for (; i + LANES <= s->width; i += LANES) {
                const VEC v = LOAD(from + i);
                const NAME(bits) bits = (NAME(bits))v & magnitude;
                const NAME(bits) larger = bits > largest;
                largest = (bits & larger) | (largest & ~larger);
                STORE(row + i, v);
            }
            for (; i < s->width; i++) {
                int32_t bits;
                memcpy(&bits, from + i, sizeof bits);
                bits &= INT32_C(0x7fffffff);
                rest = bits > rest ? bits : rest;
                row[i] = from[i];
            }
        }
        for (int64_t r = 0; s->lines > 1 && r < together; r++, to += row_size)
            NAME(deal)(rows + r * step, s->lines, s->pitch, to, s->pitch);
        count -= together;
    }
    for (int i = 0; i < LANES; i++) rest = largest[i] > rest ? largest[i] : rest;
    return (uint32_t)rest > LARGEST_DATA;
}

static const struct transforms NAME(transforms) = {
    .in = NAME(in),
    .out = NAME(out),
    .split = NAME(split),
    .spread = NAME(spread),
    .halve = NAME(halve),
    .join = NAME(join),
    .activate = NAME(activate),
    .weave = NAME(weave),
};

#undef VEC
#undef LOOSE
#undef LOAD
#undef STORE
#undef LANES
#undef NAME
#undef ZIP_LOW
#undef ZIP_HIGH
#undef EVEN
#undef ODD
#undef THIRD_0
#undef THIRD_1
#undef THIRD_2
