/* Max and average pooling.  interface.h lists the arguments. */
#ifndef DECONV_POOLING_H
#define DECONV_POOLING_H

#include "python/call.h"

PyObject *module_average_windows(PyObject *module, PyObject *arguments);
PyObject *module_pool(PyObject *module, PyObject *arguments);

#endif
