/* Calls from Python: their arguments, the interpreter lock, results. */
#include "python/call.h"

#include "runtime/arithmetic.h"

#include <string.h>

/* The state of a thread that computes without the interpreter lock. */
static _Thread_local PyThreadState *unlocked;

int run_is_interrupted(void) {
    if (!unlocked) return 0;
    PyEval_RestoreThread(unlocked);
    /* A signal handler may run kernels as well. */
    unlocked = NULL;
    const int failed = PyErr_CheckSignals();
    unlocked = PyEval_SaveThread();
    return failed;
}

void begin_unlocked(void) { unlocked = PyEval_SaveThread(); }

void end_unlocked(void) {
    PyEval_RestoreThread(unlocked);
    unlocked = NULL;
}

int take_fields(PyObject *packed, void *fields, size_t bytes) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(packed, &buffer, PyBUF_SIMPLE)) return -1;
    const int fits = buffer.len == (Py_ssize_t)bytes;
    if (fits) memcpy(fields, buffer.buf, bytes);
    else
        PyErr_Format(PyExc_ValueError, "%zd bytes of fields where %zu are needed", buffer.len,
                     bytes);
    PyBuffer_Release(&buffer);
    return fits ? 0 : -1;
}

int take_call(PyObject *arguments, int count, PyObject **given, void *fields, size_t bytes) {
    if (PyTuple_Size(arguments) != count + 1) {
        PyErr_Format(PyExc_TypeError, "expected %d arrays and their fields", count);
        return -1;
    }
    for (int i = 0; i < count; i++) given[i] = PyTuple_GetItem(arguments, i);
    return take_fields(PyTuple_GetItem(arguments, count), fields, bytes);
}

int64_t threads_within(int64_t threads) { return most(1, least(threads, MOST_THREADS)); }

int take_arrays(PyObject *const *given, int count, unsigned written, Py_buffer *buffers) {
    int good = 1;
    for (int i = 0; good && i < count; i++)
        good = !PyObject_GetBuffer(given[i], &buffers[i],
                                   written >> i & 1 ? PyBUF_CONTIG : PyBUF_CONTIG_RO);
    return good;
}

int run_unlocked(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes) {
    begin_unlocked();
    const int failed =
        parallel_run(function, context, count, threads_within(threads), scratch_bytes);
    end_unlocked();
    if (failed == OUT_OF_MEMORY) PyErr_NoMemory();
    return failed;
}

PyObject *release_all(int failed, Py_buffer *buffers, int count) {
    while (count > 0) PyBuffer_Release(&buffers[--count]);
    if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "arrays do not fit");
    if (failed) return NULL;
    Py_RETURN_NONE;
}
