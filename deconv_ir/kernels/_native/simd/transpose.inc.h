/* Transposes a square of vectors, with lanes of 4 bytes: included by
 * simd/microkernel.inc.h. */

/* The same shuffle of each four lanes of two vectors; L is the first lane of the second. */
#define L LANES
#if LANES == 4
#define OF_FOURS(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define FOUR(a, b, c, d, at) (a) + (at), (b) + (at), (c) + (at), (d) + (at)
#if LANES == 8
#define OF_FOURS(x, y, a, b, c, d) \
    __builtin_shufflevector(x, y, FOUR(a, b, c, d, 0), FOUR(a, b, c, d, 4))
#define FOURS(x, y, at) \
    __builtin_shufflevector(x, y, FOUR(0, 1, 2, 3, at), FOUR(L, L + 1, L + 2, L + 3, at))
#else
#define OF_FOURS(x, y, a, b, c, d)                                                  \
    __builtin_shufflevector(x, y, FOUR(a, b, c, d, 0), FOUR(a, b, c, d, 4),         \
                            FOUR(a, b, c, d, 8), FOUR(a, b, c, d, 12))
#define FOURS(x, y, at)                                                             \
    __builtin_shufflevector(x, y, FOUR(0, 1, 2, 3, at), FOUR(L, L + 1, L + 2, L + 3, at), \
                            FOUR(4, 5, 6, 7, at), FOUR(L + 4, L + 5, L + 6, L + 7, at))
#endif
#endif

/* Transpose LANES vectors. */
static inline __attribute__((always_inline)) void NAME(transpose)(const VEC *rows, VEC *out) {
    VEC v[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += 4) {
        const VEC a = OF_FOURS(rows[i], rows[i + 1], 0, L, 1, L + 1);
        const VEC b = OF_FOURS(rows[i], rows[i + 1], 2, L + 2, 3, L + 3);
        const VEC c = OF_FOURS(rows[i + 2], rows[i + 3], 0, L, 1, L + 1);
        const VEC d = OF_FOURS(rows[i + 2], rows[i + 3], 2, L + 2, 3, L + 3);
        v[i] = OF_FOURS(a, c, 0, 1, L, L + 1);
        v[i + 1] = OF_FOURS(a, c, 2, 3, L + 2, L + 3);
        v[i + 2] = OF_FOURS(b, d, 0, 1, L, L + 1);
        v[i + 3] = OF_FOURS(b, d, 2, 3, L + 2, L + 3);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
#if LANES == 4
        out[i] = v[i];
#elif LANES == 8
        out[i] = FOURS(v[i], v[4 + i], 0);
        out[4 + i] = FOURS(v[i], v[4 + i], 4);
#else
        const VEC a = FOURS(v[i], v[8 + i], 0), b = FOURS(v[i], v[8 + i], 8);
        const VEC c = FOURS(v[4 + i], v[12 + i], 0), d = FOURS(v[4 + i], v[12 + i], 8);
        out[i] = FOURS(a, c, 0);
        out[4 + i] = FOURS(a, c, 8);
        out[8 + i] = FOURS(b, d, 0);
        out[12 + i] = FOURS(b, d, 8);
#endif
    }
}
#undef L
#undef OF_FOURS
#undef FOUR
#undef FOURS
