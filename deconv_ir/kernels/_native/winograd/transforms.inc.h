/* The transforms of one instruction set, for f32: included by simd_types.inc.h. */

#define VEC JOIN(vec, f32, SUFFIX)
#define LOOSE JOIN(loose, f32, SUFFIX)
#define LOAD(p) ((VEC)*(const LOOSE *)(p))
#define STORE(p, v) (*(LOOSE *)(p) = (v))
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, wino, SUFFIX)

typedef int32_t NAME(bits) __attribute__((vector_size(LANES * sizeof(int32_t))));

static void NAME(in)(enum filtering kind, const float *const *from, int64_t step,
                     float *const *to, int64_t count, int points) {
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    switch (kind) {
    case F_1_1:
        for (int64_t i = 0; i < count; i++) STORE(to[0] + i * LANES, LOAD(a + i * step));
        break;
    case F_2_2:
        for (int64_t i = 0; i < count; i++) {
            const VEC middle = LOAD(b + i * step);
            STORE(to[0] + i * LANES, LOAD(a + i * step) - middle);
            STORE(to[1] + i * LANES, middle);
            STORE(to[2] + i * LANES, LOAD(c + i * step) - middle);
        }
        break;
    default: /* the points are 0, 1, -1 and infinity, whichever has more taps */
        for (int64_t i = 0; i < count; i++) {
            const VEC v = LOAD(b + i * step), w = LOAD(c + i * step);
            STORE(to[0] + i * LANES, LOAD(a + i * step) - w);
            STORE(to[1] + i * LANES, v + w);
            STORE(to[2] + i * LANES, w - v);
            if (points == 4) STORE(to[3] + i * LANES, LOAD(d + i * step) - v);
        }
    }
}

static void NAME(out)(enum filtering kind, const float *const *from, float *const *to,
                      int64_t count, float bias) {
    const VEC last = bias - (VEC){0};
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    switch (kind) {
    case F_1_1: break;
    case F_2_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC middle = LOAD(b + i);
            STORE(to[0] + i, LOAD(a + i) + middle + last);
            STORE(to[1] + i, middle + LOAD(c + i) + last);
        }
        break;
    case F_3_2:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC plus = LOAD(b + i), minus = LOAD(c + i), sum = plus + minus;
            STORE(to[0] + i, LOAD(a + i) + sum + last);
            STORE(to[1] + i, plus - minus + last);
            STORE(to[2] + i, sum + LOAD(d + i) + last);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i += LANES) {
            const VEC plus = LOAD(b + i), minus = LOAD(c + i);
            STORE(to[0] + i, LOAD(a + i) + (plus + minus) + last);
            STORE(to[1] + i, (plus - minus) + LOAD(d + i) + last);
        }
    }
}

static void NAME(spread)(const float *line, int64_t blocks, int64_t width, float *panel,
                         int64_t step) {
    for (; blocks > 0; blocks--, line += width, panel += step)
        for (int64_t i = 0; i < width; i += LANES) STORE(panel + i, LOAD(line + i));
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

static void NAME(weave)(const float *const *from, int64_t at, int64_t lines, int64_t count,
                        float *out) {
    int64_t line = 0;
    for (; line + 4 <= lines; line += 4)
        JOIN(interleave_some, f32, SUFFIX)(4, from + line, at, count, lines, out + line);
    for (; line + 2 <= lines; line += 2)
        JOIN(interleave_some, f32, SUFFIX)(2, from + line, at, count, lines, out + line);
    for (; line < lines; line++)
        for (int64_t i = 0; i < count; i++) out[i * lines + line] = from[line][at + i];
}

/* Of each four lanes, by ones and by twos; and all fours of two vectors, in turn. */
#if LANES == 4
#define ONES_LOW(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define ONES_HIGH(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define TWOS_LOW(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5)
#define TWOS_HIGH(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7)
#elif LANES == 8
#define ONES_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13)
#define ONES_HIGH(x, y) __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15)
#define TWOS_LOW(x, y) __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13)
#define TWOS_HIGH(x, y) __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define FOURS_LOW(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11)
#define FOURS_HIGH(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)
#else
#define ONES_LOW(x, y) \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define ONES_HIGH(x, y) \
    __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define TWOS_LOW(x, y) \
    __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define TWOS_HIGH(x, y) \
    __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FOURS_LOW(x, y) \
    __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
#define FOURS_HIGH(x, y) \
    __builtin_shufflevector(x, y, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)
#endif

/* Exchange rows and columns of LANES vectors. */
static inline __attribute__((always_inline)) void NAME(turn)(const VEC *in, VEC *out) {
    VEC v[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += 4) {
        const VEC a = ONES_LOW(in[i], in[i + 1]), b = ONES_HIGH(in[i], in[i + 1]);
        const VEC c = ONES_LOW(in[i + 2], in[i + 3]), d = ONES_HIGH(in[i + 2], in[i + 3]);
        v[i] = TWOS_LOW(a, c);
        v[i + 1] = TWOS_HIGH(a, c);
        v[i + 2] = TWOS_LOW(b, d);
        v[i + 3] = TWOS_HIGH(b, d);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
#if LANES == 4
        out[i] = v[i];
#elif LANES == 8
        out[i] = FOURS_LOW(v[i], v[4 + i]);
        out[4 + i] = FOURS_HIGH(v[i], v[4 + i]);
#else
        const VEC a = FOURS_LOW(v[i], v[8 + i]), b = FOURS_HIGH(v[i], v[8 + i]);
        const VEC c = FOURS_LOW(v[4 + i], v[12 + i]), d = FOURS_HIGH(v[4 + i], v[12 + i]);
        out[i] = FOURS_LOW(a, c);
        out[4 + i] = FOURS_HIGH(a, c);
        out[8 + i] = FOURS_LOW(b, d);
        out[12 + i] = FOURS_HIGH(b, d);
#endif
    }
}

/* Levels are compared by their bits: those of NaN are the largest. */
static inline NAME(bits) NAME(larger)(NAME(bits) a, NAME(bits) b) {
#ifdef LARGER_BITS
    return LARGER_BITS(a, b);
#else
    const NAME(bits) larger = b > a;
    return (b & larger) | (a & ~larger);
#endif
}

/* A level of each element of LANES rows: the largest of `level` and of their magnitudes, and not
 * 0 but for zeros. */
static inline __attribute__((always_inline)) VEC NAME(raise)(const VEC *in, const float *scales,
                                                             VEC level) {
    NAME(bits) largest = (NAME(bits))level, any = {0};
#pragma GCC unroll 16
    for (int k = 0; k < LANES; k++) {
        const NAME(bits) scaled = (NAME(bits))(in[k] * scales[k]);
        largest = NAME(larger)(largest, scaled & INT32_C(0x7fffffff));
        any |= (NAME(bits))in[k] & INT32_C(0x7fffffff);
    }
    return (VEC)(largest | ((largest == 0) & (any != 0) & 1));
}

/* The first `some` elements of a row: whole vectors are read up to `end`, where there is one. */
static VEC NAME(load_some)(const float *row, int64_t some, const char *end) {
    float elements[LANES] = {0};
    if (!end || (uintptr_t)(row + LANES) <= (uintptr_t)end) return LOAD(row);
    memcpy(elements, row, (size_t)some * sizeof *row);
    return LOAD(elements);
}

static void NAME(gather)(const float *const *from, const float *scales, int64_t count,
                         const char *end, int64_t at, int64_t spread, int64_t pitch,
                         float *levels, float *to) {
    int64_t residue = at % spread;
    to += at / spread * LANES;
    VEC in[LANES], out[LANES];
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++) in[k] = LOAD(from[k] + i);
        STORE(levels + i, NAME(raise)(in, scales, LOAD(levels + i)));
        NAME(turn)(in, out);
        if (spread == 1) {
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++, to += LANES) STORE(to, out[k]);
            continue;
        }
        for (int k = 0; k < LANES; k++) {
            STORE(to + residue * pitch * LANES, out[k]);
            if (++residue < spread) continue;
            residue = 0;
            to += LANES;
        }
    }
    if (i == count) return;
    for (int k = 0; k < LANES; k++) in[k] = NAME(load_some)(from[k] + i, count - i, end);
    const VEC level = NAME(raise)(in, scales, NAME(load_some)(levels + i, count - i, (const char *)(levels + count)));
    for (int64_t k = 0; i + k < count; k++) levels[i + k] = level[k];
    NAME(turn)(in, out);
    for (int64_t k = 0; i + k < count; k++) {
        STORE(to + residue * pitch * LANES, out[k]);
        if (++residue < spread) continue;
        residue = 0;
        to += LANES;
    }
}

static inline __attribute__((always_inline)) void NAME(lay_width)(
    const int64_t width, const float *from, int64_t groups, int64_t channels, int64_t position,
    float *panel, int64_t step) {
    panel += position / width * step;
    int64_t within = position % width;
    for (; groups > 0; groups--) {
        VEC in[LANES], out[LANES];
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++, from += LANES) in[k] = LOAD(from);
        NAME(turn)(in, out);
        float *to = panel + within;
        if (channels == LANES) {
#pragma GCC unroll 16
            for (int k = 0; k < LANES; k++) STORE(to + k * width, out[k]);
        } else {
            for (int64_t k = 0; k < channels; k++) STORE(to + k * width, out[k]);
        }
        within += LANES;
        if (within < width) continue;
        within = 0;
        panel += step;
    }
}

static void NAME(lay)(const float *from, int64_t groups, int64_t channels, int64_t position,
                      int64_t width, float *panel, int64_t step) {
    if (width == LANES)
        NAME(lay_width)(LANES, from, groups, channels, position, panel, step);
    else
        NAME(lay_width)(PANEL_COLUMNS * LANES, from, groups, channels, position, panel, step);
}

static const struct transforms NAME(transforms) = {
    .in = NAME(in),
    .out = NAME(out),
    .gather = NAME(gather),
    .lay = NAME(lay),
    .spread = NAME(spread),
    .activate = NAME(activate),
    .weave = NAME(weave),
};

#undef VEC
#undef LOOSE
#undef LOAD
#undef STORE
#undef LANES
#undef NAME
#undef ONES_LOW
#undef ONES_HIGH
#undef TWOS_LOW
#undef TWOS_HIGH
#undef FOURS_LOW
#undef FOURS_HIGH
