/* The Python type of a block of memory from the pool; kernels/runtime/memory.py allocates it. */
#include "python/call.h"

#include "runtime/memory.h"

typedef struct {
    PyObject_HEAD
    void *memory;
    int64_t bytes;  /* requested */
    int64_t allocated;
} Block;

static PyObject *block_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    long long bytes;
    if (!PyArg_ParseTuple(arguments, "L", &bytes)) return NULL;
    if (bytes < 1 || bytes > PY_SSIZE_T_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "no such size");
        return NULL;
    }
    Block *self = (Block *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->bytes = bytes;
    self->memory = take_block(bytes, &self->allocated);
    if (!self->memory) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void block_dealloc(PyObject *object) {
    Block *self = (Block *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->memory) give_block(self->memory, self->allocated);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int block_buffer(PyObject *object, Py_buffer *view, int flags) {
    Block *self = (Block *)object;
    return PyBuffer_FillInfo(view, object, self->memory, (Py_ssize_t)self->bytes, 0, flags);
}

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Block(bytes): memory from a pool, to which its last reference returns it."},
    {Py_tp_new, block_new},
    {Py_tp_dealloc, block_dealloc},
    {Py_bf_getbuffer, block_buffer},
    {0, NULL},
};

PyType_Spec block_spec = {
    .name = "deconv_ir.kernels._compiled.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = block_slots,
};
