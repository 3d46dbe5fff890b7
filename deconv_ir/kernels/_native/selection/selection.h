/* TopK.  interface.h lists the arguments. */
#ifndef DECONV_SELECTION_H
#define DECONV_SELECTION_H

#include "python/call.h"

PyObject *module_select(PyObject *module, PyObject *arguments);

#endif
