/* The functions of elementwise programs and of epilogues, on vectors of f32. */
#ifndef DECONV_FUNCTIONS_H
#define DECONV_FUNCTIONS_H

#include "simd/microkernels.h"

/* Name, number of operands and number of immediate values.  The names are those of NumPy's ufuncs,
 * where they exist. */
#define POINTWISE_OPERATIONS(X)                                                               \
    X(add, 2, 0) X(subtract, 2, 0) X(multiply, 2, 0) X(true_divide, 2, 0)                     \
    X(maximum, 2, 0) X(minimum, 2, 0) X(squared_difference, 2, 0) X(power, 2, 0)              \
    X(equal, 2, 0) X(not_equal, 2, 0) X(greater, 2, 0) X(greater_equal, 2, 0)                 \
    X(less, 2, 0) X(less_equal, 2, 0)                                                         \
    X(logical_and, 2, 0) X(logical_or, 2, 0) X(logical_xor, 2, 0) X(logical_not, 1, 0)        \
    X(select, 3, 0) X(prelu, 2, 0)                                                            \
    X(abs, 1, 0) X(negative, 1, 0) X(sign, 1, 0) X(floor, 1, 0) X(ceil, 1, 0) X(rint, 1, 0)   \
    X(sqrt, 1, 0) X(square, 1, 0) X(exp, 1, 0) X(log, 1, 0) X(sin, 1, 0) X(cos, 1, 0)         \
    X(tanh, 1, 0) X(erf, 1, 0) X(sigmoid, 1, 0) X(softplus, 1, 0) X(mish, 1, 0)               \
    X(hswish, 1, 0) X(hsigmoid, 1, 0) X(softsign, 1, 0) X(relu, 1, 0) X(gelu, 1, 0)           \
    X(gelu_tanh, 1, 0) X(swish, 1, 0) X(clamp, 1, 2) X(elu, 1, 1)                             \
    X(copy, 1, 0) X(isnan, 1, 0) X(isfinite, 1, 0)                                       \
    X(to_f16, 1, 0) X(to_bf16, 1, 0) X(nearest_level, 2, 2) X(level_value, 2, 2)              \
    X(level_within, 3, 1) X(value_between, 3, 1)

enum pointwise_operation {
#define X(name, operands, immediates) PW_##name,
    POINTWISE_OPERATIONS(X)
#undef X
    PW_OPERATIONS
};

struct pointwise_functions {
    int lanes;
    void (*broadcast)(float value, int64_t count, float *out);
    pointwise_function table[PW_OPERATIONS];
};

extern const struct pointwise_functions functions_pointwise_baseline;
#ifdef DECONV_X86
extern const struct pointwise_functions functions_pointwise_avx2;
extern const struct pointwise_functions functions_pointwise_avx512;
#endif

/* Set an epilogue from the fields of a struct that has EPILOGUE_FIELDS, for f32 or another type.
 * Returns 0 if there is no such activation or function. */
int epilogue_take(struct epilogue *epilogue, int64_t isa, int is_f32, int64_t activation,
                  int64_t operation);
#define EPILOGUE_OF(f)                                                                        \
    {.low = (f).low, .high = (f).high, .slope = (f).slope, .scale = (float)(f).scale,         \
     .offset = (float)(f).offset}

#endif
