/* Pooling of rows for one instruction set; included after simd/functions.inc.h. */
#if LANES == 4
#define EVEN_LANES(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#elif LANES == 8
#define EVEN_LANES(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#else
#define EVEN_LANES(a, b) \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#endif

INLINE VF NAME(sum_of)(VF a, VF b) { return a + b; }

/* Loads one tap of LANES windows from `line` on. */
INLINE VF NAME(windows_at)(const float *line, int64_t stride) {
    if (stride == 1) return LOAD(line);
    if (stride == 2) return EVEN_LANES(LOAD(line), LOAD(line + LANES));
    VF result;
    for (int i = 0; i < LANES; i++) result[i] = line[i * stride];
    return result;
}

#define POOLING(pooled, combine)                                                              \
    INLINE void NAME(slide_##pooled##_by)(const int64_t stride, const float *line,            \
                                        int64_t taps, int64_t dilation, int64_t count,        \
                                        float *out) {                                         \
        for (int64_t i = 0; i < count; i += LANES) {                                          \
            VF all = NAME(windows_at)(line + i * stride, stride);                             \
            for (int64_t t = 1; t < taps; t++)                                                \
                all = NAME(combine)(all,                                                      \
                                    NAME(windows_at)(line + i * stride + t * dilation, stride)); \
            if (i + LANES <= count) STORE(out + i, all);                                      \
            else memcpy(out + i, &all, (size_t)(count - i) * sizeof *out);                    \
        }                                                                                     \
    }                                                                                         \
    static void NAME(slide_##pooled)(const float *line, int64_t stride, int64_t taps,         \
                                   int64_t dilation, int64_t count, float *out) {             \
        if (stride == 1) NAME(slide_##pooled##_by)(1, line, taps, dilation, count, out);      \
        else if (stride == 2) NAME(slide_##pooled##_by)(2, line, taps, dilation, count, out); \
        else NAME(slide_##pooled##_by)(stride, line, taps, dilation, count, out);             \
    }                                                                                         \
    static void NAME(combine_##pooled)(const float *row, int64_t count, int first,            \
                                     float *sums) {                                           \
        int64_t i = 0;                                                                        \
        if (first) memcpy(sums, row, (size_t)count * sizeof *row);                            \
        else {                                                                                \
            for (; i + LANES <= count; i += LANES)                                            \
                STORE(sums + i, NAME(combine)(LOAD(sums + i), LOAD(row + i)));                \
            for (; i < count; i++)                                                            \
                sums[i] = NAME(combine)(ALL(sums[i]), ALL(row[i]))[0];                        \
        }                                                                                     \
    }
POOLING(max, larger)
POOLING(sum, sum_of)

const struct pooling_functions JOIN(functions, pooling, SUFFIX)[POOLINGS] = {
    [POOLED_MAX] = {LANES, NAME(combine_max), NAME(slide_max)},
    [POOLED_SUM] = {LANES, NAME(combine_sum), NAME(slide_sum)},
};

#undef POOLING
#undef EVEN_LANES
