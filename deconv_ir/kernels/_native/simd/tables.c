/* The vector code of an instruction set. */
#include "simd/microkernels.h"
#include "simd/rows.h"
#include "simd/transforms.h"

const struct microkernels *microkernels_for(enum isa isa, enum accumulator accumulator) {
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
    default: return ACC_F32;
    }
}

const struct row_functions *row_functions_of(int isa) {
    return BY_ISA(isa, &functions_rows);
}
