/* The transforms of one instruction set, for f32 and for pairs of 16 bits: included by
 * simd/instruction_set.inc.h. */

#define VEC JOIN(vec, f32, SUFFIX)
#define LOOSE JOIN(loose, f32, SUFFIX)
#define LOAD(p) ((VEC)*(const LOOSE *)(p))
#define STORE(p, v) (*(LOOSE *)(p) = (v))
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, wino, SUFFIX)

typedef int32_t NAME(bits) __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint32_t NAME(bits_of_sums) __attribute__((vector_size(LANES * sizeof(uint32_t))));
typedef int16_t NAME(shorts) __attribute__((vector_size(LANES * sizeof(int32_t))));

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

/* The larger of levels and the scaled magnitudes of LANES rows.  Scales are 1 or more: only zeros
 * have level 0. */
static inline __attribute__((always_inline)) VEC NAME(raise)(const VEC *rows, const float *scales,
                                                             VEC levels) {
    NAME(bits) largest = (NAME(bits))levels;
#pragma GCC unroll 16
    for (int k = 0; k < LANES; k++)
        largest = NAME(larger)(largest, (NAME(bits))(rows[k] * scales[k]) & INT32_C(0x7fffffff));
    return (VEC)largest;
}

/* Loads the first `some` elements of a row: whole vectors are read up to `end`, unless it is
 * NULL. */
static VEC NAME(load_some)(const float *row, int64_t some, const char *end) {
    float elements[LANES] = {0};
    if (!end || (uintptr_t)(row + LANES) <= (uintptr_t)end) return LOAD(row);
    memcpy(elements, row, (size_t)some * sizeof *row);
    return LOAD(elements);
}

#define POINTS(x) JOIN(x, winof32, SUFFIX)
#define DATA VEC
#define SUMS VEC
#define FINISH(sum) ((sum) + last)
#define RAISE(rows, levels) NAME(raise)(rows, scales, levels)
#include "simd/points.inc.h"

/* Pairs of channels in 16 bits: neither data nor weights at the points exceed them. Sums wrap around; results, times a
 * power of two, do not. */
#define POINTS(x) JOIN(x, winopairs, SUFFIX)
#define DATA NAME(shorts)
#define SUMS NAME(bits_of_sums)
#define FINISH(sum) ((NAME(bits))((sum) * divisor.inverse) >> divisor.shift)
#include "simd/points.inc.h"

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
    else if (width == PANEL_COLUMNS * LANES)
        NAME(tile_width)(PANEL_COLUMNS * LANES, from, groups, channels, position, panel, step);
    else
        NAME(tile_width)(WIDEST_PANEL * LANES, from, groups, channels, position, panel, step);
}

/* Weights are transformed in double, for the rows of a block, or fewer. */
typedef float NAME(floats) __attribute__((vector_size(MAX_ROWS * sizeof(float))));
typedef double NAME(doubles) __attribute__((vector_size(MAX_ROWS * sizeof(double))));
typedef int64_t NAME(row_bits) __attribute__((vector_size(MAX_ROWS * sizeof(int64_t))));
#define WIDE NAME(doubles)
#define INLINE static inline __attribute__((always_inline))

#define VALUES(x) NAME(x)
#include "simd/values.inc.h"
#undef VALUES

/* Channels that are buffered before their values are stored: points are whole pages apart. */
#define WAITING 16

/* Loads the weights of a tap and a channel for some rows, widened. */
INLINE WIDE NAME(load_rows)(const struct wino_source *rows, const int count, int tap,
                            int64_t channel) {
    WIDE some = {0};
#pragma GCC unroll 8
    for (int row = 0; row < count; row++)
        some[row] = rows[row].from[tap * rows[row].step + channel * rows[row].channel_step];
    return some;
}

/* The same for contiguous rows; without an instruction for all, by elements: GCC widens a whole vector in halves. */
INLINE WIDE NAME(load_together)(const float *p) {
#ifdef __AVX512F__
    return (WIDE)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#else
    return (WIDE){p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
#endif
}

/* The same for rows in two runs: q is the address of the second, less the length of the first. */
INLINE WIDE NAME(load_runs)(const float *p, const float *q, NAME(row_bits) is_first) {
    const NAME(row_bits) first = (NAME(row_bits))NAME(load_together)(p);
    const NAME(row_bits) second = (NAME(row_bits))NAME(load_together)(q);
    return (WIDE)((is_first & first) | (~is_first & second));
}

/* Channels ahead whose weights, of all taps, are prefetched. */
#define CHANNELS_AHEAD 6

/* Computes the values of NAME(values)() for planes of 3 x 3 taps and a block of `count` rows in up
 * to two contiguous runs, with all sizes constant. */
INLINE void NAME(weights_of_planes)(const int *at, const struct wino_source *rows, const int count,
                                    int together, int64_t channels, float *const *to) {
    float waiting[4 * 4][WAITING * ROWS];
    const int64_t step = rows->step, channel_step = rows->channel_step;
    const struct wino_source *rest = rows + (together < count ? together : 0);
    NAME(row_bits) is_first;
    for (int row = 0; row < MAX_ROWS; row++) is_first[row] = row < together ? -1 : 0;
    for (int64_t first = 0; first < channels; first += WAITING) {
        const int64_t some = least(WAITING, channels - first);
        for (int64_t i = 0; i < some; i++) {
            const float *from = rows->from + (first + i) * channel_step;
            const float *other = rest->from + (first + i) * rest->channel_step - (rest - rows);
            WIDE taps[3], columns[3][4], values[4];
            for (int64_t line = 0; line < 3 * 3 * ROWS; line += CACHE_LINE / (int64_t)sizeof(float))
                __builtin_prefetch(from + CHANNELS_AHEAD * channel_step + line);
#pragma GCC unroll 3
            for (int x = 0; x < 3; x++) {
#pragma GCC unroll 3
                for (int y = 0; y < 3; y++)
                    taps[y] = together == count
                                  ? NAME(load_together)(from + at[y * 3 + x] * step)
                                  : NAME(load_runs)(from + at[y * 3 + x] * step,
                                                    other + at[y * 3 + x] * rest->step, is_first);
                NAME(values_of_axis)(F_2_3, taps, columns[x], 1);
            }
#pragma GCC unroll 4
            for (int y = 0; y < 4; y++) {
#pragma GCC unroll 3
                for (int x = 0; x < 3; x++) taps[x] = columns[x][y];
                NAME(values_of_axis)(F_2_3, taps, values, 1);
#pragma GCC unroll 4
                for (int x = 0; x < 4; x++) {
                    const NAME(floats) rounded =
                        __builtin_convertvector(values[x], NAME(floats));
                    memcpy(waiting[y * 4 + x] + i * count, &rounded, (size_t)count * sizeof(float));
                }
            }
        }
        for (int point = 0; point < 4 * 4; point++)
            memcpy(to[point] + first * count, waiting[point],
                   (size_t)(some * count) * sizeof(float));
    }
}

static void NAME(weights)(const struct wino_taps *taps, const struct wino_source *rows, int count,
                          int are_channels, int64_t channels, float *const *to,
                          const int64_t *step) {
    static const enum wino_size plane[AXES] = {F_1_1, F_2_3, F_2_3};
    const int all = taps->count[0] * taps->count[1] * taps->count[2];
    int points = 1, together = 1, runs = 1;
    for (int a = 0; a < AXES; a++) points *= wino_points(taps->size[a]);
    for (int row = 1; row < count; row++) {
        const int follows = rows[row].from == rows[row - 1].from + 1 &&
                            rows[row].step == rows[row - 1].step;
        runs += !follows;
        together += runs == 1;
    }
    /* Blocks have the maximum number of rows, or one less. */
    if (!are_channels && count >= ROWS - 1 && runs <= 2 && all == 3 * 3 &&
        !memcmp(taps->size, plane, sizeof plane)) {
        if (together == ROWS)
            NAME(weights_of_planes)(taps->at, rows, ROWS, ROWS, channels, to);
        else if (count == ROWS)
            NAME(weights_of_planes)(taps->at, rows, ROWS, together, channels, to);
        else if (together == ROWS - 1)
            NAME(weights_of_planes)(taps->at, rows, ROWS - 1, ROWS - 1, channels, to);
        else
            NAME(weights_of_planes)(taps->at, rows, ROWS - 1, together, channels, to);
        return;
    }
    for (int64_t channel = 0; channel < channels; channel++) {
        WIDE values[MOST_VALUES];
        for (int tap = 0; tap < all; tap++)
            values[tap] = NAME(load_rows)(rows, count, taps->at[tap], channel);
        NAME(values)(taps->size, taps->count, taps->first, values);
        for (int point = 0; point < points; point++) {
            if (!to[point]) continue;
            const NAME(floats) rounded = __builtin_convertvector(values[point], NAME(floats));
            const int64_t apart = are_channels ? step[point] : 1;
            float *out = to[point] + channel * step[point];
            for (int row = 0; row < count; row++) out[row * apart] = ((const float *)&rounded)[row];
        }
    }
}

/* Loads the first or second codes of pairs, as load_rows(). */
INLINE WIDE NAME(load_codes)(const struct wino_source *rows, const int count, int tap,
                             int64_t channel, int second) {
    WIDE some = {0};
    for (int row = 0; row < count; row++) {
        int16_t pair[2];
        memcpy(pair, rows[row].from + tap * rows[row].step + channel * rows[row].channel_step,
               sizeof pair);
        some[row] = pair[second];
    }
    return some;
}

/* The weights of NAME(weights)(), times 2 for each axis whose values have halves: integers, of 16 bits if the weights
 * have 8. */
static void NAME(weights_of_pairs)(const struct wino_taps *taps, const struct wino_source *rows,
                                   int count, int are_channels, int64_t channels,
                                   float *const *to, const int64_t *step) {
    const int all = taps->count[0] * taps->count[1] * taps->count[2];
    int points = 1;
    for (int a = 0; a < AXES; a++) points *= wino_points(taps->size[a]);
    const double scale = 1 << wino_divisor_of(taps->size).halves;
    for (int64_t channel = 0; channel < channels; channel++) {
        WIDE values[2][MOST_VALUES];
        for (int second = 0; second < 2; second++) {
            for (int tap = 0; tap < all; tap++)
                values[second][tap] =
                    NAME(load_codes)(rows, count, taps->at[tap], channel, second);
            NAME(values)(taps->size, taps->count, taps->first, values[second]);
        }
        for (int point = 0; point < points; point++) {
            if (!to[point]) continue;
            const int64_t apart = are_channels ? step[point] : 1;
            float *out = to[point] + channel * step[point];
            for (int row = 0; row < count; row++) {
                const int16_t pair[2] = {(int16_t)(int32_t)(values[0][point][row] * scale),
                                         (int16_t)(int32_t)(values[1][point][row] * scale)};
                memcpy(out + row * apart, pair, sizeof pair);
            }
        }
    }
}

/* Weights that are transformed in each run: in f32. */
#undef WIDE
#define WIDE NAME(floats)
#define VALUES(x) JOIN(x, narrow, SUFFIX)
#include "simd/values.inc.h"

INLINE WIDE NAME(load_narrow)(const float *p) {
    WIDE some;
    memcpy(&some, p, sizeof some);
    return some;
}

/* Computes the values of weights_of_block() for planes of taps, with all sizes constant. */
INLINE void NAME(planes_of_block)(const enum wino_size size_y, const enum wino_size size_x, const struct wino_taps *t,
                                  const float *from, int64_t rows, int64_t channels, int64_t step,
                                  float *const *to, int64_t to_step) {
    const int ys = size_y == F_2_3 ? 3 : 2, xs = size_x == F_2_3 ? 3 : 2;
    const int points_y = wino_points(size_y), points_x = wino_points(size_x);
    for (int64_t channel = 0; channel < channels; channel++, from += step) {
        WIDE taps[3], columns[3][4], values[4];
#pragma GCC unroll 3
        for (int x = 0; x < xs; x++) {
#pragma GCC unroll 3
            for (int y = 0; y < ys; y++) taps[y] = NAME(load_narrow)(from + t->at[y * xs + x] * rows);
            VALUES(values_of_axis)(size_y, taps, columns[x], 1);
        }
#pragma GCC unroll 4
        for (int y = 0; y < points_y; y++) {
#pragma GCC unroll 3
            for (int x = 0; x < xs; x++) taps[x] = columns[x][y];
            VALUES(values_of_axis)(size_x, taps, values, 1);
#pragma GCC unroll 4
            for (int x = 0; x < points_x; x++)
                memcpy(to[y * points_x + x] + channel * to_step, &values[x], sizeof values[x]);
        }
    }
}

static void NAME(weights_of_block)(const struct wino_taps *t, const float *from, int64_t rows, int64_t channels,
                                   int64_t step, float *const *to, int64_t to_step) {
    const int all = t->count[0] * t->count[1] * t->count[2];
    const int y = t->size[1], x = t->size[2];
#define PLANES(SIZE_Y, SIZE_X)                                                                                \
    if (t->size[0] == F_1_1 && y == SIZE_Y && x == SIZE_X && t->count[1] == (SIZE_Y == F_2_3 ? 3 : 2) &&        \
        t->count[2] == (SIZE_X == F_2_3 ? 3 : 2)) {                                                            \
        NAME(planes_of_block)(SIZE_Y, SIZE_X, t, from, rows, channels, step, to, to_step);                     \
        return;                                                                                                \
    }
    PLANES(F_2_3, F_2_3)
    PLANES(F_2_2, F_2_2)
    PLANES(F_3_2, F_3_2)
    PLANES(F_2_2, F_3_2)
    PLANES(F_3_2, F_2_2)
#undef PLANES
    int points = 1;
    for (int a = 0; a < AXES; a++) points *= wino_points(t->size[a]);
    for (int64_t channel = 0; points == 1 && channel < channels; channel++)
        memcpy(to[0] + channel * to_step, from + t->at[0] * rows + channel * step, MAX_ROWS * sizeof *from);
    for (int64_t channel = 0; points > 1 && channel < channels; channel++, from += step) {
        WIDE values[MOST_VALUES];
        for (int tap = 0; tap < all; tap++) values[tap] = NAME(load_narrow)(from + t->at[tap] * rows);
        VALUES(values)(t->size, t->count, t->first, values);
        for (int point = 0; point < points; point++)
            if (to[point]) memcpy(to[point] + channel * to_step, &values[point], sizeof values[point]);
    }
}
#undef VALUES

#define LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
static void NAME(interleave_rows)(const float *from, int64_t subs, int64_t step, int64_t channels, float *const *to) {
    _Static_assert(MAX_ROWS == 8, "rows of a vector");
    for (int64_t i = 0; i < channels; i++, from += MAX_ROWS) {
        WIDE s[MOST_ALTERNATING], out[MOST_ALTERNATING];
        for (int64_t sub = 0; sub < subs; sub++) s[sub] = NAME(load_narrow)(from + sub * step);
        if (subs == 2) {
            out[0] = LOW(s[0], s[1]);
            out[1] = HIGH(s[0], s[1]);
        } else {
            const WIDE low[2] = {LOW(s[0], s[2]), LOW(s[1], s[3])}, high[2] = {HIGH(s[0], s[2]), HIGH(s[1], s[3])};
            out[0] = LOW(low[0], low[1]);
            out[1] = HIGH(low[0], low[1]);
            out[2] = LOW(high[0], high[1]);
            out[3] = HIGH(high[0], high[1]);
        }
        for (int64_t sub = 0; sub < subs; sub++) memcpy(to[sub] + i * MAX_ROWS, &out[sub], sizeof out[sub]);
    }
}
#undef LOW
#undef HIGH

static float NAME(largest)(const float *values, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    float value;
    memcpy(&value, &largest, sizeof value);
    return value;
}

INLINE void NAME(raise_rows)(const float *from, int64_t taps, const int64_t rows,
                             float *restrict to) {
    for (int64_t i = 0; i < taps; i++, from += rows)
        for (int64_t row = 0; row < rows; row++)
            to[row] = fabsf(from[row]) > to[row] ? fabsf(from[row]) : to[row];
}

static void NAME(raise_taps)(const float *from, int64_t taps, int64_t rows, float *to) {
    if (rows == ROWS) NAME(raise_rows)(from, taps, ROWS, to);
    else NAME(raise_rows)(from, taps, rows, to);
}

INLINE void NAME(add_rows)(const float *from, int64_t taps, const int64_t rows, float factor,
                           float *restrict to, int64_t step) {
    for (int64_t i = 0; i < taps; i++, from += rows, to += step)
        for (int64_t row = 0; row < rows; row++) to[row] += fabsf(from[row]) * factor;
}

static void NAME(add_taps)(const float *from, int64_t taps, int64_t rows, float factor, float *to,
                           int64_t step) {
    if (rows == ROWS) NAME(add_rows)(from, taps, ROWS, factor, to, step);
    else NAME(add_rows)(from, taps, rows, factor, to, step);
}
#undef CHANNELS_AHEAD
#undef WAITING
#undef WIDE
#undef INLINE

static const struct transforms NAME(transforms) = {
    .input_transform = JOIN(input_transform, winof32, SUFFIX),
    .output_transform = JOIN(output_transform, winof32, SUFFIX),
    .gather = JOIN(gather, winof32, SUFFIX),
    .tile_vectors = NAME(tile_vectors),
    .tile_line = NAME(tile_line),
    .interleave = NAME(interleave),
    .weights = NAME(weights),
    .weights_of_block = NAME(weights_of_block),
    .interleave_rows = NAME(interleave_rows),
    .largest = NAME(largest),
    .raise_taps = NAME(raise_taps),
    .add_taps = NAME(add_taps),
};

static const struct transforms NAME(transforms_of_pairs) = {
    .input_transform = JOIN(input_transform, winopairs, SUFFIX),
    .output_transform = JOIN(output_transform, winopairs, SUFFIX),
    .gather = JOIN(gather, winopairs, SUFFIX),
    .tile_vectors = NAME(tile_vectors),
    .tile_line = NAME(tile_line),
    .interleave = NAME(interleave),
    .weights = NAME(weights_of_pairs),
};

#undef VEC
#undef LOOSE
#undef LOAD
#undef STORE
#undef LANES
#undef NAME
