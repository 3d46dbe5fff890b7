/* Vectors of codes, computed in f64: see simd/quantized.h. */
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, quantized, SUFFIX)
typedef float NAME(vec) __attribute__((vector_size(LANES * 4)));
typedef float NAME(loose) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef double NAME(wide) __attribute__((vector_size(LANES * 8)));
typedef double NAME(loose_wide) __attribute__((vector_size(LANES * 8), aligned(8), may_alias));
typedef int32_t NAME(ints) __attribute__((vector_size(LANES * 4)));
typedef uint32_t NAME(uints) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(loose_ints) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Adding and subtracting these rounds to the nearest integer, ties to even. */
#define ROUNDING 0x1.8p52
#define ROUNDING_32 0x1.8p23f

/* The range; NaN gets the lower end. */
static inline __attribute__((always_inline)) NAME(vec) NAME(limited)(NAME(vec) v, NAME(vec) least,
                                                                     NAME(vec) most) {
#if defined(__AVX512F__) && LANES == 16
    return (NAME(vec))_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)least), (__m512)most);
#elif defined(__AVX__) && LANES == 8
    return (NAME(vec))_mm256_min_ps(_mm256_max_ps((__m256)v, (__m256)least), (__m256)most);
#else
    const NAME(ints) above = v > least;
    v = (NAME(vec))(((NAME(ints))v & above) | ((NAME(ints))least & ~above));
    const NAME(ints) over = v > most;
    return (NAME(vec))(((NAME(ints))v & ~over) | ((NAME(ints))most & over));
#endif
}

static inline __attribute__((always_inline)) NAME(vec) NAME(greater)(NAME(vec) a, NAME(vec) b) {
#if defined(__AVX512F__) && LANES == 16
    return (NAME(vec))_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__) && LANES == 8
    return (NAME(vec))_mm256_max_ps((__m256)a, (__m256)b);
#else
    const NAME(ints) above = a > b;
    return (NAME(vec))(((NAME(ints))a & above) | ((NAME(ints))b & ~above));
#endif
}

static inline __attribute__((always_inline)) NAME(vec) NAME(smaller)(NAME(vec) a, NAME(vec) b) {
    return -NAME(greater)(-a, -b);
}

/* Store fewer lanes than a vector has. */
static inline __attribute__((always_inline)) void NAME(store_few)(NAME(vec) v, int64_t count,
                                                                  void *out) {
#if defined(__AVX512F__) && LANES == 16
    _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), (__m512)v);
#else
    memcpy(out, &v, (size_t)count * 4);
#endif
}

/* The codes of numbers within the range. */
static inline __attribute__((always_inline)) NAME(ints) NAME(codes)(const struct quantizer *q,
                                                                    NAME(vec) v) {
    NAME(wide) wide = __builtin_convertvector(v, NAME(wide));
    wide = (wide - q->low) * q->factor + ROUNDING - ROUNDING;
    return __builtin_convertvector(wide, NAME(ints));
}

static inline __attribute__((always_inline)) int NAME(has_any)(NAME(ints) mask) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__) && LANES == 8
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    int found = 0;
    for (int i = 0; i < LANES; i++) found |= mask[i];
    return found != 0;
#endif
}

typedef uint8_t NAME(all_bytes) __attribute__((vector_size(LANES * 4)));
typedef int16_t NAME(shorts) __attribute__((vector_size(LANES * 4)));
typedef uint16_t NAME(halves) __attribute__((vector_size(LANES * 4)));

/* The upper halves of two vectors, and the lower halves. */
static inline __attribute__((always_inline)) NAME(ints) NAME(upper_halves)(NAME(ints) a, NAME(ints) b) {
#if defined(__AVX2__) && LANES == 8
    return (NAME(ints))_mm256_blend_epi16(_mm256_srli_epi32((__m256i)a, 16), (__m256i)b, 0xaa);
#else
    return (NAME(ints))((NAME(uints))a >> 16 | ((NAME(uints))b & 0xffff0000));
#endif
}

static inline __attribute__((always_inline)) NAME(ints) NAME(lower_halves)(NAME(ints) a, NAME(ints) b) {
#if defined(__AVX2__) && LANES == 8
    return (NAME(ints))_mm256_blend_epi16((__m256i)a, _mm256_slli_epi32((__m256i)b, 16), 0xaa);
#else
    return (NAME(ints))((NAME(uints))b << 16 | ((NAME(uints))a & 0xffff));
#endif
}

/* Numbers of 16 bits, limited to 0 and 255, as bytes: the first two of an element are its bytes 0 and 2. */
static inline __attribute__((always_inline)) NAME(ints) NAME(as_bytes)(NAME(ints) even, NAME(ints) odd) {
#define ORDER 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15
#if defined(__AVX512F__) && LANES == 16
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(ORDER));
    return (NAME(ints))_mm512_shuffle_epi8(_mm512_packus_epi16((__m512i)even, (__m512i)odd), order);
#elif defined(__AVX2__) && LANES == 8
    const __m256i order = _mm256_setr_epi8(ORDER, ORDER);
    return (NAME(ints))_mm256_shuffle_epi8(_mm256_packus_epi16((__m256i)even, (__m256i)odd), order);
#else
    NAME(shorts) a = (NAME(shorts))even, b = (NAME(shorts))odd;
    a = (a | (a > 255)) & ~(a < 0) & 255;
    b = (b | (b > 255)) & ~(b < 0) & 255;
    return (NAME(ints))((NAME(uints))a | (NAME(uints))b << 8);
#endif
#undef ORDER
}

/* The codes of four channels from levels in LEVEL_PARTS, if `are_known`: no level has a rest of at most `rest`. */
static inline __attribute__((always_inline)) NAME(ints) NAME(nearest_codes)(const NAME(ints) *level,
                                                                            uint16_t rest,
                                                                            int *are_known) {
    const NAME(ints) even = NAME(lower_halves)(level[0], level[2]);
    const NAME(ints) odd = NAME(lower_halves)(level[1], level[3]);
    const NAME(halves) least = rest - (NAME(halves)){0};
    *are_known = !NAME(has_any)((NAME(ints))((NAME(halves))even <= least) |
                                (NAME(ints))((NAME(halves))odd <= least));
    return NAME(as_bytes)(NAME(upper_halves)(level[0], level[2]),
                          NAME(upper_halves)(level[1], level[3]));
}

/* In f32; vectors with a number near the middle of two levels are computed again, in f64. */
static inline __attribute__((always_inline)) void NAME(quantize_vectors)(
    const int channels, const struct quantizer *q, const float *rows, int64_t step, int64_t count,
    uint32_t *out) {
    NAME(vec) least[4], most[4], factor[4], begin[4];
    uint16_t rest = 0;
#pragma GCC unroll 4
    for (int c = 0; c < channels; c++) {
        const double margin = margin_of(q[c].tie < 0 ? 1 : ERROR_32(q[c].ends, 0));
        const double first = 0.5 - q[c].low * q[c].factor;
        least[c] = q[c].least - (NAME(vec)){0};
        most[c] = q[c].most - (NAME(vec)){0};
        factor[c] = (float)(q[c].factor * (double)LEVEL_PARTS) - (NAME(vec)){0};
        begin[c] = (float)(first * (double)LEVEL_PARTS + margin) - (NAME(vec)){0};
        rest = least_rest(margin) > rest ? least_rest(margin) : rest;
    }
    for (int64_t i = 0; i < count; i += LANES) {
        NAME(ints) level[4];
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            level[c] = (int32_t)(LEVEL_PARTS / 2) - (NAME(ints)){0};
            if (c >= channels) continue;
            const NAME(vec) v = NAME(limited)(
                (NAME(vec))*(const NAME(loose) *)(rows + c * step + i), least[c], most[c]);
            level[c] = __builtin_convertvector(v * factor[c] + begin[c], NAME(ints));
        }
        int are_known;
        NAME(ints) codes = NAME(nearest_codes)(level, rest, &are_known);
        if (!are_known) {
            codes = (NAME(ints)){0};
            for (int c = 0; c < channels; c++) {
                const NAME(vec) v = (NAME(vec))*(const NAME(loose) *)(rows + c * step + i);
                codes |= NAME(codes)(q + c, NAME(limited)(v, least[c], most[c])) << (8 * c);
            }
        }
        *(NAME(loose_ints) *)(void *)(out + i) = codes;
    }
}

static void NAME(quantize_some)(const struct quantizer *q, const float *rows, int64_t step,
                                int64_t channels, int64_t count, uint32_t *out) {
    if (channels == 4) NAME(quantize_vectors)(4, q, rows, step, count, out);
    else if (channels == 3) NAME(quantize_vectors)(3, q, rows, step, count, out);
    else if (channels == 2) NAME(quantize_vectors)(2, q, rows, step, count, out);
    else NAME(quantize_vectors)(1, q, rows, step, count, out);
}

static void NAME(quantize)(const struct quantizer *q, const float *rows, int64_t step,
                           int64_t channels, int64_t count, uint32_t *out) {
    const int64_t whole = count / LANES * LANES, rest = count - whole;
    NAME(quantize_some)(q, rows, step, channels, whole, out);
    if (!rest) return;
    float last[4 * LANES] = {0};
    uint32_t codes[LANES];
    for (int64_t c = 0; c < channels; c++)
        memcpy(last + c * LANES, rows + c * step + whole, (size_t)rest * sizeof *last);
    NAME(quantize_some)(q, last, LANES, channels, LANES, codes);
    memcpy(out + whole, codes, (size_t)rest * sizeof *out);
}

typedef uint8_t NAME(bytes) __attribute__((vector_size(LANES)));

/* The lowest bytes of all lanes. */
static inline __attribute__((always_inline)) NAME(bytes) NAME(lowest_bytes)(NAME(uints) v) {
#if LANES == 4
    return __builtin_shufflevector((NAME(all_bytes))v, (NAME(all_bytes))v, 0, 4, 8, 12);
#elif LANES == 8
    return __builtin_shufflevector((NAME(all_bytes))v, (NAME(all_bytes))v, 0, 4, 8, 12, 16, 20, 24,
                                   28);
#elif defined(__AVX512F__)
    return (NAME(bytes))_mm512_cvtepi32_epi8((__m512i)v);
#else
    return __builtin_shufflevector((NAME(all_bytes))v, (NAME(all_bytes))v, 0, 4, 8, 12, 16, 20, 24,
                                   28, 32, 36, 40, 44, 48, 52, 56, 60);
#endif
}

/* The lowest byte of a level that is added to this is its code + 128, modulo 256. */
#define ROUNDING_BYTE (ROUNDING_32 + 128)
#define BITS_OF_ROUNDING_BYTE (0x4b400000 + 128)

/* As quantize_vectors(), of neighbours.  Returns the sums of BITS_OF_ROUNDING_BYTE and the codes. */
static inline __attribute__((always_inline)) NAME(uints) NAME(row_vectors)(
    const int vectors, const struct quantizer *q, const float *row, int8_t *out) {
    const NAME(vec) least = q->least - (NAME(vec)){0}, most = q->most - (NAME(vec)){0};
    const NAME(vec) factor = (float)q->factor - (NAME(vec)){0};
    const NAME(vec) begin = (float)-(q->low * q->factor) - (NAME(vec)){0};
    const NAME(ints) tie = (NAME(ints))(q->tie - (NAME(vec)){0});
    NAME(uints) bits[4], sum = {0};
    NAME(ints) ties = {0};
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) {
        const NAME(vec) v = NAME(limited)((NAME(vec))*(const NAME(loose) *)(row + i * LANES), least,
                                          most);
        const NAME(vec) level = v * factor + begin, shifted = level + ROUNDING_BYTE;
        const NAME(vec) rest = level - (shifted - ROUNDING_BYTE);
        ties |= ((NAME(ints))rest & 0x7fffffff) > tie;
        bits[i] = (NAME(uints))shifted;
    }
    const int exactly = NAME(has_any)(ties);
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) {
        if (exactly) {
            const NAME(vec) v = (NAME(vec))*(const NAME(loose) *)(row + i * LANES);
            bits[i] = (NAME(uints))NAME(codes)(q, NAME(limited)(v, least, most)) +
                      BITS_OF_ROUNDING_BYTE;
        }
        sum += bits[i];
        const NAME(bytes) bytes = NAME(lowest_bytes)(bits[i]);
        memcpy(out + i * LANES, &bytes, LANES);
    }
    return sum;
}

static int32_t NAME(quantize_row)(const struct quantizer *q, const float *row, int64_t count,
                                  int8_t *out) {
    NAME(uints) sum = {0};
    int64_t i = 0;
    int32_t all = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) sum += NAME(row_vectors)(4, q, row + i, out + i);
    for (; i + LANES <= count; i += LANES) sum += NAME(row_vectors)(1, q, row + i, out + i);
    uint32_t whole = 0 - (BITS_OF_ROUNDING_BYTE + 128) * (uint32_t)i;
    for (int j = 0; j < LANES; j++) whole += sum[j];
    if (i < count) {
        float last[LANES] = {0};
        int8_t codes[LANES];
        memcpy(last, row + i, (size_t)(count - i) * sizeof *last);
        NAME(row_vectors)(1, q, last, codes);
        memcpy(out + i, codes, (size_t)(count - i));
        for (int64_t j = 0; j < count - i; j++) all += codes[j];
    }
    return (int32_t)whole + all;
}

/* Vectors of bytes whose sums in lanes of 16 bits do not overflow: 2 * 255 * 128 < 65536. */
#define SUMMED_BYTES 128

static int32_t NAME(sum_row)(const int8_t *row, int64_t count) {
    typedef uint32_t loose __attribute__((vector_size(LANES * 4), aligned(1), may_alias));
    const int64_t bytes = LANES * 4, whole = count / bytes;
    int64_t all = -128 * whole * bytes;
    for (int64_t i = 0; i < whole;) {
        const int64_t end = least(whole, i + SUMMED_BYTES);
        NAME(halves) sums = {0};
        for (; i < end; i++) {
            const NAME(uints) v = (NAME(uints))*(const loose *)(const void *)(row + i * bytes) ^ 0x80808080;
            sums += (NAME(halves))(v & 0x00ff00ff) + ((NAME(halves))v >> 8);
        }
        const NAME(uints) wide = ((NAME(uints))sums & 0xffff) + ((NAME(uints))sums >> 16);
        for (int j = 0; j < LANES; j++) all += wide[j];
    }
    for (int64_t i = whole * bytes; i < count; i++) all += row[i];
    return (int32_t)all;
}

/* The first and the last two bytes of each element, extended to 16 bits. */
static inline __attribute__((always_inline)) void NAME(extend_vector)(NAME(uints) v, NAME(uints) *first,
                                                                      NAME(uints) *last) {
#define FIRST 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1
#define LAST 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1
#if defined(__AVX512F__) && LANES == 16
    const __m512i ones = _mm512_broadcast_i32x4(_mm_setr_epi8(FIRST));
    const __m512i others = _mm512_broadcast_i32x4(_mm_setr_epi8(LAST));
    *first = (NAME(uints))_mm512_shuffle_epi8((__m512i)v, ones);
    *last = (NAME(uints))_mm512_shuffle_epi8((__m512i)v, others);
#elif defined(__AVX2__) && LANES == 8
    *first = (NAME(uints))_mm256_shuffle_epi8((__m256i)v, _mm256_setr_epi8(FIRST, FIRST));
    *last = (NAME(uints))_mm256_shuffle_epi8((__m256i)v, _mm256_setr_epi8(LAST, LAST));
#else
    *first = (v & 0xff) | (v & 0xff00) << 8;
    *last = (v >> 16 & 0xff) | (v >> 8 & 0xff0000);
#endif
#undef FIRST
#undef LAST
}

static void NAME(extend)(int is_signed, const uint32_t *in, int64_t count, uint32_t *first,
                         uint32_t *last) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        NAME(uints) one, other;
        NAME(extend_vector)((NAME(uints))*(const NAME(loose_ints) *)(const void *)(in + i), &one,
                            &other);
        if (is_signed) {
            one = (NAME(uints))((NAME(shorts))(one << 8) >> 8);
            other = (NAME(uints))((NAME(shorts))(other << 8) >> 8);
        }
        *(NAME(loose_ints) *)(void *)(first + i) = (NAME(ints))one;
        *(NAME(loose_ints) *)(void *)(last + i) = (NAME(ints))other;
    }
    if (i == count) return;
    uint32_t rest[LANES] = {0}, ones[LANES], others[LANES];
    memcpy(rest, in + i, (size_t)(count - i) * sizeof *in);
    NAME(extend)(is_signed, rest, LANES, ones, others);
    memcpy(first + i, ones, (size_t)(count - i) * sizeof *first);
    memcpy(last + i, others, (size_t)(count - i) * sizeof *last);
}

/* What becomes of the sums of a vector of columns. */
struct NAME(columns) {
    NAME(uints) base, factor;
    NAME(wide) scale, offset, row_scale;
};

static inline __attribute__((always_inline)) struct NAME(columns) NAME(columns_at)(
    const struct column_dequantizer *d, int64_t i) {
    return (struct NAME(columns)){
        (NAME(uints))*(const NAME(loose_ints) *)(d->bases + i),
        (NAME(uints))*(const NAME(loose_ints) *)(d->factors + i),
        (NAME(wide))*(const NAME(loose_wide) *)(d->scales + i),
        (NAME(wide))*(const NAME(loose_wide) *)(d->offsets + i),
        (NAME(wide))*(const NAME(loose_wide) *)(d->row_scales + i),
    };
}

static inline __attribute__((always_inline)) NAME(ints) NAME(sum_in)(const struct NAME(columns) *c,
                                                                     int32_t row_sum,
                                                                     const uint32_t *sums) {
    const NAME(uints) sum = (NAME(uints))*(const NAME(loose_ints) *)(const void *)sums;
    return (NAME(ints))(sum + (c->base - c->factor * (uint32_t)row_sum));
}

static inline __attribute__((always_inline)) NAME(vec) NAME(number_in)(const struct NAME(columns) *c,
                                                                       int32_t row_sum,
                                                                       NAME(ints) sum) {
    const NAME(wide) value = __builtin_convertvector(sum, NAME(wide)) * c->scale +
                             (c->offset + (double)row_sum * c->row_scale);
    return __builtin_convertvector(value, NAME(vec));
}

static void NAME(dequantize_columns)(const struct column_dequantizer *d, const int32_t *row_sums,
                                     int64_t rows, int64_t columns, const uint32_t *sums,
                                     float *out, int64_t step) {
    for (int64_t i = 0; i < columns; i += LANES) {
        const struct NAME(columns) c = NAME(columns_at)(d, i);
        for (int64_t r = 0; r < rows; r++)
            *(NAME(loose) *)(out + r * step + i) = NAME(number_in)(
                &c, row_sums[r], NAME(sum_in)(&c, row_sums[r], sums + r * columns + i));
    }
}

/* As requantize_vectors(). */
static void NAME(requantize_columns)(const struct column_requantizer *q, const struct column_dequantizer *d,
                                     const int32_t *row_sums, int64_t rows, int64_t columns,
                                     const uint32_t *sums, int8_t *out, int64_t step) {
    const NAME(vec) least = q->least - (NAME(vec)){0}, most = q->most - (NAME(vec)){0};
    for (int64_t i = 0; i < columns; i += LANES) {
        const struct NAME(columns) c = NAME(columns_at)(d, i);
        const NAME(vec) scale = __builtin_convertvector(c.scale * q->parts, NAME(vec));
        const NAME(vec) offset = __builtin_convertvector(c.offset * q->parts + q->first, NAME(vec));
        const NAME(vec) row_scale = __builtin_convertvector(c.row_scale * q->parts, NAME(vec));
        for (int64_t r = 0; r < rows; r++) {
            const NAME(ints) sum = NAME(sum_in)(&c, row_sums[r], sums + r * columns + i);
            NAME(vec) level = __builtin_convertvector(sum, NAME(vec)) * scale;
            level += (float)row_sums[r] * row_scale;
            level = NAME(limited)(level + offset, least, most);
            NAME(ints) codes = __builtin_convertvector(level, NAME(ints));
            if (NAME(has_any)((codes & 0xffff) <= q->rest))
                codes = NAME(codes)(&q->codes, NAME(limited)(NAME(number_in)(&c, row_sums[r], sum),
                                                             q->codes.least - (NAME(vec)){0},
                                                             q->codes.most - (NAME(vec)){0}));
            else codes >>= 16;
            const NAME(bytes) bytes = NAME(lowest_bytes)((NAME(uints))codes ^ 128);
            memcpy(out + r * step + i, &bytes, LANES);
        }
    }
}

static inline __attribute__((always_inline)) NAME(vec) NAME(dequantized)(
    const int has_windows, const int has_offsets, const int adds, const struct dequantizer *d,
    const char *sums, const float *addend, int64_t i) {
    NAME(uints) sum = (NAME(uints))*(const NAME(loose_ints) *)(const void *)(sums + 4 * i), window;
    if (has_windows) {
        window = (NAME(uints))*(const NAME(loose_ints) *)(const void *)(d->windows + i);
        sum += window * (uint32_t)d->of_window.whole;
    }
    NAME(wide) value = __builtin_convertvector((NAME(ints))sum, NAME(wide)) * d->scale;
    if (has_windows)
        value += __builtin_convertvector((NAME(ints))window, NAME(wide)) * d->of_window.scale;
    if (has_offsets) value += (NAME(wide))*(const NAME(loose_wide) *)(d->offsets + i);
    else value += d->offset;
    if (adds)
        value += __builtin_convertvector((NAME(vec))*(const NAME(loose) *)addend, NAME(wide));
    return __builtin_convertvector(value, NAME(vec));
}

static inline __attribute__((always_inline)) void NAME(dequantize_vectors)(
    const int has_windows, const int has_offsets, const int adds, const struct dequantizer *d,
    int64_t count, const char *sums, float *out) {
    const int64_t whole = count / LANES * LANES, rest = count - whole;
    for (int64_t i = 0; i < whole; i += LANES)
        *(NAME(loose) *)(out + i) = NAME(dequantized)(has_windows, has_offsets, adds, d, sums,
                                                      adds ? d->addend + i : NULL, i);
    if (!rest) return;
    float addend[LANES] = {0};
    if (adds) memcpy(addend, d->addend + whole, (size_t)rest * sizeof *addend);
    NAME(store_few)(NAME(dequantized)(has_windows, has_offsets, adds, d, sums, addend, whole), rest,
                    out + whole);
}

static void NAME(dequantize)(const struct dequantizer *d, int64_t count, const void *sums,
                             float *out) {
    if (d->windows)
        NAME(dequantize_vectors)(1, d->offsets != NULL, d->addend != NULL, d, count, sums, out);
    else if (d->offsets && d->addend) NAME(dequantize_vectors)(0, 1, 1, d, count, sums, out);
    else if (d->offsets) NAME(dequantize_vectors)(0, 1, 0, d, count, sums, out);
    else if (d->addend) NAME(dequantize_vectors)(0, 0, 1, d, count, sums, out);
    else NAME(dequantize_vectors)(0, 0, 0, d, count, sums, out);
}

/* Numbers, times a slope where they are negative. */
static inline __attribute__((always_inline)) NAME(vec) NAME(bent)(NAME(vec) v, float slope) {
    const NAME(ints) below = v < 0;
    return (NAME(vec))(((NAME(ints))(v * slope) & below) | ((NAME(ints))v & ~below));
}

/* Numbers of sums, rounded once, without those beyond the range of the codes. */
static inline __attribute__((always_inline)) NAME(vec) NAME(numbers)(const struct requantizer *r,
                                                                     const double *offsets,
                                                                     const uint32_t *windows,
                                                                     const char *sums) {
    const struct dequantizer one = {r->scale, r->offset, offsets, NULL, windows, r->of_window};
    NAME(vec) v = NAME(dequantized)(windows != NULL, offsets != NULL, 0, &one, sums, NULL, 0);
    if (r->bend == SLOPED) v = NAME(bent)(v, r->slope);
    if (r->bend == SWISHED) {
        float line[LANES];
        *(NAME(loose) *)line = v;
        r->hswish((const float *const[]){line, line, line}, NULL, LANES, line);
        v = (NAME(vec))*(const NAME(loose) *)line;
    }
    return NAME(limited)(v, r->codes.least - (NAME(vec)){0}, r->codes.most - (NAME(vec)){0});
}

/* Not inlined: it is rare. */
static __attribute__((noinline)) NAME(ints) NAME(requantize_exactly)(
    const struct requantizer *r, const struct rows_of_sums *rows, int64_t row, int64_t class,
    int64_t i, int64_t channels) {
    const char *sums = rows->sums + 4 * (row * rows->pitch + i);
    NAME(uints) codes = {0};
    for (int64_t c = 0; c < channels; c++) {
        const double *own = rows->offsets ? rows->offsets + class + i + c * rows->apart : NULL;
        const uint32_t *windows = rows->windows[c];
        if (windows) windows += row * rows->out_pitch + i;
        const NAME(vec) v = NAME(numbers)(r + c, own, windows, sums + 4 * c * rows->step);
        codes |= (NAME(uints))NAME(codes)(&r[c].codes, v) << (8 * c);
    }
    return (NAME(ints))codes;
}

/* As quantize_vectors(): in f32, and again in f64 where a number is near the middle of two levels.
 * Numbers are in parts of steps of the levels: a sum times a factor, and an offset. */
static inline __attribute__((always_inline)) void NAME(requantize_vectors)(
    const int has_windows, const int has_offsets, const enum bend bend, const int channels,
    const int is_within, const struct requantizer *r, const struct rows_of_sums *rows) {
    NAME(vec) scale[4], offset[4], slope[4], least[4], most[4], zero[4], of_window[4];
    NAME(uints) base[4], whole[4];
    uint16_t rest = 0;
#pragma GCC unroll 4
    for (int c = 0; c < channels; c++) {
        scale[c] = r[c].step_scale - (NAME(vec)){0};
        offset[c] = r[c].step_offset - (NAME(vec)){0};
        base[c] = (uint32_t)r[c].base - (NAME(uints)){0};
        slope[c] = r[c].step_slope - (NAME(vec)){0};
        least[c] = r[c].step_least - (NAME(vec)){0};
        most[c] = r[c].step_most - (NAME(vec)){0};
        zero[c] = r[c].zero - (NAME(vec)){0};
        of_window[c] = r[c].step_window - (NAME(vec)){0};
        whole[c] = (uint32_t)r[c].of_window.whole - (NAME(uints)){0};
        rest = r[c].rest > rest ? r[c].rest : rest;
    }
    const int64_t count = rows->count, step = rows->step;
    for (int64_t y = 0; y < rows->rows; y++) {
        const char *sums = rows->sums + 4 * y * rows->pitch;
        const int64_t class = rows->classes ? rows->classes[y * rows->class_step] * rows->width : 0;
        uint32_t *out = rows->out + y * rows->out_pitch;
        for (int64_t i = 0; i < count; i += LANES) {
            NAME(ints) levels[4];
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) {
                levels[c] = (int32_t)(LEVEL_PARTS / 2) - (NAME(ints)){0};
                if (c >= channels) continue;
                const char *at = sums + 4 * (c * step + i);
                NAME(uints) sum = (NAME(uints))*(const NAME(loose_ints) *)(const void *)at;
                if (!has_offsets) sum += base[c];
                NAME(uints) window = {0};
                if (has_windows) {
                    window = (NAME(uints))*(const NAME(loose_ints) *)(const void *)(
                        rows->windows[c] + y * rows->out_pitch + i);
                    sum += window * whole[c];
                }
                NAME(vec) level = __builtin_convertvector((NAME(ints))sum, NAME(vec)) * scale[c];
                if (has_windows)
                    level += __builtin_convertvector((NAME(ints))window, NAME(vec)) * of_window[c];
                if (has_offsets)
                    level += (NAME(vec))*(const NAME(loose) *)(rows->in_steps + class +
                                                               c * rows->apart + i);
                else level += offset[c];
                if (bend == SLOPED)
                    level = NAME(smaller)(level, (NAME(vec)){0}) * slope[c] +
                            (NAME(greater)(level, (NAME(vec)){0}) + zero[c]);
                else if (bend == SWISHED)
                    level = level * NAME(limited)(level * slope[c] + 0.5f, (NAME(vec)){0},
                                                  1 - (NAME(vec)){0}) + zero[c];
                if (!is_within) level = NAME(limited)(level, least[c], most[c]);
                levels[c] = __builtin_convertvector(level, NAME(ints));
            }
            int are_known;
            NAME(ints) found = NAME(nearest_codes)(levels, rest, &are_known);
            if (!are_known)
                found = NAME(requantize_exactly)(r, rows, y, class, i, channels);
            if (count - i < LANES) NAME(store_few)((NAME(vec))found, count - i, out + i);
            else *(NAME(loose_ints) *)(void *)(out + i) = found;
        }
    }
}

static void NAME(requantize)(const struct requantizer *r, int64_t channels,
                             const struct rows_of_sums *rows) {
    const int has_offsets = rows->offsets != NULL;
    const enum bend bend = r->bend;
    int is_within = channels == 4;
    for (int64_t c = 0; c < channels; c++) is_within &= r[c].is_within;
    if (rows->windows[0] && is_within)
        NAME(requantize_vectors)(1, has_offsets, bend, 4, 1, r, rows);
    else if (rows->windows[0])
        NAME(requantize_vectors)(1, has_offsets, bend, (int)channels, 0, r, rows);
    else if (!is_within) NAME(requantize_vectors)(0, has_offsets, bend, (int)channels, 0, r, rows);
    else if (has_offsets && bend == SWISHED) NAME(requantize_vectors)(0, 1, SWISHED, 4, 1, r, rows);
    else if (has_offsets && bend == UNBENT) NAME(requantize_vectors)(0, 1, UNBENT, 4, 1, r, rows);
    else if (has_offsets) NAME(requantize_vectors)(0, 1, SLOPED, 4, 1, r, rows);
    else if (bend == SWISHED) NAME(requantize_vectors)(0, 0, SWISHED, 4, 1, r, rows);
    else if (bend == UNBENT) NAME(requantize_vectors)(0, 0, UNBENT, 4, 1, r, rows);
    else NAME(requantize_vectors)(0, 0, SLOPED, 4, 1, r, rows);
}

#include "simd/code_pairs.inc.h"

/* bf16 in the upper half of each element, rounded to nearest even; NaN stays NaN. */
static inline __attribute__((always_inline)) NAME(uints) NAME(bfloats)(NAME(uints) bits) {
    const NAME(uints) is_nan = (NAME(uints))((bits & 0x7fffffff) > 0x7f800000);
    const NAME(uints) rounded = bits + (0x7fff + (bits >> 16 & 1));
    return ((is_nan & (bits | 0x400000)) | (~is_nan & rounded)) & 0xffff0000;
}

static void NAME(pair)(const float *first, const float *second, int64_t count, uint32_t *out) {
    typedef uint32_t loose __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const NAME(uints) low = NAME(bfloats)((NAME(uints))*(const loose *)(first + i)) >> 16;
        *(loose *)(out + i) =
            second ? low | NAME(bfloats)((NAME(uints))*(const loose *)(second + i)) : low;
    }
    for (; i < count; i++)
        out[i] = float_to_bfloat(first[i]) |
                 (second ? (uint32_t)float_to_bfloat(second[i]) << 16 : 0);
}

static void NAME(round_row)(const float *row, int64_t count, uint16_t *out) {
    typedef uint32_t loose __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
    typedef uint16_t halves __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(halves *)(out + i) =
            __builtin_convertvector(NAME(bfloats)((NAME(uints))*(const loose *)(row + i)) >> 16, halves);
    for (; i < count; i++) out[i] = float_to_bfloat(row[i]);
}

const struct quantized_functions JOIN(functions, quantized, SUFFIX) = {
    NAME(quantize), NAME(quantize_row), NAME(sum_row), NAME(extend), NAME(dequantize_columns),
    NAME(requantize_columns), NAME(dequantize),
    NAME(requantize), NAME(combine), NAME(combine_numbers), NAME(pair), NAME(round_row)};

#undef ROUNDING
#undef ROUNDING_32
#undef ROUNDING_BYTE
#undef BITS_OF_ROUNDING_BYTE
#undef LANES
#undef NAME
