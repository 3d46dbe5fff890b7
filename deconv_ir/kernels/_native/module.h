/* The functions of the Python module, and helpers for arguments, runs and results. */
#ifndef DECONV_MODULE_H
#define DECONV_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "native.h"

/* Read a call: `count` objects, which the caller does not own, then packed fields of this size.
 * Returns 0, or -1 with an exception. */
int take_call(PyObject *arguments, int count, PyObject **given, void *fields, size_t bytes);
/* Copy packed fields, or records of them, of this size.  Returns 0, or -1 with an exception. */
int take_fields(PyObject *packed, void *fields, size_t bytes);
/* A number of threads that runs can have. */
int64_t threads_within(int64_t threads);
/* Get contiguous buffers; the bit set `written` has those that are written to.  The caller zeroes
 * all before and releases them afterwards.  Returns whether all were obtained. */
int take_arrays(PyObject *const *given, int count, unsigned written, Py_buffer *buffers);
/* Call parallel_run() without the interpreter lock; sets an exception on failure. */
int run_unlocked(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes);
/* Release buffers, zeroed ones too.  Returns None, or NULL with an exception, by default that
 * arrays do not fit. */
PyObject *release_all(int failed, Py_buffer *buffers, int count);

/* The constants of the cost model, as ((name, value), ...). */
PyObject *cost_constants_table(void);

#endif
