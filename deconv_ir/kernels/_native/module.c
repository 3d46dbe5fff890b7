/* The Python module: its types and functions. */
#include "layer/layer.h"
#include "normalization/normalization.h"
#include "pointwise/pointwise.h"
#include "pooling/pooling.h"
#include "products/products.h"
#include "python/call.h"
#include "quantized/quantized.h"
#include "recurrent/recurrent.h"
#include "resample/resample.h"
#include "runtime/cpu.h"
#include "runtime/memory.h"
#include "sampling/sampling.h"
#include "selection/selection.h"

static PyObject *module_isas(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *result = PyList_New(0);
    for (int isa = 0; result && isa < ISAS; isa++) {
        if (!isa_available(isa)) continue;
        PyObject *name = PyUnicode_FromString(isa_name((enum isa)isa));
        if (!name || PyList_Append(result, name)) Py_CLEAR(result);
        Py_XDECREF(name);
    }
    return result;
}

static PyObject *module_has_pairs(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyBool_FromLong(has_pairs());
}

static PyObject *module_has_dots(PyObject *module, PyObject *isa) {
    (void)module;
    const long number = PyLong_AsLong(isa);
    if (number == -1 && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(isa_available(number) && has_dots((enum isa)number));
}

static PyObject *module_processor(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    struct processor p;
    processor_ask(&p);
    return Py_BuildValue("{s:s,s:i,s:i,s:L,s:L,s:O,s:O}", "vendor", p.vendor, "family", p.family,
                         "model", p.model, "level2_bytes", (long long)p.level2, "level3_bytes",
                         (long long)p.level3, "lowered", p.lowered ? Py_True : Py_False,
                         "is_virtual", p.is_virtual ? Py_True : Py_False);
}

/* Each addition needs the result of the one before it. */
static PyObject *module_add_in_turn(PyObject *module, PyObject *argument) {
    (void)module;
    const long long count = PyLong_AsLongLong(argument);
    if (PyErr_Occurred()) return NULL;
    uint64_t sum = (uint64_t)count;
    for (long long i = 0; i < count; i += 8)
        for (int unrolled = 0; unrolled < 8; unrolled++) {
            sum += (uint64_t)count;
            __asm__ volatile("" : "+r"(sum));
        }
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *module_keep(PyObject *module, PyObject *arguments) {
    (void)module;
    long long most_kept, most_in_all;
    if (!PyArg_ParseTuple(arguments, "LL", &most_kept, &most_in_all)) return NULL;
    keep_blocks(most_kept, most_in_all);
    Py_RETURN_NONE;
}

/* interface.h lists the arguments. */
static PyMethodDef module_methods[] = {
    {"quantize", module_quantize, METH_VARARGS, "Replace f32 by codes of four channels."},
    {"pair_channels", module_pair_channels, METH_VARARGS, "Round f32 to pairs of bf16."},
    {"max_codes", module_max_codes, METH_VARARGS, "Pool codes."},
    {"combine_codes", module_combine_codes, METH_VARARGS, "Add or multiply numbers given as codes."},
    {"average_codes", module_average_codes, METH_VARARGS, "Sums or means of numbers given as codes."},
    {"resample", module_resample, METH_VARARGS, "Interpolate the last two of three axes."},
    {"recur", module_recur, METH_VARARGS, "Compute an LSTM or a GRU over time."},
    {"pack_columns", module_pack_columns, METH_VARARGS, "Pack a matrix for multiply()."},
    {"multiply_codes", module_multiply_codes, METH_VARARGS, "Multiply by a matrix of 4-bit codes."},
    {"multiply_compressed", module_multiply_compressed, METH_VARARGS,
     "Multiply by a compressed matrix."},
    {"multiply_quantized", module_multiply_quantized, METH_VARARGS,
     "Multiply data, as codes, by a matrix of codes."},
    {"multiply", module_multiply, METH_VARARGS, "Multiply stacks of matrices."},
    {"attend", module_attend, METH_VARARGS, "Compute attention."},
    {"copy_matrices", module_copy_matrices, METH_VARARGS, "Make matrices contiguous."},
    {"average_windows", module_average_windows, METH_VARARGS,
     "Average windows of the last three of four axes."},
    {"pool", module_pool, METH_VARARGS, "Pool the last three of four axes."},
    {"sample", module_sample, METH_VARARGS, "Sample images at positions: GridSample."},
    {"select", module_select, METH_VARARGS, "Select elements along an axis: TopK."},
    {"standardize", module_standardize, METH_VARARGS, "Standardise rows."},
    {"sum_rows", module_sum_rows, METH_VARARGS, "Sum rows, or average them."},
    {"softmax", module_softmax, METH_VARARGS, "Compute SoftMax or LogSoftmax along an axis."},
    {"keep", module_keep, METH_VARARGS,
     "keep(most_kept, most_in_all): how much memory of results is used again, and the bytes of all "
     "results beyond which none is kept"},
    {"processor", module_processor, METH_NOARGS, "processor() -> dict: what CPUID tells"},
    {"add_in_turn", module_add_in_turn, METH_O,
     "add_in_turn(count): dependent additions, one cycle each: the clock, for tools/fit_costs.py"},
    {"has_pairs", module_has_pairs, METH_NOARGS,
     "has_pairs() -> whether an instruction sums products of bf16"},
    {"has_dots", module_has_dots, METH_O,
     "has_dots(isa) -> whether an instruction sums products of four bytes, with vectors of this set"},
    {"isas", module_isas, METH_NOARGS, "isas() -> names of instruction sets, the best last"},
    {NULL, NULL, 0, NULL},
};

#ifndef INTERFACE
#error "setup.py defines INTERFACE: the hash of interface.h"
#endif

/* INTERFACE, and the constants from which products.py computes the scratch of products. */
static int add_constants(PyObject *module) {
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"INTERFACE", INTERFACE},
        {"PRODUCT_ROWS", MOST_ROWS},
        {"PRODUCT_DEPTH", MOST_DEPTH},
        {"PRODUCT_LANES", MOST_PRODUCT_LANES},
        {"WINDOWS_BEYOND", WINDOWS_BEYOND},
        {"PRODUCT_COLUMNS", MOST_PANEL * MOST_PRODUCT_LANES},
        {"ATTENTION_WEIGHT_BYTES", MOST_WEIGHT_BYTES},
        {"ATTENTION_VECTORS", LEAST_VECTORS},
        {"ATTENTION_MASKED_KEYS", MASKED_KEYS},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value)) return -1;
    return 0;
}

/* Add a new object, or fail if it is NULL. */
static int add_object(PyObject *module, const char *name, PyObject *object) {
    const int failed = !object || PyModule_AddObjectRef(module, name, object);
    Py_XDECREF(object);
    return failed;
}

static int add_type(PyObject *module, PyType_Spec *spec, const char *name) {
    return add_object(module, name, PyType_FromSpec(spec));
}

static int module_exec(PyObject *module) {
    set_signal_check(run_is_interrupted);
    if (add_constants(module)) return -1;
    if (add_object(module, "OPERATIONS", pointwise_operations()) ||
        add_object(module, "COST_CONSTANTS", cost_constants_table()) ||
        add_type(module, &kernel_spec, "Kernel") ||
        add_type(module, &packer_spec, "Packer") ||
        add_type(module, &block_spec, "Block") || add_type(module, &pointwise_spec, "Program") ||
        add_type(module, &dequantizer_spec, "Dequantizer"))
        return -1;
    return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_compiled",
    .m_doc = "Compiled kernels; see native.py, the only caller.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&module_definition); }
