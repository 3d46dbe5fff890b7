/* Calls from Python: their arguments, the interpreter lock, results. */
#ifndef DECONV_CALL_H
#define DECONV_CALL_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "runtime/threads.h"

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

/* Whether a signal ends the calling thread's run; if so, its exception is set. */
int run_is_interrupted(void);
/* Release the interpreter lock, and acquire it again. */
void begin_unlocked(void);
void end_unlocked(void);

extern PyType_Spec block_spec; /* python/block.c */

#endif
