/* The Python type of elementwise programs.
 *
 * kernels/pointwise.py is the only caller.  Memory safety is checked here:
 * register numbers, the sizes of buffers, and that shapes can be broadcast.
 */
#include "pointwise/pointwise.h"

#include <string.h>

typedef struct {
    PyObject_HEAD
    struct pointwise_program program;
    int trailing[MOST_INPUTS]; /* axes of extent 1 that are appended to a shape */
} Program;

static const struct {
    const char *name;
    int operands, immediates;
} operations[PW_OPERATIONS] = {
#define X(name, operands, immediates) {#name, operands, immediates},
    POINTWISE_OPERATIONS(X)
#undef X
};

static const struct pointwise_functions *functions_for(enum isa isa) {
    return BY_ISA(isa, &functions_pointwise);
}

static int refuse(const char *message) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

/* Copy up to `most` records of a size.  Returns their number, or -1 with an exception. */
static int take_records(PyObject *packed, void *records, size_t bytes, int most, const char *many) {
    const Py_ssize_t length = PyObject_Size(packed);
    const Py_ssize_t count = length < 0 ? -1 : length / (Py_ssize_t)bytes;
    if (count < 0 || count > most) return refuse(many);
    return take_fields(packed, records, (size_t)count * bytes) ? -1 : (int)count;
}

static int take_inputs(Program *self, PyObject *packed) {
    struct pointwise_program *p = &self->program;
    struct input_fields inputs[MOST_INPUTS];
    p->inputs = take_records(packed, inputs, sizeof *inputs, MOST_INPUTS, "too many inputs");
    for (int i = 0; i < p->inputs; i++) {
        const struct input_fields *f = &inputs[i];
        if (f->element < 0 || f->element >= PW_ELEMENTS || f->trailing < 0 ||
            f->trailing > MOST_DIMS)
            return refuse("invalid input");
        p->input_elements[i] = (enum pointwise_element)f->element;
        self->trailing[i] = (int)f->trailing;
    }
    return p->inputs;
}

static int take_constants(struct pointwise_program *p, PyObject *packed) {
    double values[MOST_CONSTANTS];
    p->constants =
        take_records(packed, values, sizeof *values, MOST_CONSTANTS, "too many constants");
    for (int i = 0; i < p->constants; i++) p->constant_values[i] = (float)values[i];
    return p->constants;
}

/* Returns the number of instructions, or -1. */
static int take_code(struct pointwise_program *p, PyObject *packed) {
    struct instruction_fields code[MOST_INSTRUCTIONS];
    const int given = p->inputs + p->constants;
    p->instructions =
        take_records(packed, code, sizeof *code, MOST_INSTRUCTIONS, "too many instructions");
    if (p->instructions < 1) return refuse("no instructions");
    p->registers = given;
    for (int i = 0; i < p->instructions; i++) {
        const struct instruction_fields *f = &code[i];
        const int64_t operands[MOST_OPERANDS] = {f->operand, f->second, f->third};
        struct pointwise_instruction *in = &p->code[i];
        int good = f->operation >= 0 && f->operation < PW_OPERATIONS;
        /* The registers of inputs and constants keep their values from block to block. */
        good &= f->out >= given && f->out < MOST_REGISTERS;
        for (int k = 0; k < MOST_OPERANDS; k++)
            good &= operands[k] >= 0 && operands[k] < p->registers;
        if (!good) return refuse("invalid instruction");
        in->operation = (int)f->operation, in->out = (int)f->out;
        for (int k = 0; k < MOST_OPERANDS; k++) in->operands[k] = (int)operands[k];
        in->immediates[0] = (float)f->immediate;
        in->immediates[1] = (float)f->second_immediate;
        if (in->out >= p->registers) p->registers = in->out + 1;
    }
    return p->instructions;
}

/* Program(inputs, constants, instructions, fields) */
static PyObject *program_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *given[3];
    struct program_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    Program *self = (Program *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    struct pointwise_program *p = &self->program;
    int failed = 0;
    if (!isa_available(f.isa) || f.output < 0 || f.output >= PW_ELEMENTS)
        failed = refuse("invalid program");
    if (failed || take_inputs(self, given[0]) < 0 || take_constants(p, given[1]) < 0 ||
        take_code(p, given[2]) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    p->output_element = (enum pointwise_element)f.output;
    p->functions = functions_for((enum isa)f.isa);
    p->kernels = microkernels_for((enum isa)f.isa, ACC_F32);
    return (PyObject *)self;
}

static void program_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* Record the layout of an input.  Returns 0 if it does not fit the output. */
static int place_input(struct pointwise_arrays *a, int input, const Py_buffer *out,
                       const Py_buffer *in, int trailing, int64_t size) {
    int64_t count = 1;
    for (int d = 0; d < in->ndim; d++) count *= in->shape[d];
    a->inputs[input] = in->buf;
    memset(a->steps[input], 0, sizeof a->steps[input]);
    if (in->itemsize != size) return 0;
    if (count == 1) return 1;
    const int lead = out->ndim - in->ndim - trailing;
    if (lead < 0) return 0;
    for (int d = 0; d < in->ndim; d++) {
        if (in->shape[d] == 1) continue;
        if (in->shape[d] != out->shape[d + lead]) return 0;
        a->steps[input][d + lead] = in->strides[d] / size;
    }
    return 1;
}

/* Sort the axes by the output's memory layout, and join axes that are contiguous in every array.
 * Returns whether the output has no gaps. */
static int order_axes(struct pointwise_arrays *a, int inputs, const Py_buffer *out) {
    int order[MOST_DIMS], count = 0, dims = 0;
    for (int d = 0; d < out->ndim; d++) {
        if (out->shape[d] == 1) continue;
        int at = count++;
        for (; at > 0 && out->strides[order[at - 1]] < out->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t gapless = out->itemsize;
    for (int k = count - 1; k >= 0; k--) {
        if (out->strides[order[k]] != gapless) return 0;
        gapless *= out->shape[order[k]];
    }
    int64_t steps[MOST_INPUTS][MOST_DIMS];
    for (int k = 0; k < count; k++) {
        const int64_t extent = out->shape[order[k]];
        int joined = dims > 0;
        for (int i = 0; i < inputs; i++)
            joined = joined && steps[i][dims - 1] == extent * a->steps[i][order[k]];
        if (!joined) a->shape[dims++] = 1;
        a->shape[dims - 1] *= extent;
        for (int i = 0; i < inputs; i++) steps[i][dims - 1] = a->steps[i][order[k]];
    }
    if (dims == 0) {
        a->shape[dims++] = 1;
        for (int i = 0; i < inputs; i++) steps[i][0] = 0;
    }
    a->dims = dims;
    memcpy(a->steps, steps, sizeof steps);
    return 1;
}

static int is_aligned(const Py_buffer *buffer) {
    uintptr_t bits = (uintptr_t)buffer->buf;
    for (int d = 0; d < buffer->ndim; d++) bits |= (uintptr_t)buffer->strides[d];
    return bits % (uintptr_t)buffer->itemsize == 0;
}

/* run(inputs, out, threads) -> bool: whether it was computed; False for arrays whose elements are
 * not aligned to their size, and for an output with gaps. */
static PyObject *program_run(PyObject *object, PyObject *arguments) {
    Program *self = (Program *)object;
    const struct pointwise_program *p = &self->program;
    PyObject *inputs, *result;
    long long threads;
    if (!PyArg_ParseTuple(arguments, "OOL", &inputs, &result, &threads)) return NULL;
    struct pointwise_arrays arrays;
    Py_buffer out, in[MOST_INPUTS];
    if (PyObject_GetBuffer(result, &out, PyBUF_STRIDED)) return NULL;
    int held = 0, good = PySequence_Size(inputs) == p->inputs && out.ndim <= MOST_DIMS &&
                         out.itemsize == pointwise_size(p->output_element);
    int fits = is_aligned(&out);
    for (int i = 0; good && i < p->inputs; i++) {
        PyObject *item = PySequence_GetItem(inputs, i);
        good = item && !PyObject_GetBuffer(item, &in[i], PyBUF_STRIDED_RO);
        Py_XDECREF(item);
        if (!good) break;
        held++;
        fits &= is_aligned(&in[i]);
        good = place_input(&arrays, i, &out, &in[i], self->trailing[i],
                           pointwise_size(p->input_elements[i]));
    }
    int failed = -1;
    if (!good) refuse("arrays do not fit the program");
    else if (out.len == 0) failed = 0;
    else {
        fits = fits && order_axes(&arrays, p->inputs, &out);
        failed = 0;
    }
    if (good && fits && out.len > 0) {
        arrays.out = out.buf;
        arrays.count = out.len / out.itemsize;
        begin_unlocked();
        failed = pointwise_execute(p, &arrays, threads_within(threads));
        end_unlocked();
        if (failed == OUT_OF_MEMORY) PyErr_NoMemory();
    }
    for (int i = 0; i < held; i++) PyBuffer_Release(&in[i]);
    PyBuffer_Release(&out);
    if (failed) return NULL;
    return PyBool_FromLong(fits);
}

static PyMethodDef program_methods[] = {
    {"run", program_run, METH_VARARGS, "run(inputs, out, threads) -> bool"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "An elementwise program."},
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

PyType_Spec pointwise_spec = {
    .name = "deconv_ir.kernels._compiled.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = program_slots,
};

/* Name, number of operands and of immediate values of each operation. */
PyObject *pointwise_operations(void) {
    PyObject *result = PyTuple_New(PW_OPERATIONS);
    for (int i = 0; result && i < PW_OPERATIONS; i++) {
        PyObject *row = Py_BuildValue("(sii)", operations[i].name, operations[i].operands,
                                      operations[i].immediates);
        if (!row || PyTuple_SetItem(result, i, row)) Py_CLEAR(result);
    }
    return result;
}
