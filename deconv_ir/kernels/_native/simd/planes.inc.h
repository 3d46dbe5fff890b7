/* Sampling of planes for one instruction set; included after simd/functions.inc.h. */

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
    for (int64_t t = 0, at = x; t < taps; t++, at += SAMPLED_POSITIONS)
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

const sampling_function JOIN(function, sampling, SUFFIX) = NAME(sample_plane);
