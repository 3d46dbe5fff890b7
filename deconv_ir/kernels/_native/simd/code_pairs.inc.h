/* Sums and products of two codes: see struct code_pair.  Included by simd/quantized.inc.h. */
/* The sums or products of one byte of each code, both numbers in f64, rounded to f32. */
static inline __attribute__((always_inline)) NAME(vec) NAME(combined)(
    const struct code_pair *s, NAME(ints) first, NAME(ints) second, int byte) {
    const NAME(ints) a = first >> (8 * byte) & 255, b = second >> (8 * byte) & 255;
    NAME(wide) one = __builtin_convertvector(a, NAME(wide)) * s->step[0];
    NAME(wide) other = __builtin_convertvector(b, NAME(wide)) * s->step[1];
    one += s->low[0];
    other += s->low[1];
    const NAME(vec) x = __builtin_convertvector(one, NAME(vec));
    const NAME(vec) y = __builtin_convertvector(other, NAME(vec));
    return s->multiplies ? x * y : x + y;
}

/* Not inlined: numbers are broadcast from memory. */
static __attribute__((noinline)) void NAME(combine_bytes)(const struct code_pair *s,
                                                          const uint32_t *first,
                                                          const uint32_t *second, int byte,
                                                          uint32_t *out) {
    const NAME(ints) a = *(const NAME(loose_ints) *)(const void *)first;
    const NAME(ints) b = *(const NAME(loose_ints) *)(const void *)second;
    const NAME(vec) least = s->codes.least - (NAME(vec)){0}, most = s->codes.most - (NAME(vec)){0};
    const NAME(vec) v = NAME(bent)(NAME(combined)(s, a, b, byte), s->slope);
    const NAME(ints) codes = NAME(codes)(&s->codes, NAME(limited)(v, least, most));
    *(NAME(loose_ints) *)(void *)out |= (NAME(ints))((NAME(uints))codes << (8 * byte));
}

static void NAME(combine_exactly)(const struct code_pair *s, const uint32_t *first,
                                  const uint32_t *second, uint32_t *out) {
    memset(out, 0, LANES * sizeof *out);
    for (int c = 0; c < 4; c++) NAME(combine_bytes)(s, first, second, c, out);
}

static void NAME(combine_numbers)(const struct code_pair *s, const uint32_t *first,
                                  const uint32_t *second, int byte, int64_t count, float *out) {
    if (count < LANES) {
        uint32_t codes[2][LANES] = {{0}};
        float found[LANES];
        memcpy(codes[0], first, (size_t)count * sizeof *first);
        memcpy(codes[1], second, (size_t)count * sizeof *second);
        NAME(combine_numbers)(s, codes[0], codes[1], byte, LANES, found);
        memcpy(out, found, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t at = 0; at < count; at += LANES) {
        /* The last vector overlaps the one before. */
        const int64_t i = least(at, count - LANES);
        const NAME(ints) a = *(const NAME(loose_ints) *)(const void *)(first + i);
        const NAME(ints) b =
            *(const NAME(loose_ints) *)(const void *)(second + i * s->second_step);
        *(NAME(loose) *)(out + i) = NAME(combined)(s, a, b, byte);
    }
}

/* The greatest magnitude of results and of their terms. */
static double NAME(greatest_of)(const struct code_pair *s) {
    double greatest[2];
    for (int i = 0; i < 2; i++) greatest[i] = fabs(s->low[i]) + 255 * fabs(s->step[i]);
    return s->multiplies ? 3 * greatest[0] * greatest[1] : greatest[0] + greatest[1];
}

/* Whether the range is that of a byte, and levels have 32 bits. */
static int NAME(is_within)(const struct code_pair *s) {
    const struct quantizer *q = &s->codes;
    const double number = NAME(greatest_of)(s) * fmax(1, fabsf(s->slope));
    return fabs((q->least - q->low) * q->factor) < 0.25 &&
           fabs((q->most - q->low) * q->factor - 255) < 0.25 &&
           are_truncated(q->ends + number * q->factor);
}

/* As requantize_vectors().  In parts of steps of the levels, a sum is a * one + b * other + offset, and a product
 * (a * one + begin) * (b * other + offset). */
static inline __attribute__((always_inline)) void NAME(combine_vectors)(
    const int multiplies, const int has_slope, const int is_within, const struct code_pair *s,
    const uint32_t *first, const uint32_t *second, int64_t count, uint32_t *out) {
    const struct quantizer *q = &s->codes;
    const double both = NAME(greatest_of)(s);
    const double margin = margin_of(ERROR_32(q->ends, both * q->factor));
    const uint16_t rest = least_rest(margin);
    const double steps = q->factor * (double)LEVEL_PARTS, rounding = (double)LEVEL_PARTS / 2 + margin;
    const double zero_level = rounding - q->low * steps, moved = has_slope ? 0 : zero_level;
    const float one = (float)(s->step[0] * steps);
    const float other = (float)(multiplies ? s->step[1] : s->step[1] * steps);
    const float begin = (float)(s->low[0] * steps);
    const float offset =
        (float)(multiplies ? s->low[1] : (s->low[0] + s->low[1]) * steps + moved);
    const float zero = (float)moved;
    const NAME(vec) least = (float)((q->least - q->low) * steps + rounding) - (NAME(vec)){0};
    const NAME(vec) most = (float)((q->most - q->low) * steps + rounding) - (NAME(vec)){0};
    for (int64_t i = 0; i < count; i += LANES) {
        const uint32_t *beside = second + i * s->second_step;
        const NAME(ints) given[2] = {*(const NAME(loose_ints) *)(const void *)(first + i),
                                     *(const NAME(loose_ints) *)(const void *)beside};
        NAME(ints) levels[4];
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            const NAME(ints) a = given[0] >> (8 * c) & 255, b = given[1] >> (8 * c) & 255;
            const NAME(vec) x = __builtin_convertvector(a, NAME(vec)) * one;
            const NAME(vec) y = __builtin_convertvector(b, NAME(vec)) * other;
            NAME(vec) level =
                multiplies ? (x + begin) * (y + offset) + zero : x + offset + y;
            if (has_slope)
                level = NAME(smaller)(level, (NAME(vec)){0}) * s->slope +
                        (NAME(greater)(level, (NAME(vec)){0}) + (float)zero_level);
            if (!is_within) level = NAME(limited)(level, least, most);
            levels[c] = __builtin_convertvector(level, NAME(ints));
        }
        int are_known;
        *(NAME(loose_ints) *)(void *)(out + i) = NAME(nearest_codes)(levels, rest, &are_known);
        if (!are_known) NAME(combine_exactly)(s, first + i, beside, out + i);
    }
}

static void NAME(combine_some)(const struct code_pair *s, const uint32_t *first,
                               const uint32_t *second, int64_t count, uint32_t *out) {
    const int multiplies = s->multiplies, has_slope = s->slope != 1;
#define COMBINE(MULTIPLIES, HAS_SLOPE, IS_WITHIN) \
    NAME(combine_vectors)(MULTIPLIES, HAS_SLOPE, IS_WITHIN, s, first, second, count, out)
    if (!NAME(is_within)(s)) COMBINE(multiplies, has_slope, 0);
    else if (multiplies && has_slope) COMBINE(1, 1, 1);
    else if (multiplies) COMBINE(1, 0, 1);
    else if (has_slope) COMBINE(0, 1, 1);
    else COMBINE(0, 0, 1);
#undef COMBINE
}

static void NAME(combine)(const struct code_pair *s, const uint32_t *first,
                          const uint32_t *second, int64_t count, uint32_t *out) {
    const int64_t whole = count / LANES * LANES, rest = count - whole;
    NAME(combine_some)(s, first, second, whole, out);
    if (!rest) return;
    uint32_t last[2][LANES] = {{0}}, codes[LANES];
    memcpy(last[0], first + whole, (size_t)rest * sizeof *out);
    memcpy(last[1], second + whole * s->second_step, (size_t)rest * sizeof *out);
    NAME(combine_some)(s, last[0], last[1], LANES, codes);
    memcpy(out + whole, codes, (size_t)rest * sizeof *out);
}
