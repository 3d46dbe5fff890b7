/* Interpolation of rows for one instruction set; included after simd/functions.inc.h. */

/* Loads the elements of a vector of outputs at one tap. */
INLINE VF NAME(picked)(const float *row, int64_t first, const int32_t *lanes) {
#if defined(__AVX512F__) && LANES == 16
    if (first >= 0)
        return (VF)_mm512_permutexvar_ps(_mm512_loadu_si512(lanes), (__m512)LOAD(row + first));
#elif defined(__AVX2__) && LANES == 8
    if (first >= 0)
        return (VF)_mm256_permutevar8x32_ps((__m256)LOAD(row + first),
                                            _mm256_loadu_si256((const void *)lanes));
#endif
    VF result;
    row += most(first, 0);
    for (int i = 0; i < LANES; i++) result[i] = row[lanes[i]];
    return result;
}

static void NAME(weigh_rows)(const struct taps *rows, int64_t y, int64_t width,
                             const float *plane, float *sums) {
    const int64_t outputs = rows->outputs;
    for (int64_t x = 0; x < width; x += LANES) {
        VF sum = {0};
        for (int64_t t = 0; t < rows->count; t++) {
            const float *row = plane + rows->index[t * outputs + y] * width + x;
            VF values = {0};
            if (x + LANES <= width) values = LOAD(row);
            else memcpy(&values, row, (size_t)(width - x) * sizeof *row);
            sum += values * ALL(rows->weight[t * outputs + y]);
        }
        STORE(sums + x, sum);
    }
}

#define EACH_VECTOR(value)                                                          \
    do {                                                                            \
        const int64_t *first = c->first;                                            \
        const int32_t *lanes = c->lanes;                                            \
        for (int64_t x = 0; x < c->outputs; x += LANES) {                           \
            const VF all = value;                                                   \
            if (c->outputs >= LANES) STORE(out + least(x, c->outputs - LANES), all); \
            else memcpy(out, &all, (size_t)c->outputs * sizeof *out);               \
            first += c->count, lanes += c->count * LANES;                           \
        }                                                                           \
    } while (0)

INLINE VF NAME(weighed)(const float *row, int64_t count, const int64_t *first,
                        const int32_t *lanes, const float *weight) {
    VF sum = {0};
    for (int64_t t = 0; t < count; t++)
        sum += NAME(picked)(row, first[t], lanes + t * LANES) * LOAD(weight + t * LANES);
    return sum;
}

static void NAME(weigh_columns)(const struct vector_taps *c, const float *row, float *out) {
    if (c->count == 2)
        EACH_VECTOR(NAME(weighed)(row, 2, first, lanes, c->weight + (lanes - c->lanes)));
    else EACH_VECTOR(NAME(weighed)(row, c->count, first, lanes, c->weight + (lanes - c->lanes)));
}

static void NAME(pick_columns)(const struct vector_taps *c, const float *row, float *out) {
    EACH_VECTOR(NAME(picked)(row, *first, lanes));
}

const struct resample_functions JOIN(functions, resample, SUFFIX) = {
    LANES, NAME(weigh_rows), NAME(weigh_columns), NAME(pick_columns)};

#undef EACH_VECTOR
