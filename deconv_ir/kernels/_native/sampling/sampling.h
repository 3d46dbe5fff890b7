/* GridSample.  interface.h lists the arguments. */
#ifndef DECONV_SAMPLING_H
#define DECONV_SAMPLING_H

#include "python/call.h"

PyObject *module_sample(PyObject *module, PyObject *arguments);

#endif
