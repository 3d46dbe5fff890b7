/* The transforms of one instruction set, for f32: included by simd_types.inc.h. */

#define VEC JOIN(vec, f32, SUFFIX)
#define LOOSE JOIN(loose, f32, SUFFIX)
#define LOAD(p) ((VEC)*(const LOOSE *)(p))
#define STORE(p, v) (*(LOOSE *)(p) = (v))
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, wino, SUFFIX)

typedef int32_t NAME(bits) __attribute__((vector_size(LANES * sizeof(int32_t))));

static void NAME(input_transform)(enum filtering kind, const float *const *from, int64_t step,
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

static void NAME(output_transform)(enum filtering kind, const float *const *from, float *const *to,
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

static void NAME(tile_line)(const float *line, int64_t blocks, int64_t width, float *panel,
                         int64_t step) {
    for (; blocks > 0; blocks--, line += width, panel += step)
        for (int64_t i = 0; i < width; i += LANES) STORE(panel + i, LOAD(line + i));
}

static void NAME(interleave)(const float *const *from, int64_t at, int64_t lines, int64_t count,
                        float *out) {
    for (int64_t line = 0; line < lines;)
        line += JOIN(interleave_some, f32, SUFFIX)(lines - line, from + line, at, count, lines,
                                                   out + line);
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

/* The larger of levels and the scaled magnitudes of LANES rows.  Scales are 1 or more: nothing but
 * zeros has level 0. */
static inline __attribute__((always_inline)) VEC NAME(raise)(const VEC *rows, const float *scales,
                                                             VEC levels) {
    NAME(bits) largest = (NAME(bits))levels;
#pragma GCC unroll 16
    for (int k = 0; k < LANES; k++)
        largest = NAME(larger)(largest, (NAME(bits))(rows[k] * scales[k]) & INT32_C(0x7fffffff));
    return (VEC)largest;
}

/* The first `some` elements of a row: whole vectors are read up to `end`, where there is one. */
static VEC NAME(load_some)(const float *row, int64_t some, const char *end) {
    float elements[LANES] = {0};
    if (!end || (uintptr_t)(row + LANES) <= (uintptr_t)end) return LOAD(row);
    memcpy(elements, row, (size_t)some * sizeof *row);
    return LOAD(elements);
}

static void NAME(gather)(const float *const *from, const float *scales, int64_t count,
                         const char *end, int64_t at, int64_t dilation, int64_t pitch,
                         float *levels, float *to) {
    int64_t residue = at % dilation;
    to += at / dilation * LANES;
    VEC in[LANES], out[LANES];
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++) in[k] = LOAD(from[k] + i);
        STORE(levels + i, NAME(raise)(in, scales, LOAD(levels + i)));
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
    const VEC before = NAME(load_some)(levels + i, count - i, (const char *)(levels + count));
    const VEC level = NAME(raise)(in, scales, before);
    for (int64_t k = 0; i + k < count; k++) levels[i + k] = level[k];
    JOIN(transpose, f32, SUFFIX)(in, out);
    for (int64_t k = 0; i + k < count; k++) {
        STORE(to + residue * pitch * LANES, out[k]);
        if (++residue < dilation) continue;
        residue = 0;
        to += LANES;
    }
}

static inline __attribute__((always_inline)) void NAME(tile_width)(
    const int64_t width, const float *from, int64_t groups, int64_t channels, int64_t position,
    float *panel, int64_t step) {
    panel += position / width * step;
    int64_t within = position % width;
    for (; groups > 0; groups--) {
        VEC in[LANES], out[LANES];
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++, from += LANES) in[k] = LOAD(from);
        JOIN(transpose, f32, SUFFIX)(in, out);
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

static void NAME(tile_vectors)(const float *from, int64_t groups, int64_t channels,
                               int64_t position, int64_t width, float *panel, int64_t step) {
    if (width == LANES)
        NAME(tile_width)(LANES, from, groups, channels, position, panel, step);
    else
        NAME(tile_width)(PANEL_COLUMNS * LANES, from, groups, channels, position, panel, step);
}

static const struct transforms NAME(transforms) = {
    .input_transform = NAME(input_transform),
    .output_transform = NAME(output_transform),
    .gather = NAME(gather),
    .tile_vectors = NAME(tile_vectors),
    .tile_line = NAME(tile_line),
    .interleave = NAME(interleave),
};

#undef VEC
#undef LOOSE
#undef LOAD
#undef STORE
#undef LANES
#undef NAME
