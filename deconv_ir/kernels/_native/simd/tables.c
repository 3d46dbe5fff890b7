/* The vector code of an instruction set. */
#include "simd/microkernels.h"
#include "simd/rows.h"
#include "simd/transforms.h"

const struct microkernels *microkernels_for(enum isa isa, enum accumulator accumulator) {
#ifdef DECONV_X86
    const struct microkernels *dots = isa == ISA_AVX512 ? dots_avx512 : dots_avx2;
    if (accumulator == ACC_DOTS && isa != ISA_BASELINE && dots && has_dots(isa)) return dots;
#endif
    return BY_ISA(isa, kernels)[accumulator];
}

const struct transforms *transforms_for(enum isa isa) {
    return BY_ISA(isa, transforms);
}

enum accumulator accumulator_of(enum element element) {
    switch (element) {
    case F64: return ACC_F64;
    case I8: case I16: case I32: return ACC_U32;
    case I64: return ACC_U64;
    case U8X4: return ACC_DOTS;
    case U8X4_PLAIN: return ACC_PLAIN_DOTS;
    default: return ACC_F32;
    }
}

const struct row_functions *row_functions_of(int isa) {
    return BY_ISA(isa, &functions_rows);
}
