/* The products and a time step (a moment) of an LSTM or a GRU for one instruction set.
 *
 * Included by simd/instruction_set.inc.h after simd/functions.inc.h, whose vectors and
 * functions it uses.  A sum has the same order for any number of sequences and threads.
 */
#define PARTS (RECURRENT_UNITS / LANES)
#define MOST_GATES 4
/* Sequences that share a pass over the weights, and independent chains of multiply-adds of a sum,
 * as registers permit. */
#define SEQUENCES (LANES == 16 ? 2 : 1)
#define CHAINS (LANES == 16 ? 2 : 1)

#define VECTORS_A_LINE (LANES == 16 ? 1 : LANES == 8 ? 2 : 4)

/* Add the product of some rows to some vectors of the sums of a block; `pitch` floats are from the
 * weights of an input to those of the next. */
INLINE void NAME(multiply)(const int vectors, const int rows, const int chains, int64_t depth,
                           const float *const *row, const float *weights, const int pitch,
                           VF *sum) {
    const int all = rows * vectors;
    VF chain[PROJECTED_ROWS * MOST_GATES * PARTS];
#pragma GCC unroll 32
    for (int v = 0; v < all * chains; v++) chain[v] = v < all ? sum[v] : ALL(0.0f);
    int64_t k = 0;
    for (; k + chains <= depth; k += chains)
#pragma GCC unroll 2
        for (int c = 0; c < chains; c++, weights += pitch) {
#pragma GCC unroll 16
            for (int v = 0; v < vectors; v += VECTORS_A_LINE)
                __builtin_prefetch(weights_ahead(weights + v * LANES));
#pragma GCC unroll 4
            for (int n = 0; n < rows; n++)
#pragma GCC unroll 16
                for (int v = 0; v < vectors; v++)
                    chain[c * all + n * vectors + v] +=
                        row[n][k + c] * LOAD(weights + v * LANES);
        }
    for (; k < depth; k++, weights += pitch)
        for (int n = 0; n < rows; n++)
            for (int v = 0; v < vectors; v++)
                chain[n * vectors + v] += row[n][k] * LOAD(weights + v * LANES);
#pragma GCC unroll 32
    for (int v = 0; v < all; v++) sum[v] = chains == 2 ? chain[v] + chain[all + v] : chain[v];
}

/* The projection of some rows, `vectors` vectors of the sums of a block at a time. */
INLINE void NAME(project_rows)(const int gates, const int rows, const int vectors,
                               const struct projection *p, int64_t first) {
    const int pitch = gates * RECURRENT_UNITS;
    for (int from = 0; from < pitch; from += vectors * LANES) {
        VF sum[PROJECTED_ROWS * MOST_GATES * PARTS];
        for (int v = 0; v < rows * vectors; v++)
            sum[v] = LOAD(p->bias + from + v % vectors * LANES);
        NAME(multiply)(vectors, rows, 1, p->depth, p->rows + first, p->weights + from, pitch, sum);
        float *out = p->out + first * p->pitch + from;
        for (int v = 0; v < rows * vectors; v++)
            STORE(out + v / vectors * p->pitch + v % vectors * LANES, sum[v]);
    }
}

INLINE void NAME(lstm_rows)(const int rows, const struct time_step *m, int64_t first) {
    VF sum[SEQUENCES * 4 * PARTS];
    const float *before[SEQUENCES];
    for (int n = 0; n < rows; n++) {
        before[n] = m->before + (first + n) * m->pitch;
        for (int v = 0; v < 4 * PARTS; v++)
            sum[n * 4 * PARTS + v] = LOAD(m->projected + (first + n) * 4 * m->pitch + v * LANES);
    }
    NAME(multiply)(4 * PARTS, rows, CHAINS, m->depth, before, m->weights, 4 * RECURRENT_UNITS,
                   sum);
    for (int n = 0; n < rows; n++)
        for (int p = 0; p < PARTS; p++) {
            const VF *gate = sum + n * 4 * PARTS + p;
            const int64_t at = (first + n) * m->pitch + p * LANES;
            const VF kept = NAME(logistic)(gate[0]) * LOAD(m->cell + at);
            const VF cell = kept + NAME(logistic)(gate[PARTS]) *
                                       NAME(hyperbolic_tangent)(gate[2 * PARTS]);
            STORE(m->cell + at, cell);
            STORE(m->hidden + at,
                  NAME(logistic)(gate[3 * PARTS]) * NAME(hyperbolic_tangent)(cell));
        }
}

INLINE void NAME(gru_rows)(const int rows, const struct time_step *m, int64_t first) {
    VF sum[SEQUENCES * 3 * PARTS];
    const float *before[SEQUENCES];
    for (int n = 0; n < rows; n++) {
        before[n] = m->before + (first + n) * m->pitch;
        const float *projected = m->projected + (first + n) * 3 * m->pitch;
        for (int v = 0; v < 3 * PARTS; v++)
            sum[n * 3 * PARTS + v] = LOAD(
                v < 2 * PARTS ? projected + v * LANES : m->inner + (v - 2 * PARTS) * LANES);
    }
    NAME(multiply)(3 * PARTS, rows, CHAINS, m->depth, before, m->weights, 3 * RECURRENT_UNITS,
                   sum);
    for (int n = 0; n < rows; n++)
        for (int p = 0; p < PARTS; p++) {
            const VF *gate = sum + n * 3 * PARTS + p;
            const int64_t at = (first + n) * m->pitch + p * LANES;
            const VF given = LOAD(m->projected + (first + n) * 3 * m->pitch +
                                  2 * RECURRENT_UNITS + p * LANES);
            const VF update = NAME(logistic)(gate[0]), reset = NAME(logistic)(gate[PARTS]);
            const VF fresh = NAME(hyperbolic_tangent)(given + reset * gate[2 * PARTS]);
            STORE(m->hidden + at, (1.0f - update) * fresh + update * LOAD(m->old + at));
        }
}

#define CELL(cell, gates)                                                                     \
    static void NAME(cell##_project)(const struct projection *p, int64_t rows) {              \
        if (rows == PROJECTED_ROWS)                                                           \
            NAME(project_rows)(gates, PROJECTED_ROWS, LANES == 16 ? gates : 2, p, 0);         \
        else                                                                                  \
            for (int64_t n = 0; n < rows; n++)                                                \
                NAME(project_rows)(gates, 1, gates * PARTS, p, n);                            \
    }                                                                                         \
    static void NAME(cell##_move)(const struct time_step *m) {                                   \
        int64_t n = 0;                                                                        \
        for (; n + SEQUENCES <= m->batch; n += SEQUENCES) NAME(cell##_rows)(SEQUENCES, m, n); \
        for (; n < m->batch; n++) NAME(cell##_rows)(1, m, n);                                 \
    }
CELL(lstm, 4)
CELL(gru, 3)

const struct recurrent_functions JOIN(functions, recurrent, SUFFIX)[2] = {
    {4, NAME(lstm_project), NAME(lstm_move)},
    {3, NAME(gru_project), NAME(gru_move)},
};

#undef CELL
#undef PARTS
#undef MOST_GATES
#undef SEQUENCES
#undef CHAINS
#undef VECTORS_A_LINE
