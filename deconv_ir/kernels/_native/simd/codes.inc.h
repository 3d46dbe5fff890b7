/* Products with codes of four bits for one instruction set; included after simd/functions.inc.h.
 *
 * Vectors run along the terms of a sum: the values of a column's codes fill one or two registers, in
 * which an instruction looks up the values of as many codes as there are lanes. */
#define SUMMED_CODES 512 /* terms after which the lanes of a sum are added */
#define CLOSE_BYTES (16 << 10) /* rows that stay in the first-level cache with the codes */

#if defined(__AVX512F__) && LANES == 16
#define VALUES VF
INLINE VF NAME(values_of)(const struct coded_matrix *m, float zero, float scale) {
    const VF values = (LOAD(m->base) - zero) * scale;
    if (!m->halves) return values;
    return (VF)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)values, _MM_FROUND_TO_NEAREST_INT));
}
INLINE VI NAME(codes_at)(const uint8_t *codes) {
    return (VI)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)codes));
}
INLINE VF NAME(looked_up)(VF values, VI codes) {
    return (VF)_mm512_permutexvar_ps((__m512i)codes, (__m512)values);
}
INLINE float NAME(sum_lanes)(VF x) { return _mm512_reduce_add_ps((__m512)x); }
#else
#if defined(__AVX2__) && LANES == 8
typedef struct {
    VF low, high;
} NAME(values);
INLINE VF NAME(value_of)(const struct coded_matrix *m, int first, float zero, float scale) {
    const VF values = (LOAD(m->base + first) - zero) * scale;
    if (!m->halves) return values;
    return (VF)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)values, _MM_FROUND_TO_NEAREST_INT));
}
INLINE NAME(values) NAME(values_of)(const struct coded_matrix *m, float zero, float scale) {
    return (NAME(values)){NAME(value_of)(m, 0, zero, scale), NAME(value_of)(m, 8, zero, scale)};
}
INLINE VI NAME(codes_at)(const uint8_t *codes) {
    return (VI)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)codes));
}
INLINE VF NAME(looked_up)(NAME(values) values, VI codes) {
    const __m256 low = _mm256_permutevar8x32_ps((__m256)values.low, (__m256i)codes);
    const __m256 high = _mm256_permutevar8x32_ps((__m256)values.high, (__m256i)codes);
    return (VF)_mm256_blendv_ps(low, high, (__m256)(codes << 28));
}
#else
typedef struct {
    float of[CODES];
} NAME(values);
INLINE NAME(values) NAME(values_of)(const struct coded_matrix *m, float zero, float scale) {
    NAME(values) values;
    uint16_t halves[CODES];
    for (int i = 0; i < CODES; i++) values.of[i] = (m->base[i] - zero) * scale;
    if (m->halves) {
        float_to_half_row(values.of, CODES, halves);
        half_to_float_row(halves, CODES, values.of);
    }
    return values;
}
INLINE VI NAME(codes_at)(const uint8_t *codes) {
    VI result;
    for (int i = 0; i < LANES; i++) result[i] = codes[i];
    return result;
}
INLINE VF NAME(looked_up)(NAME(values) values, VI codes) {
    VF result;
    for (int i = 0; i < LANES; i++) result[i] = values.of[codes[i] & (CODES - 1)];
    return result;
}
#endif
#define VALUES NAME(values)
INLINE float NAME(sum_lanes)(VF x) {
    float lane[LANES];
    memcpy(lane, &x, sizeof lane);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}
#endif

/* A scale or zero of f16 or f32. */
INLINE float NAME(factor_at)(const void *factors, int are_halves, int64_t at) {
    if (!factors) return 0;
    if (!are_halves) return ((const float *)factors)[at];
#ifdef __F16C__
    return _cvtsh_ss(((const uint16_t *)factors)[at]);
#else
    return half_to_float(((const uint16_t *)factors)[at]);
#endif
}

INLINE VALUES NAME(values_at)(const struct coded_matrix *m, int64_t at) {
    return NAME(values_of)(m, NAME(factor_at)(m->zeros, m->half_zeros, at),
                           NAME(factor_at)(m->scales, m->half_scales, at));
}

/* Add the sums of terms from `begin` to `end` to `out`, or begin with them. */
INLINE void NAME(sum_codes)(const int rows, const int columns, const struct coded_matrix *m,
                            const float *row, int64_t column, int64_t begin, int64_t end,
                            float *out, int64_t step) {
    VF sum[rows][columns];
    VALUES values[columns];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) sum[r][c] = (VF){0};
    const int64_t groups = m->k / m->group;
    const uint8_t *codes = m->codes + (column * m->k + begin) / 2;
    const float *terms = row + begin * rows;
    /* One loop, so that the sums stay in registers. */
    for (int64_t k = begin, next = begin; k < end; k += 2 * LANES, codes += LANES) {
        if (k == next) {
            const int64_t group = k / m->group, at = column * groups + group;
            next = (group + 1) * m->group;
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                values[c] = NAME(values_at)(m, at + c * groups);
        }
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) {
            const VI code = NAME(codes_at)(codes + c * (m->k / 2));
            const VF even = NAME(looked_up)(values[c], code);
            const VF odd = NAME(looked_up)(values[c], code >> 4);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                sum[r][c] += even * LOAD(terms + r * 2 * LANES);
                sum[r][c] += odd * LOAD(terms + r * 2 * LANES + LANES);
            }
        }
        terms += rows * 2 * LANES;
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float *to = out + r * step + column + c;
            const float all = NAME(sum_lanes)(sum[r][c]);
            *to = begin == 0 ? all : *to + all;
        }
}

#if REGISTERS == 32
#define CODED_SHAPES SHAPED(16, 1) SHAPED(8, 2) SHAPED(4, 4) SHAPED(2, 4) SHAPED(1, 4)
#else
#define CODED_SHAPES SHAPED(4, 2) SHAPED(2, 2) SHAPED(1, 4)
#endif

/* Interleave rows, and place the terms of even codes, the lower halves of bytes, before those of odd
 * ones: [k / 2 / lanes][row][even or odd][lane]. */
INLINE void NAME(interleave_terms)(const int rows, int64_t k, const float *row, float *out) {
    for (int64_t i = 0; i < k; i += 2 * LANES)
        for (int r = 0; r < rows; r++, out += 2 * LANES)
            for (int j = 0; j < LANES; j++) {
                out[j] = row[r * k + i + 2 * j];
                out[LANES + j] = row[r * k + i + 2 * j + 1];
            }
}

static void NAME(pack_coded_rows)(const float *row, int64_t count, int64_t k, float *out) {
#define SHAPED(ROWS, COLUMNS)                                                        \
    for (; count >= ROWS; count -= ROWS, row += ROWS * k, out += ROWS * k)           \
        NAME(interleave_terms)(ROWS, k, row, out);
    CODED_SHAPES
#undef SHAPED
}

/* The sums of some terms of all rows, by the largest kernels that fit. */
static void NAME(sum_rows_of_codes)(const struct coded_matrix *m, const float *row, int64_t count,
                                    int64_t first, int64_t last, int64_t begin, int64_t end,
                                    float *out, int64_t step) {
#define SHAPED(ROWS, COLUMNS)                                                                 \
    for (; count >= ROWS; count -= ROWS, row += ROWS * m->k, out += ROWS * step) {            \
        int64_t n = first;                                                                    \
        for (; n + COLUMNS <= last; n += COLUMNS)                                             \
            NAME(sum_codes)(ROWS, COLUMNS, m, row, n, begin, end, out, step);                 \
        for (; n < last; n++) NAME(sum_codes)(ROWS, 1, m, row, n, begin, end, out, step);     \
    }
    CODED_SHAPES
#undef SHAPED
}

static void NAME(unpack_codes)(const struct coded_matrix *m, int64_t column, int64_t begin,
                               int64_t end, float *out) {
    const int64_t groups = m->k / m->group;
    const uint8_t *codes = m->codes + (column * m->k + begin) / 2;
    for (int64_t k = begin; k < end;) {
        const int64_t group = k / m->group, next = least(end, (group + 1) * m->group);
        const VALUES values = NAME(values_at)(m, column * groups + group);
        for (; k < next; k += 2 * LANES, codes += LANES, out += 2 * LANES) {
            const VI code = NAME(codes_at)(codes);
            STORE(out, NAME(looked_up)(values, code));
            STORE(out + LANES, NAME(looked_up)(values, code >> 4));
        }
    }
}

#undef VALUES

static void NAME(multiply_coded)(const struct coded_matrix *m, const float *rows, int64_t count,
                                 int64_t first, int64_t last, const float *bias, float *out,
                                 int64_t step) {
    /* Few rows stay in cache, so that the codes of a column can be read to their end. */
    const int close = count * m->k * (int64_t)sizeof *rows <= CLOSE_BYTES;
    const int64_t at_once = close ? 16 : last - first;
    for (int64_t n = first; n < last; n += at_once)
        for (int64_t k = 0; k < m->k; k += SUMMED_CODES)
            NAME(sum_rows_of_codes)(m, rows, count, n, least(last, n + at_once), k,
                                    least(m->k, k + SUMMED_CODES), out, step);
    for (int64_t r = 0; bias && r < count; r++)
        for (int64_t n = first; n < last; n++) out[r * step + n] += bias[n];
}

const struct coded_functions JOIN(functions, coded, SUFFIX) = {
    NAME(pack_coded_rows), NAME(multiply_coded), NAME(unpack_codes), LANES};
