/* The values of weights at the points of Winograd F(m, r), in vectors of rows.
 *
 * Included by simd/transforms.inc.h, which defines
 *   WIDE       the vector
 *   VALUES(x)  x with a suffix of its own
 */
/* Computes the values at the points of one axis, `step` apart, from some of F(m, r)'s taps. */
INLINE void VALUES(values_of_axis)(const enum wino_size size, const WIDE *taps, WIDE *values,
                                 const int64_t step) {
    const WIDE last = size == F_2_3 || size == F_4_3 ? taps[2] : taps[1];
    values[0] = taps[0];
    if (size == F_4_2) {
        values[step] = taps[0] + taps[1];
        values[2 * step] = taps[0] - taps[1];
        values[3 * step] = taps[0] + 2 * taps[1];
        values[4 * step] = last;
        return;
    }
    if (size == F_4_3) {
        const WIDE sum = taps[0] + taps[2], far = taps[0] + 4 * taps[2];
        values[step] = sum + taps[1];
        values[2 * step] = sum - taps[1];
        values[3 * step] = far + 2 * taps[1];
        values[4 * step] = far - 2 * taps[1];
        values[5 * step] = last;
        return;
    }
    if (size == F_2_2) {
        values[step] = taps[0] + taps[1];
        values[2 * step] = last;
        return;
    }
    const WIDE even = (size == F_2_3 ? taps[0] + taps[2] : taps[0]) * .5, odd = taps[1] * .5;
    values[step] = even + odd;
    values[2 * step] = even - odd;
    values[3 * step] = last;
}

/* Computes the values of all axes, one after the other. */
static void VALUES(values)(const enum wino_size *size, const int *count, const int *first,
                         WIDE *values) {
    WIDE next[MOST_VALUES];
    int before = 1, after = count[0] * count[1] * count[2];
    for (int a = 0; a < AXES; a++) {
        const int points = wino_points(size[a]);
        after /= count[a];
        if (points == 1) continue;
        for (int i = 0; i < before; i++)
            for (int j = 0; j < after; j++) {
                WIDE taps[3] = {{0}};
                for (int t = 0; t < count[a]; t++)
                    taps[first[a] + t] = values[(i * count[a] + t) * after + j];
                VALUES(values_of_axis)(size[a], taps, next + i * points * after + j, after);
            }
        before *= points;
        memcpy(values, next, (size_t)(before * after) * sizeof *values);
    }
}
