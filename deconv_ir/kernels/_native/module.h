/* The functions of the Python module, and how they take arrays, run and return. */
#ifndef DECONV_MODULE_H
#define DECONV_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "native.h"

/* Get contiguous buffers; those in the bit set `written` are to be written.  All are to be
 * released afterwards, and are zeros before.  Returns whether it got them. */
int take_arrays(PyObject *const *given, int count, unsigned written, Py_buffer *buffers);
/* As parallel_run(), without the interpreter lock; sets an exception where it fails. */
int run_unlocked(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes);
/* Release buffers, those that are zeros too.  Returns None, or NULL with an exception: arrays that
 * do not fit where none is set. */
PyObject *release_all(int failed, Py_buffer *buffers, int count);

#endif
