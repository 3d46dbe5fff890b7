/* Mean and deviation of rows, sums of rows, and softmax along an axis.  interface.h lists the
 * arguments. */
#ifndef DECONV_NORMALIZATION_H
#define DECONV_NORMALIZATION_H

#include "python/call.h"

PyObject *module_standardize(PyObject *module, PyObject *arguments);
PyObject *module_sum_rows(PyObject *module, PyObject *arguments);
PyObject *module_softmax(PyObject *module, PyObject *arguments);

#endif
