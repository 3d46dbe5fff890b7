/* Epilogues: what is applied to complete sums. */
#include "simd/functions.h"

static const signed char operands[PW_OPERATIONS] = {
#define X(name, operands, immediates) operands,
    POINTWISE_OPERATIONS(X)
#undef X
};

int epilogue_take(struct epilogue *epilogue, int64_t isa, int is_f32, int64_t activation,
                  int64_t operation) {
    if (activation < 0 || activation >= ACTIVATIONS) return 0;
    epilogue->activation = (enum activation)activation;
    epilogue->scales = epilogue->scale != 1 || epilogue->offset != 0;
    epilogue->immediates[0] = (float)epilogue->low;
    epilogue->immediates[1] = (float)epilogue->high;
    if (activation != ACT_FUNCTION) return 1;
    if (operation < 0 || operation >= PW_OPERATIONS || operands[operation] != 1)
        return 0;
    epilogue->function = BY_ISA((enum isa)isa, &functions_pointwise)->table[operation];
    return is_f32;
}
