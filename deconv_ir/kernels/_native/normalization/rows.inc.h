/* Sums and standardisation of rows for one instruction set; included behind
 * pointwise/functions.inc.h. */
#define SUMS 4
#define SUMMED_BLOCK 4096 /* elements whose sum is kept in f32 */

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

const struct row_functions JOIN(functions, rows, SUFFIX) = {
    NAME(plain_sum), NAME(row_squares), NAME(standardize)};

#undef ROW_SUM
#undef SUMS
#undef SUMMED_BLOCK
