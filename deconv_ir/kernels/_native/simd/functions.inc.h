/* The functions of elementwise programs for one instruction set.
 *
 * Included once by each simd/ file, after it has defined VECTOR_LANES_32 and
 * SUFFIX.  Every function computes its lanes independently of each other, so that a result depends
 * only on its operands.  docs/numerics.md states the errors, which tools measure over all
 * arguments.
 */
#define LANES VECTOR_LANES_32
#define NAME(x) JOIN(x, pointwise, SUFFIX)
#define INLINE static inline __attribute__((always_inline))

typedef float NAME(vf) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(vi) __attribute__((vector_size(LANES * 4)));
typedef uint32_t NAME(vu) __attribute__((vector_size(LANES * 4)));
typedef double NAME(vd) __attribute__((vector_size(LANES * 8)));
typedef float NAME(loose_f) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
#define VF NAME(vf)
#define VI NAME(vi)
#define VU NAME(vu)
#define VD NAME(vd)
#define LOAD(p) ((VF) * (const NAME(loose_f) *)(p))
#define STORE(p, v) (*(NAME(loose_f) *)(p) = (v))
#define ALL(value) ((value) - (VF){0})
/* Lanes of a if the mask is set, else of b. */
#define PICK(mask, a, b) ((VF)(((VI)(mask) & (VI)(a)) | (~(VI)(mask) & (VI)(b))))
#define WHERE(mask, a) ((VF)((VI)(mask) & (VI)(a)))
#define TRUTH(mask) WHERE(mask, ALL(1.0f))
#define ABS(x) ((VF)((VI)(x) & 0x7fffffff))
#define SIGN_OF(x) ((VI)(x) & (int32_t)0x80000000)
#define WITH_SIGN(x, sign) ((VF)((VI)(x) | (sign)))

INLINE VF NAME(larger)(VF a, VF b) { return PICK((a > b) | (a != a), a, b); }
INLINE VF NAME(smaller)(VF a, VF b) { return PICK((a < b) | (a != a), a, b); }
/* NaN stays NaN: the instructions return their second operand if either is NaN. */
INLINE VF NAME(clamped)(VF x, VF low, VF high) {
#if defined(__AVX512F__) && LANES == 16
    return (VF)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)x));
#elif defined(__AVX__) && LANES == 8
    return (VF)_mm256_min_ps((__m256)high, _mm256_max_ps((__m256)low, (__m256)x));
#else
    x = PICK(x < low, low, x);
    return PICK(x > high, high, x);
#endif
}

INLINE VF NAME(root)(VF x) {
#if defined(__AVX512F__) && LANES == 16
    return (VF)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX__) && LANES == 8
    return (VF)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__) && LANES == 4
    return (VF)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* Whether a mask has any lane set. */
INLINE int NAME(any)(VI mask) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__) && LANES == 8
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__) && LANES == 4
    return _mm_movemask_ps((__m128)mask) != 0;
#else
    int found = 0;
    for (int i = 0; i < LANES; i++) found |= mask[i];
    return found != 0;
#endif
}

/* Rounds to the nearest integer, ties to even. */
INLINE VF NAME(nearest)(VF x) {
    const VF rounded = (ABS(x) + 0x1p23f) - 0x1p23f;
    return PICK(ABS(x) < 0x1p23f, WITH_SIGN(rounded, SIGN_OF(x)), x);
}

/* 2^n, n from -126 to 127. */
INLINE VF NAME(power_of_two)(VI n) { return (VF)((VU)(n + 127) << 23); }

/* x = n ln 2 + r for |x| < 2^16: return exp(r) - 1. */
INLINE VF NAME(reduced_exp)(VF x, VI *n) {
    const VF shifted = x * 0x1.715476p+0f + 0x1.8p23f;
    *n = (VI)shifted - (VI)ALL(0x1.8p23f);
    const VF whole = shifted - 0x1.8p23f;
    const VF r = (x - whole * 0x1.63p-1f) + whole * 0x1.bd0106p-13f;
    VF p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r;
}

INLINE VF NAME(exponential)(VF x) {
    VI n;
    const VF p = NAME(reduced_exp)(NAME(clamped)(x, ALL(-104.0f), ALL(89.0f)), &n) + 1.0f;
    /* Results that underflow to 0, as under the mask of an attention, are not computed: processors
     * take some hundred cycles for each. */
    const VI counts = ~(VI)(x <= -104.0f);
    n &= counts;
#if defined(__AVX512F__) && LANES == 16
    return WHERE(counts, (VF)_mm512_scalef_ps((__m512)p, _mm512_cvtepi32_ps((__m512i)n)));
#else
    /* In two steps; only the last rounds, since results may be subnormal. */
    const VI half = n >> 1;
    return WHERE(counts, p * NAME(power_of_two)(half) * NAME(power_of_two)(n - half));
#endif
}

/* exp(x) - 1 for x <= 0. */
INLINE VF NAME(exponential_minus_1)(VF x) {
    VI n;
    const VF p = NAME(reduced_exp)(NAME(clamped)(x, ALL(-20.0f), ALL(0.0f)), &n);
    const VF scale = NAME(power_of_two)(n);
    return p * scale + (scale - 1.0f);
}

/* log(1 + f) + e ln 2 for f from sqrt(1/2) - 1 to sqrt(2) - 1. */
INLINE VF NAME(log_near_1)(VF f, VF e) {
    const VF square = f * f;
    VF p = f * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    p = p * f * square - e * 0x1.bd0106p-13f;
    p = p - square * 0.5f;
    return (f + p) + e * 0x1.63p-1f;
}

INLINE VF NAME(logarithm)(VF x) {
    const VI subnormal = x < 0x1p-126f;
    const VF scaled = PICK(subnormal, x * 0x1p23f, x);
    /* Mantissas from sqrt(1/2) to sqrt(2). */
    const VI bits = (VI)((VU)scaled - 0x3f3504f3u);
    const VF e = __builtin_convertvector((bits >> 23) - (subnormal & 23), VF);
    const VF mantissa = (VF)((bits & 0x7fffff) + 0x3f3504f3);
    VF result = NAME(log_near_1)(mantissa - 1.0f, e);
    result = PICK(x == 0.0f, ALL(-__builtin_inff()), result);
    result = PICK(x < 0.0f, ALL(__builtin_nanf("")), result);
    return PICK((x != x) | (x == __builtin_inff()), x, result);
}

/* log(1 + s) for s from 0 to 1. */
INLINE VF NAME(log_plus_1)(VF s) {
    const VI large = s > 0.41421354f;
    return NAME(log_near_1)(PICK(large, (s - 1.0f) * 0.5f, s), TRUTH(large));
}

INLINE VF NAME(logistic)(VF x) {
    const VF e = NAME(exponential)(-ABS(x));
    return PICK(x < 0.0f, e, ALL(1.0f)) / (e + 1.0f);
}

INLINE VF NAME(hyperbolic_tangent)(VF x) {
    const VF square = x * x, size = ABS(x);
    VF p = square * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    const VF small = p * square * x + x;
    const VF large = 1.0f - 2.0f / (NAME(exponential)(size + size) + 1.0f);
    return PICK(size < 0.625f, small, WITH_SIGN(large, SIGN_OF(x)));
}

/* The quotient of two polynomials that Eigen and XLA use as well. */
INLINE VF NAME(error_function)(VF x) {
    const VF near = NAME(clamped)(x, ALL(-4.0f), ALL(4.0f)), square = near * near;
    VF above = square * -2.72614225801306e-10f + 2.77068142495902e-08f;
    above = above * square - 2.10102402082508e-06f;
    above = above * square - 5.69250639462346e-05f;
    above = above * square - 7.34990630326855e-04f;
    above = above * square - 2.95459980854025e-03f;
    above = above * square - 1.60960333262415e-02f;
    VF below = square * -1.45660718464996e-05f - 2.13374055278905e-04f;
    below = below * square - 1.68282697438203e-03f;
    below = below * square - 7.37332916720468e-03f;
    below = below * square - 1.42647390514189e-02f;
    return near * (above / below);
}

/* Sine of x + quarters * pi/2.  Beyond MOST_REDUCED the C library computes it. */
#define MOST_REDUCED 0x1p17f
INLINE VF NAME(sine)(VF x, int quarters) {
    const VI far = ~(VI)(ABS(x) < MOST_REDUCED);
    const VD wide = __builtin_convertvector(WHERE(~far, x), VD);
    /* Two parts of pi/2; the first has 33 bits, so that its multiples are exact. */
    const VD whole = (wide * 0x1.45f306dc9c883p-1 + 0x1.8p52) - 0x1.8p52;
    const VD rest = (wide - whole * 0x1.921fb544p+0) - whole * 0x1.0b4611a626331p-34;
    const VF r = __builtin_convertvector(rest, VF), square = r * r;
    const VI n = __builtin_convertvector(whole, VI) + quarters;
    VF s = square * -1.9515295891e-4f + 8.3321608736e-3f;
    s = s * square - 1.6666654611e-1f;
    s = s * square * r + r;
    VF c = square * 2.443315711809948e-5f - 1.388731625493765e-3f;
    c = c * square + 4.166664568298827e-2f;
    c = c * square * square + (1.0f - square * 0.5f);
    const VI sign = (VI)((VU)(n & 2) << 30);
    VF result = (VF)((VI)PICK((n & 1) != 0, c, s) ^ sign);
    for (int i = 0; NAME(any)(far) && i < LANES; i++)
        if (far[i]) result[i] = quarters ? __builtin_cosf(x[i]) : __builtin_sinf(x[i]);
    return result;
}

INLINE VF NAME(mish_of)(VF x) {
    /* tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2). */
    const VF e = NAME(exponential)(NAME(smaller)(x, ALL(20.0f)));
    const VF n = e * (e + 2.0f);
    return PICK(x > 20.0f, x, x * (n / (n + 2.0f)));
}

INLINE VF NAME(hard_sigmoid)(VF x) {
    return NAME(clamped)(x + 3.0f, ALL(0.0f), ALL(6.0f)) / 6.0f;
}

INLINE VF NAME(powers)(VF a, VF b) {
    const VI other = b != 2.0f;
    VF result = a * a;
    for (int i = 0; NAME(any)(other) && i < LANES; i++)
        if (other[i]) result[i] = __builtin_powf(a[i], b[i]);
    return result;
}

INLINE VF NAME(through_half)(VF x) {
    for (int i = 0; i < LANES; i++) x[i] = half_to_float(float_to_half(x[i]));
    return x;
}

INLINE VF NAME(through_bfloat)(VF x) {
    for (int i = 0; i < LANES; i++) x[i] = bfloat_to_float(float_to_bfloat(x[i]));
    return x;
}

/* ------------------------------------------------------- the functions -- */

#define FUNCTION(name, value)                                                                 \
    static void NAME(do_##name)(const float *const *operands, const float *immediates,        \
                                int64_t count, float *out) {                                  \
        const float *const first = operands[0], *const second = operands[1];                  \
        const float *const third = operands[2];                                               \
        (void)second, (void)third, (void)immediates;                                          \
        for (int64_t i = 0; i < count; i += LANES) STORE(out + i, value);                     \
    }
#define A LOAD(first + i)
#define B LOAD(second + i)
#define C LOAD(third + i)

FUNCTION(add, A + B)
FUNCTION(subtract, A - B)
FUNCTION(multiply, A * B)
FUNCTION(true_divide, A / B)
FUNCTION(maximum, NAME(larger)(A, B))
FUNCTION(minimum, NAME(smaller)(A, B))
FUNCTION(squared_difference, (A - B) * (A - B))
FUNCTION(power, NAME(powers)(A, B))
FUNCTION(equal, TRUTH(A == B))
FUNCTION(not_equal, TRUTH(A != B))
FUNCTION(greater, TRUTH(A > B))
FUNCTION(greater_equal, TRUTH(A >= B))
FUNCTION(less, TRUTH(A < B))
FUNCTION(less_equal, TRUTH(A <= B))
FUNCTION(logical_and, TRUTH((A != 0.0f) & (B != 0.0f)))
FUNCTION(logical_or, TRUTH((A != 0.0f) | (B != 0.0f)))
FUNCTION(logical_xor, TRUTH((A != 0.0f) ^ (B != 0.0f)))
FUNCTION(logical_not, TRUTH(A == 0.0f))
FUNCTION(select, PICK(A != 0.0f, B, C))
FUNCTION(prelu, PICK(A < 0.0f, A * B, A))
FUNCTION(abs, ABS(A))
FUNCTION(negative, -A)
static inline VF NAME(sign_of)(VF x) {
    return TRUTH(x > 0.0f) - TRUTH(x < 0.0f) + WHERE(x != x, x);
}
FUNCTION(sign, NAME(sign_of)(A))
INLINE VF NAME(rounded_down)(VF x) {
    const VF whole = NAME(nearest)(x);
    return WITH_SIGN(whole - TRUTH(whole > x), SIGN_OF(x));
}
FUNCTION(floor, NAME(rounded_down)(A))
FUNCTION(ceil, -NAME(rounded_down)(-A))
FUNCTION(rint, NAME(nearest)(A))
FUNCTION(sqrt, NAME(root)(A))
FUNCTION(square, A * A)
FUNCTION(exp, NAME(exponential)(A))
FUNCTION(log, NAME(logarithm)(A))
FUNCTION(sin, NAME(sine)(A, 0))
FUNCTION(cos, NAME(sine)(A, 1))
FUNCTION(tanh, NAME(hyperbolic_tangent)(A))
FUNCTION(erf, NAME(error_function)(A))
FUNCTION(sigmoid, NAME(logistic)(A))
INLINE VF NAME(soft_plus)(VF x) {
    return NAME(larger)(x, ALL(0.0f)) + NAME(log_plus_1)(NAME(exponential)(-ABS(x)));
}
FUNCTION(softplus, NAME(soft_plus)(A))
FUNCTION(mish, NAME(mish_of)(A))
FUNCTION(hswish, A * NAME(hard_sigmoid)(A))
FUNCTION(hsigmoid, NAME(hard_sigmoid)(A))
FUNCTION(softsign, A / (ABS(A) + 1.0f))
FUNCTION(relu, PICK(A <= 0.0f, ALL(0.0f), A))
FUNCTION(gelu, (NAME(error_function)(A * 0x1.6a09e6p-1f) + 1.0f) * (A * 0.5f))
/* 1 + tanh(y) = 2 sigmoid(2 y). */
FUNCTION(gelu_tanh, A * NAME(logistic)((A + A * A * A * 0.044715f) * 1.5957691216f))
FUNCTION(swish, A * NAME(logistic)(A))
FUNCTION(clamp, NAME(clamped)(A, ALL(immediates[0]), ALL(immediates[1])))
FUNCTION(elu, PICK(A <= 0.0f, NAME(exponential_minus_1)(A) * immediates[0], A))
FUNCTION(copy, A)
FUNCTION(isnan, TRUTH(A != A))
FUNCTION(isfinite, TRUTH(ABS(A) < __builtin_inff()))
FUNCTION(to_f16, NAME(through_half)(A))
FUNCTION(to_bf16, NAME(through_bfloat)(A))

/* The nearest of the levels of a range, from 0 to the number in the second operand: in f32, and again
 * in f64 where a number is near the middle of two.  NaN stays NaN. */
static void NAME(do_nearest_level)(const float *const *operands, const float *immediates,
                                   int64_t count, float *out) {
    const float *const first = operands[0];
    const double begin = immediates[0], end = immediates[1];
    const VF low = ALL(immediates[0]), high = ALL(immediates[1]);
    const double factor = (double)operands[1][0] / (end - begin);
    const VF factor_32 = ALL((float)factor), begin_32 = ALL((float)(-begin * factor));
    const VI tie = (VI)ALL(levels_are_near(begin, end, factor) ? TIE : 0);
    for (int64_t i = 0; i < count; i += LANES) {
        const VF v = NAME(clamped)(A, low, high), level = v * factor_32 + begin_32;
        VF nearest = level + 0x1.8p23f - 0x1.8p23f;
        if (NAME(any)((VI)ABS(level - nearest) >= tie)) {
            VD wide = __builtin_convertvector(v, VD);
            wide = (wide - begin) * factor + 0x1.8p52 - 0x1.8p52;
            nearest = __builtin_convertvector(wide, VF);
        }
        STORE(out + i, nearest);
    }
}

/* The value of a level, rounded once. */
static void NAME(do_level_value)(const float *const *operands, const float *immediates,
                                 int64_t count, float *out) {
    const float *const first = operands[0];
    const double begin = immediates[0], step = (immediates[1] - begin) / operands[1][0];
    for (int64_t i = 0; i < count; i += LANES) {
        const VD value = __builtin_convertvector(A, VD) * step + begin;
        STORE(out + i, __builtin_convertvector(value, VF));
    }
}

/* The level of each number in a range of its own, which may be reversed, in f64: from 0 to the
 * immediate number.  NaN stays NaN. */
static void NAME(do_level_within)(const float *const *operands, const float *immediates,
                                  int64_t count, float *out) {
    const float *const first = operands[0], *const second = operands[1], *const third = operands[2];
    const double steps = immediates[0];
    for (int64_t i = 0; i < count; i += LANES) {
        const VF x = A, low = B, high = C;
        const VD begin = __builtin_convertvector(low, VD), end = __builtin_convertvector(high, VD);
        const VD place = (__builtin_convertvector(x, VD) - begin) * (steps / (end - begin));
        const VF inside = __builtin_convertvector(place + 0x1.8p52 - 0x1.8p52, VF);
        const VF within = PICK(x <= NAME(smaller)(low, high), ALL(0.0f), inside);
        STORE(out + i, PICK(x > NAME(larger)(low, high), ALL(immediates[0]), within));
    }
}

/* The values of levels between two numbers each, rounded once. */
static void NAME(do_value_between)(const float *const *operands, const float *immediates,
                                   int64_t count, float *out) {
    const float *const first = operands[0], *const second = operands[1], *const third = operands[2];
    const float last = immediates[0];
    for (int64_t i = 0; i < count; i += LANES) {
        const VF level = A, low = B, high = C;
        const VD begin = __builtin_convertvector(low, VD);
        const VD step = (__builtin_convertvector(high, VD) - begin) / (double)last;
        const VD value = __builtin_convertvector(level, VD) * step + begin;
        const VF inside = PICK(level == 0.0f, low, __builtin_convertvector(value, VF));
        STORE(out + i, PICK(level == last, high, inside));
    }
}

/* Write a value many times; the last vector may overlap the one before. */
static void NAME(broadcast)(float value, int64_t count, float *out) {
    for (int64_t i = 0; i < count && count < LANES; i++) out[i] = value;
    for (int64_t i = 0; i < count && count >= LANES; i += LANES)
        STORE(out + least(i, count - LANES), ALL(value));
}

#define X(name, operands, immediates) [PW_##name] = NAME(do_##name),
const struct pointwise_functions NAME(functions) = {
    .lanes = LANES,
    .broadcast = NAME(broadcast),
    .table = {POINTWISE_OPERATIONS(X)},
};
#undef X

#undef FUNCTION
#undef A
#undef B
#undef C
#undef MOST_REDUCED
