/* Elementwise programs: a chain or small tree of operations, computed block by block.
 *
 * A program reads inputs, which are broadcast to the shape of the output, and
 * writes one output.  Its registers are blocks of f32 in the first-level cache;
 * an instruction computes one register of up to three others.  The work on a block outweighs the
 * interpretation, and memory is read and written once.
 */
#ifndef DECONV_POINTWISE_H
#define DECONV_POINTWISE_H

#include "python/call.h"
#include "simd/functions.h"

#define POINTWISE_BLOCK 512 /* elements of a register */
#define MOST_OPERANDS 3
#define MOST_IMMEDIATES 2
#define MOST_INPUTS 8
#define MOST_CONSTANTS 16
#define MOST_REGISTERS 32 /* inputs and constants included */
#define MOST_INSTRUCTIONS 64
#define MOST_DIMS 8

struct pointwise_instruction {
    int operation, out;
    int operands[MOST_OPERANDS];
    float immediates[MOST_IMMEDIATES];
};

/* Registers: the inputs, the constants, then the results of the instructions; the last instruction
 * computes the output. */
struct pointwise_program {
    const struct pointwise_functions *functions;
    const struct microkernels *kernels; /* for conversions of elements */
    int inputs, constants, registers, instructions;
    enum pointwise_element input_elements[MOST_INPUTS], output_element;
    float constant_values[MOST_CONSTANTS];
    struct pointwise_instruction code[MOST_INSTRUCTIONS];
};

/* The arrays of a run; axes of extent 1 and axes that can be joined are left out. */
struct pointwise_arrays {
    int dims;
    int64_t shape[MOST_DIMS], count; /* of the output, which is contiguous */
    const char *inputs[MOST_INPUTS];
    int64_t steps[MOST_INPUTS][MOST_DIMS]; /* elements; 0 if an input is broadcast */
    char *out;
};

static inline int64_t pointwise_size(enum pointwise_element element) {
    static const signed char sizes[PW_ELEMENTS] = {4, 2, 2, 1};
    return sizes[element];
}

/* Returns the result of parallel_run(). */
int pointwise_execute(const struct pointwise_program *program,
                      const struct pointwise_arrays *arrays, int64_t threads);

extern PyType_Spec pointwise_spec;
/* A dict: the operations by name, with their numbers of operands and immediate values. */
PyObject *pointwise_operations(void);

#endif
