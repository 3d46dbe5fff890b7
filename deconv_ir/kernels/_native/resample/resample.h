/* Interpolation.  interface.h lists the arguments. */
#ifndef DECONV_RESAMPLE_H
#define DECONV_RESAMPLE_H

#include "python/call.h"

PyObject *module_resample(PyObject *module, PyObject *arguments);

#endif
