/* Sampling of planes for one instruction set; included after simd/functions.inc.h. */
#include "interface.h"


/* A product that is rounded before it is used further: a compiler cannot look into `asm`. */
INLINE VF NAME(rounded)(VF product) {
#if defined(__AVX512F__) && LANES == 16
    __asm__("" : "+v"(product));
#elif (defined(__AVX__) && LANES == 8) || (defined(__SSE2__) && LANES == 4)
    __asm__("" : "+x"(product));
#else
    __asm__("" : "+m"(product));
#endif
    return product;
}

INLINE VF NAME(floored)(VF x) {
    const VF whole = NAME(nearest)(x);
    return PICK(whole > x, whole - 1.0f, whole);
}

INLINE VF NAME(reflected)(const struct sampled_axis *a, VF index) {
    const float edge = a->align ? 0.0f : 0.5f, end = (float)(a->extent - 1) + 2 * edge;
    const VF moved = index + edge;
    if (!NAME(any)(~((moved >= 0.0f) & (moved <= end)))) return moved - edge;
    for (int i = 0; i < LANES; i++) index[i] = reflected_index(index[i], a->extent, a->align);
    return index;
}

/* Indices of the elements of a tap; NaN selects the first one. */
INLINE VI NAME(elements)(const struct sampled_axis *a, VF index) {
    const VF end = ALL((float)a->extent), last = end - 1.0f, none = {0};
    if (a->beyond == REFLECTION && a->mode == BICUBIC) index = NAME(reflected)(a, index);
    const VF above = WHERE(index > none, index);
    const VI element = __builtin_convertvector(PICK(above < last, above, last), VI);
    const VI inside = (index >= none) & (index < end);
    return a->beyond == ZEROS ? element | ~inside : element;
}

/* Four neighbours, weighted by the cubic convolution kernel with a = -0.75. */
INLINE void NAME(weigh_cubic)(VF t, int64_t x, float weight[][TAP_STEP]) {
    const float a = -0.75f;
    STORE(weight[0] + x, a * ((t - 1.0f) * (t - 1.0f)) * t);
    STORE(weight[1] + x, ((a + 2) * t - (a + 3)) * t * t + 1.0f);
    STORE(weight[2] + x, (((-a - 2) * t + (2 * a + 3)) * t - a) * t);
    STORE(weight[3] + x, -a * t * t * (t - 1.0f));
}

INLINE void NAME(take_mode)(const struct sampled_axis *axis, const int mode,
                            const float *position, int64_t count, struct axis_taps *taps) {
    /* A copy, which no store can change. */
    const struct sampled_axis copy = *axis, *a = &copy;
    const float span = (float)(a->align ? a->extent - 1 : a->extent);
    const float shift = a->align ? 0.0f : 1.0f;
    for (int64_t x = 0; x < count; x += LANES) {
        VF index = (NAME(rounded)((LOAD(position + x) + 1.0f) * span) - shift) * 0.5f;
        if (a->beyond == REFLECTION && mode != BICUBIC) index = NAME(reflected)(a, index);
        if (mode == NEAREST) {
            STORE(taps->index[0] + x, (VF)NAME(elements)(a, NAME(nearest)(index)));
            continue;
        }
        const VF first = NAME(floored)(index), rest = index - first;
        if (mode == BILINEAR) {
            STORE(taps->weight[0] + x, 1.0f - rest);
            STORE(taps->weight[1] + x, rest);
        } else {
            NAME(weigh_cubic)(rest, x, taps->weight);
        }
        for (int i = 0; i < (mode == BILINEAR ? 2 : 4); i++) {
            const float offset = (float)(mode == BILINEAR ? i : i - 1);
            STORE(taps->index[i] + x, (VF)NAME(elements)(a, first + offset));
        }
    }
}

static void NAME(take_axis)(const struct sampled_axis *a, const float *position, int64_t count,
                            struct axis_taps *taps) {
    if (a->mode == NEAREST) NAME(take_mode)(a, NEAREST, position, count, taps);
    else if (a->mode == BILINEAR) NAME(take_mode)(a, BILINEAR, position, count, taps);
    else NAME(take_mode)(a, BICUBIC, position, count, taps);
}

static void NAME(combine)(const struct axis_taps *rows, const struct axis_taps *columns,
                          int64_t along, int64_t width, int64_t count, struct samples *samples) {
    for (int64_t r = 0, to = 0; r < along; r++)
        for (int64_t c = 0; c < along; c++, to += TAP_STEP)
            for (int64_t x = 0; x < count; x += LANES) {
                const VI row = (VI)LOAD(rows->index[r] + x);
                const VI column = (VI)LOAD(columns->index[c] + x);
                const VI inside = ~((row | column) >> 31);
                STORE(samples->mask + to + x, (VF)inside);
                STORE(samples->index + to + x, (VF)((row * (int32_t)width + column) & inside));
                if (samples->weighs)
                    STORE(samples->weight + to + x,
                          LOAD(rows->weight[r] + x) * LOAD(columns->weight[c] + x));
            }
}

INLINE VF NAME(gathered)(const float *plane, const int32_t *index) {
#if defined(__AVX512F__) && LANES == 16
    return (VF)_mm512_i32gather_ps(_mm512_loadu_si512(index), plane, 4);
#elif defined(__AVX2__) && LANES == 8
    return (VF)_mm256_i32gather_ps(plane, _mm256_loadu_si256((const void *)index), 4);
#else
    VF result;
    for (int i = 0; i < LANES; i++) result[i] = plane[index[i]];
    return result;
#endif
}

INLINE VF NAME(sampled)(const struct samples *s, const float *plane, int64_t at) {
    const VI inside = (VI)LOAD(s->mask + at);
    return WHERE(inside, NAME(gathered)(plane, s->index + at));
}

INLINE VF NAME(sum_samples)(const struct samples *s, const int64_t taps, const float *plane,
                            int64_t x) {
    VF sum = {0};
    for (int64_t t = 0, at = x; t < taps; t++, at += TAP_STEP)
        sum += NAME(sampled)(s, plane, at) * LOAD(s->weight + at);
    return sum;
}

static void NAME(sample_plane)(const struct samples *s, const float *plane, int64_t count,
                               float *out) {
    for (int64_t x = 0; x < count; x += LANES) {
        const VF all = !s->weighs     ? NAME(sampled)(s, plane, x)
                       : s->taps == 4 ? NAME(sum_samples)(s, 4, plane, x)
                                      : NAME(sum_samples)(s, s->taps, plane, x);
        if (x + LANES <= count) STORE(out + x, all);
        else memcpy(out + x, &all, (size_t)(count - x) * sizeof *out);
    }
}

const struct sampling_functions JOIN(functions, sampling, SUFFIX) = {
    NAME(take_axis), NAME(combine), NAME(sample_plane)};
