/* The vector code of an instruction set. */
#include "simd/microkernels.h"
#include "simd/rows.h"
#include "simd/transforms.h"

/* The micro-kernels of ACC_DOTS with the processor's instruction for it; NULL: without. */
static const struct microkernels *dots_for(enum isa isa) {
    const enum dots dots = dots_of(isa);
    if (dots == DOTS_NONE) return NULL;
#if defined(DECONV_X86)
    return isa == ISA_AVX512 ? dots_avx512 : dots_avx2;
#elif defined(__aarch64__)
    return dots == DOTS_MIXED ? dots_mixed : dots_signed;
#else
    return NULL;
#endif
}

const struct microkernels *microkernels_for(enum isa isa, enum accumulator accumulator) {
#ifdef DECONV_X86
    if (accumulator == ACC_PAIRS && isa == ISA_AVX512)
        return processor_has_pairs() ? pairs_avx512 : NULL;
#endif
    const struct microkernels *dots = accumulator == ACC_DOTS ? dots_for(isa) : NULL;
    return dots ? dots : BY_ISA(isa, kernels)[accumulator];
}

int has_pairs(void) {
    return isa_available(ISA_AVX512) && microkernels_for(ISA_AVX512, ACC_PAIRS) != NULL;
}

int has_dots(enum isa isa) {
    return dots_for(isa) != NULL;
}

const struct transforms *transforms_for(enum isa isa, enum element element) {
    return element == I16X2 ? BY_ISA(isa, transforms_of_pairs) : BY_ISA(isa, transforms);
}

enum accumulator accumulator_of(enum element element) {
    switch (element) {
    case F64: return ACC_F64;
    case I8: case I16: case I32: return ACC_U32;
    case I64: return ACC_U64;
    case U8X4: return ACC_DOTS;
    case I16X2: return ACC_SHORTS;
    case BF16X2: return ACC_PAIRS;
    default: return ACC_F32;
    }
}

const struct row_functions *row_functions_of(int isa) {
    return BY_ISA(isa, &functions_rows);
}
