/* Direct sums whose vectors hold output channels: OUT_VECTORS of them at OUT_POSITIONS positions.
 *
 * Positions are read one by one, at any address, so rows may have any length.  Two blocks
 * of rows of the packed filter make a vector.  Included by simd/microkernel.inc.h.
 */
INLINE void NAME(sum_listed)(const int listed, const struct out_sums *sums,
                             const struct out_place *places, const float *restrict weights,
                             const float *bias) {
    typedef ELEMENT half
        __attribute__((vector_size(ROWS * sizeof(ELEMENT)), aligned(sizeof(ELEMENT)), may_alias));
    const int64_t block_step = sums->block_step, pitch = sums->pitch, depth = sums->depth;
    const int32_t *offsets = sums->offsets, *list = sums->weights;
    const float *ahead = sums->ahead;
    const ELEMENT *data[OUT_POSITIONS];
    VEC sum[OUT_POSITIONS * OUT_VECTORS];
#pragma GCC unroll 6
    for (int p = 0; p < OUT_POSITIONS; p++) {
        data[p] = places[p].data;
#pragma GCC unroll 4
        for (int v = 0; v < OUT_VECTORS; v++)
            sum[p * OUT_VECTORS + v] =
                sums->begins ? (VEC){0} : LOAD(places[p].sums + v * pitch);
    }
#pragma GCC unroll 2
    for (int64_t k = 0; k < depth; k++, weights += listed ? 0 : ROWS) {
        const int64_t at = offsets[k];
        __builtin_prefetch(ahead + k * ROWS, 0, 2);
        const ELEMENT *tap = weights + (listed ? list[k] : 0);
        VEC weight[OUT_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < OUT_VECTORS; v++)
            weight[v] = __builtin_shufflevector(
                *(const half *)(tap + 2 * v * block_step),
                *(const half *)(tap + (2 * v + 1) * block_step), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                11, 12, 13, 14, 15);
#pragma GCC unroll 6
        for (int p = 0; p < OUT_POSITIONS; p++) {
            const VEC one = data[p][at] - (VEC){0};
#pragma GCC unroll 4
            for (int v = 0; v < OUT_VECTORS; v++) sum[p * OUT_VECTORS + v] += weight[v] * one;
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < OUT_VECTORS; v++) {
        const VEC last = bias ? LOAD(bias + v * LANES) : (VEC){0};
#pragma GCC unroll 6
        for (int p = 0; p < OUT_POSITIONS; p++)
            STORE(places[p].sums + v * pitch, sum[p * OUT_VECTORS + v] + last);
    }
}

static void NAME(sum_outputs)(const struct out_sums *sums, const struct out_place *places,
                              const float *restrict weights, const float *bias) {
    if (sums->weights) NAME(sum_listed)(1, sums, places, weights, bias);
    else NAME(sum_listed)(0, sums, places, weights, bias);
}
