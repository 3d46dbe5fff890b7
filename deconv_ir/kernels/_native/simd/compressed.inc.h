/* Compressed matrices, unpacked by one instruction set; included after simd/functions.inc.h. */
#if defined(__AVX512F__) && LANES == 16
typedef VF NAME(sixteen);
INLINE NAME(sixteen) NAME(sixteen_at)(const float *table) { return LOAD(table); }
INLINE VF NAME(look_up)(NAME(sixteen) table, VI codes) {
    return (VF)_mm512_permutexvar_ps((__m512i)codes, (__m512)table);
}
INLINE VF NAME(gather)(const float *table, VI codes) {
    return (VF)_mm512_i32gather_ps((__m512i)codes, table, 4);
}
INLINE VI NAME(bytes_at)(const uint8_t *from) {
    return (VI)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from));
}
INLINE VI NAME(words_at)(const uint8_t *from) {
    return (VI)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from));
}
INLINE VF NAME(halves_at)(const uint8_t *from) {
    return (VF)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
}
INLINE VF NAME(numbers_of)(VI integers) { return (VF)_mm512_cvtepi32_ps((__m512i)integers); }
INLINE VF NAME(as_halves)(VF x) {
    return (VF)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__) && LANES == 8
typedef struct {
    VF low, high;
} NAME(sixteen);
INLINE NAME(sixteen) NAME(sixteen_at)(const float *table) {
    return (NAME(sixteen)){LOAD(table), LOAD(table + 8)};
}
INLINE VF NAME(look_up)(NAME(sixteen) table, VI codes) {
    const __m256 low = _mm256_permutevar8x32_ps((__m256)table.low, (__m256i)codes);
    const __m256 high = _mm256_permutevar8x32_ps((__m256)table.high, (__m256i)codes);
    return (VF)_mm256_blendv_ps(low, high, (__m256)(codes << 28));
}
INLINE VF NAME(gather)(const float *table, VI codes) {
    return (VF)_mm256_i32gather_ps(table, (__m256i)codes, 4);
}
INLINE VI NAME(bytes_at)(const uint8_t *from) {
    return (VI)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from));
}
INLINE VI NAME(words_at)(const uint8_t *from) {
    return (VI)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from));
}
INLINE VF NAME(halves_at)(const uint8_t *from) {
    return (VF)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}
INLINE VF NAME(numbers_of)(VI integers) { return (VF)_mm256_cvtepi32_ps((__m256i)integers); }
INLINE VF NAME(as_halves)(VF x) {
    return (VF)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
typedef const float *NAME(sixteen);
INLINE NAME(sixteen) NAME(sixteen_at)(const float *table) { return table; }
INLINE VF NAME(gather)(const float *table, VI codes) {
    VF result;
    for (int i = 0; i < LANES; i++) result[i] = table[codes[i]];
    return result;
}
INLINE VF NAME(look_up)(NAME(sixteen) table, VI codes) {
    return NAME(gather)(table, codes & (CODES - 1));
}
INLINE VI NAME(bytes_at)(const uint8_t *from) {
    VI result;
    for (int i = 0; i < LANES; i++) result[i] = from[i];
    return result;
}
INLINE VI NAME(words_at)(const uint8_t *from) {
    VI result;
    uint16_t words[LANES];
    memcpy(words, from, sizeof words);
    for (int i = 0; i < LANES; i++) result[i] = words[i];
    return result;
}
INLINE VF NAME(halves_at)(const uint8_t *from) {
    VF result;
    uint16_t halves[LANES];
    memcpy(halves, from, sizeof halves);
    half_to_float_row(halves, LANES, (float *)&result);
    return result;
}
INLINE VF NAME(numbers_of)(VI integers) {
    VF result;
    for (int i = 0; i < LANES; i++) result[i] = (float)integers[i];
    return result;
}
INLINE VF NAME(as_halves)(VF x) {
    uint16_t halves[LANES];
    float_to_half_row((const float *)&x, LANES, halves);
    half_to_float_row(halves, LANES, (float *)&x);
    return x;
}
#endif

/* The numbers of codes that are not of four bits. */
INLINE VF NAME(numbers_at)(const int form, const struct compressed_matrix *m, const uint8_t *from) {
    if (form == COMPRESSED_U8) return NAME(numbers_of)(NAME(bytes_at)(from));
    if (form == COMPRESSED_I8) return NAME(numbers_of)(NAME(bytes_at)(from) << 24 >> 24);
    if (form == COMPRESSED_TABLE) return NAME(gather)(m->table, NAME(bytes_at)(from));
    if (form == COMPRESSED_F16) return NAME(halves_at)(from);
    return (VF)(NAME(words_at)(from) << 16);
}

/* Scales or zeros of a vector. */
INLINE VF NAME(scales_at)(const void *scales, int are_halves, int64_t at, float otherwise) {
    if (!scales) return ALL(otherwise);
    if (are_halves) return NAME(halves_at)((const uint8_t *)scales + at * 2);
    return LOAD((const float *)scales + at);
}

INLINE VF NAME(scaled)(const int halves, VF number, VF zero, VF scale) {
    const VF result = (number - zero) * scale;
    return halves ? NAME(as_halves)(result) : result;
}

/* Unpack a vector of columns; `scaled`, `halves` as in the matrix. */
INLINE void NAME(unpack_vector)(const int form, const int scaled, const int halves,
                                const struct compressed_matrix *m, int64_t column, int64_t begin,
                                int64_t end, float *out, int64_t step) {
    const int64_t width = m->width, strip = column / width, within = column % width;
    const int64_t groups = m->k / m->group;
    const int bytes = form == COMPRESSED_F16 || form == COMPRESSED_BF16 ? 2 : 1;
    const int terms = form == COMPRESSED_4 ? 2 : 1;
    const NAME(sixteen) table = NAME(sixteen_at)(m->table);
    const uint8_t *from =
        m->codes + ((strip * divide_up(m->k, terms) + begin / terms) * width + within) * bytes;
    for (int64_t k = begin; k < end;) {
        const int64_t group = k / m->group, next = least(end, (group + 1) * m->group);
        const int64_t at = (strip * groups + group) * width + within;
        const VF zero = NAME(scales_at)(m->zeros, m->half_zeros, at, 0);
        const VF scale = NAME(scales_at)(m->scales, m->half_scales, at, 1);
        for (; k < next; k += terms, from += width * bytes, out += terms * step) {
            if (form == COMPRESSED_4) {
                const VI codes = NAME(bytes_at)(from);
                const VF even = NAME(look_up)(table, codes), odd = NAME(look_up)(table, codes >> 4);
                STORE(out, NAME(scaled)(halves, even, zero, scale));
                if (k + 1 < next) STORE(out + step, NAME(scaled)(halves, odd, zero, scale));
            } else {
                const VF number = NAME(numbers_at)(form, m, from);
                STORE(out, scaled ? NAME(scaled)(halves, number, zero, scale) : number);
            }
        }
    }
}

static void NAME(unpack)(const struct compressed_matrix *m, int64_t column, int64_t vectors,
                         int64_t begin, int64_t end, float *out, int64_t step) {
    const int scaled = m->scales || m->zeros || m->halves;
    for (int64_t v = 0; v < vectors; v++, column += LANES, out += LANES) {
#define UNPACK(FORM)                                                                              \
    case FORM:                                                                                    \
        if (m->halves) NAME(unpack_vector)(FORM, 1, 1, m, column, begin, end, out, step);         \
        else if (scaled) NAME(unpack_vector)(FORM, 1, 0, m, column, begin, end, out, step);       \
        else NAME(unpack_vector)(FORM, 0, 0, m, column, begin, end, out, step);                   \
        break;
        switch (m->form) {
            UNPACK(COMPRESSED_4)
            UNPACK(COMPRESSED_U8)
            UNPACK(COMPRESSED_I8)
            UNPACK(COMPRESSED_TABLE)
            UNPACK(COMPRESSED_F16)
            UNPACK(COMPRESSED_BF16)
        default: break;
        }
#undef UNPACK
    }
}

#if defined(__AVX512F__) && LANES == 2 * MAX_ROWS
/* Two terms of MAX_ROWS columns are a vector. */
INLINE VI NAME(pair_at)(const uint8_t *from) {
    int64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (VI)_mm512_cvtepu8_epi32(_mm_set_epi64x(bytes >> 4, bytes)); /* look_up() ignores upper bits */
}

INLINE void NAME(unpack_pairs_as)(const int halves, const struct compressed_matrix *m, int64_t pairs,
                                  const uint8_t *from, VF zero, VF scale, float *out) {
    const NAME(sixteen) table = NAME(sixteen_at)(m->table);
    for (int64_t i = 0; i < pairs; i++, from += MAX_ROWS, out += LANES)
        STORE(out, NAME(scaled)(halves, NAME(look_up)(table, NAME(pair_at)(from)), zero, scale));
}

static void NAME(unpack_pairs)(const struct compressed_matrix *m, int64_t begin, int64_t end, float *out) {
    const float *scales = m->scales, *zeros = m->zeros;
    const uint8_t *from = m->codes + begin / 2 * MAX_ROWS;
    const int64_t pairs = divide_up(end - begin, 2);
    float scale[LANES], zero[LANES];
    for (int i = 0; i < LANES; i++) {
        scale[i] = scales ? scales[i % MAX_ROWS] : 1;
        zero[i] = zeros ? zeros[i % MAX_ROWS] : 0;
    }
    if (m->halves) NAME(unpack_pairs_as)(1, m, pairs, from, LOAD(zero), LOAD(scale), out);
    else NAME(unpack_pairs_as)(0, m, pairs, from, LOAD(zero), LOAD(scale), out);
}
#define UNPACK_PAIRS NAME(unpack_pairs)
#else
#define UNPACK_PAIRS NULL
#endif

const struct compressed_functions JOIN(functions, compressed, SUFFIX) = {NAME(unpack), UNPACK_PAIRS};
#undef UNPACK_PAIRS
