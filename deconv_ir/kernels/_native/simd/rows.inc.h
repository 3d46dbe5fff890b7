/* Sums, standardisation and softmax of rows for one instruction set; included after
 * simd/functions.inc.h. */
#define SUMS 4
#define SUMMED_BLOCK 4096 /* elements whose sum is kept in f32 */
#define SOFTMAX_TILE 256
#define SUMMED_TERMS 16    /* exponentials whose sum is kept in f32 */
#define MOST_EXPONENTIALS 4 /* vectors at once */

#define ROW_SUM(name, term)                                                                   \
    static double NAME(name)(const float *row, int64_t count, float mean) {                   \
        (void)mean;                                                                           \
        double total = 0;                                                                     \
        for (int64_t begin = 0; begin < count; begin += SUMMED_BLOCK) {                       \
            const int64_t end = least(count, begin + SUMMED_BLOCK);                           \
            VF sum[SUMS] = {0};                                                               \
            int64_t i = begin;                                                                \
            for (; i + SUMS * LANES <= end; i += SUMS * LANES)                                \
                for (int s = 0; s < SUMS; s++) {                                              \
                    const VF x = LOAD(row + i + s * LANES);                                   \
                    sum[s] += term;                                                           \
                }                                                                             \
            for (; i + LANES <= end; i += LANES) {                                            \
                const VF x = LOAD(row + i);                                                   \
                sum[0] += term;                                                               \
            }                                                                                 \
            const VF all = (sum[0] + sum[1]) + (sum[2] + sum[3]);                             \
            for (int l = 0; l < LANES; l++) total += (double)all[l];                          \
            for (; i < end; i++) {                                                            \
                const VF x = ALL(row[i]);                                                     \
                total += (double)(term)[0];                                                   \
            }                                                                                 \
        }                                                                                     \
        return total;                                                                         \
    }
ROW_SUM(row_sum, x)
ROW_SUM(row_squares, ((x - mean) * (x - mean)))

static double NAME(plain_sum)(const float *row, int64_t count) {
    return NAME(row_sum)(row, count, 0.0f);
}

INLINE VF NAME(standardized)(VF x, const float *how, int divides) {
    const VF centred = x - how[0];
    return (divides ? centred / how[1] : centred) * how[2] + how[3];
}

static void NAME(standardize)(const float *row, int64_t count, const float how[4], int divides,
                              float *out) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(out + i, NAME(standardized)(LOAD(row + i), how, divides));
    for (; i < count; i++) out[i] = NAME(standardized)(ALL(row[i]), how, divides)[0];
}

/* Loads up to LANES contiguous elements. */
INLINE VF NAME(load_some)(const float *from, int64_t count) {
    if (count >= LANES) return LOAD(from);
    VF result = {0};
    memcpy(&result, from, (size_t)count * sizeof *from);
    return result;
}

INLINE void NAME(store_some)(float *to, VF values, int64_t count) {
    if (count >= LANES) STORE(to, values);
    else memcpy(to, &values, (size_t)count * sizeof *to);
}

/* The divisor, or the subtrahend for the logarithm. */
INLINE float NAME(softmax_total)(double total, int logarithm) {
    return (float)(logarithm ? __builtin_log(total) : total);
}

/* The result of an element, or of its exponential without the logarithm. */
INLINE VF NAME(softmax_of)(VF x, VF top, VF total, int logarithm) {
    return logarithm ? (x - top) - total : x / total;
}

/* At most SOFTMAX_TILE columns, read row by row. */
static void NAME(softmax_tile)(const float *data, int64_t count, int64_t step, int64_t columns,
                               int logarithm, float *out) {
    VF top[SOFTMAX_TILE / LANES], total[SOFTMAX_TILE / LANES];
    VD sum[SOFTMAX_TILE / LANES];
    const int64_t vectors = divide_up(columns, LANES);
    for (int64_t v = 0; v < vectors; v++) {
        top[v] = ALL(-__builtin_inff());
        sum[v] = (VD){0};
    }
#define EACH_VECTOR                                                                           \
    for (int64_t i = 0; i < count; i++)                                                       \
        for (int64_t v = 0, c = 0, at = i * step; v < vectors; v++, c += LANES, at += LANES)
    EACH_VECTOR top[v] = NAME(larger)(top[v], NAME(load_some)(data + at, columns - c));
    EACH_VECTOR {
        const VF e = NAME(exponential)(NAME(load_some)(data + at, columns - c) - top[v]);
        sum[v] += __builtin_convertvector(e, VD);
        if (!logarithm) NAME(store_some)(out + at, e, columns - c);
    }
    for (int64_t v = 0; v < vectors; v++)
        for (int l = 0; l < LANES; l++)
            total[v][l] = NAME(softmax_total)(sum[v][l], logarithm);
    const float *const from = logarithm ? data : out;
    EACH_VECTOR {
        const VF x = NAME(load_some)(from + at, columns - c);
        NAME(store_some)(out + at, NAME(softmax_of)(x, top[v], total[v], logarithm),
                         columns - c);
    }
#undef EACH_VECTOR
}

static void NAME(softmax_columns)(const float *data, int64_t count, int64_t step,
                                  int64_t columns, int logarithm, float *out) {
    for (int64_t c = 0; c < columns; c += SOFTMAX_TILE)
        NAME(softmax_tile)(data + c, count, step, least(SOFTMAX_TILE, columns - c), logarithm,
                           out + c);
}

INLINE void NAME(sum_in_order)(const float *data, int64_t rows, int64_t count, double *sums) {
    double sum[SOFTMAX_ROWS] = {0};
    for (int64_t i = 0; i < count; i++)
        for (int64_t r = 0; r < rows; r++) sum[r] += (double)data[r * count + i];
    memcpy(sums, sum, sizeof sum);
}

/* Several rows at once, so that their sums, in the order of those of columns, are independent. */
static void NAME(softmax_rows)(const float *data, int64_t rows, int64_t count, int logarithm,
                               float *out) {
    float top[SOFTMAX_ROWS];
    double sum[SOFTMAX_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        const float *const in = data + r * count;
        VF most_of = ALL(-__builtin_inff());
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) most_of = NAME(larger)(most_of, LOAD(in + i));
        VF all = ALL(most_of[0]);
        for (int l = 1; l < LANES; l++) all = NAME(larger)(all, ALL(most_of[l]));
        for (; i < count; i++) all = NAME(larger)(all, ALL(in[i]));
        top[r] = all[0];
        for (i = 0; i < count; i += LANES) {
            const VF x = NAME(load_some)(in + i, count - i);
            NAME(store_some)(out + r * count + i, NAME(exponential)(x - top[r]), count - i);
        }
    }
    if (rows == SOFTMAX_ROWS) NAME(sum_in_order)(out, SOFTMAX_ROWS, count, sum);
    else NAME(sum_in_order)(out, rows, count, sum);
    for (int64_t r = 0; r < rows; r++) {
        const VF total = ALL(NAME(softmax_total)(sum[r], logarithm)), first = ALL(top[r]);
        const float *const in = (logarithm ? data : out) + r * count;
        for (int64_t i = 0; i < count; i += LANES) {
            const VF x = NAME(load_some)(in + i, count - i);
            NAME(store_some)(out + r * count + i,
                             NAME(softmax_of)(x, first, total, logarithm), count - i);
        }
    }
}

/* Sums of a few terms in f32 are added in f64. */
INLINE void NAME(exponential_columns)(const int vectors, float *data, int64_t count, int64_t step,
                                      float *factors) {
    VF top[MOST_EXPONENTIALS];
    VD total[MOST_EXPONENTIALS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        top[v] = ALL(-__builtin_inff());
        total[v] = (VD){0};
    }
    for (int64_t i = 0; i < count; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            top[v] = NAME(larger)(top[v], LOAD(data + i * step + v * LANES));
    for (int64_t first = 0; first < count; first += SUMMED_TERMS) {
        VF sum[MOST_EXPONENTIALS] = {0};
        for (int64_t i = first; i < least(count, first + SUMMED_TERMS); i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                float *const at = data + i * step + v * LANES;
                const VF e = NAME(exponential)(LOAD(at) - top[v]);
                STORE(at, e);
                sum[v] += e;
            }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) total[v] += __builtin_convertvector(sum[v], VD);
    }
    for (int v = 0; v < vectors; v++)
        STORE(factors + v * LANES, 1.0f / __builtin_convertvector(total[v], VF));
}

static void NAME(exponentials)(float *data, int64_t count, int64_t step, int64_t columns,
                               float *factors) {
    int64_t c = 0;
    for (; c + MOST_EXPONENTIALS * LANES <= columns; c += MOST_EXPONENTIALS * LANES)
        NAME(exponential_columns)(MOST_EXPONENTIALS, data + c, count, step, factors + c);
    for (; c < columns; c += LANES)
        NAME(exponential_columns)(1, data + c, count, step, factors + c);
}

static void NAME(scale_rows)(float *rows, int64_t count, int64_t step, int64_t columns,
                             const float *factors) {
    for (int64_t r = 0; r < count; r++, rows += step) {
        int64_t i = 0;
        for (; i + LANES <= columns; i += LANES) STORE(rows + i, LOAD(rows + i) * factors[r]);
        for (; i < columns; i++) rows[i] *= factors[r];
    }
}

const struct row_functions JOIN(functions, rows, SUFFIX) = {
    LANES, NAME(plain_sum), NAME(row_squares), NAME(standardize), NAME(softmax_columns),
    NAME(softmax_rows), NAME(exponentials), NAME(scale_rows)};

#undef ROW_SUM
#undef SUMS
#undef SUMMED_BLOCK
#undef SOFTMAX_TILE
#undef SUMMED_TERMS
#undef MOST_EXPONENTIALS
