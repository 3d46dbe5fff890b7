/* Codes of convolutions in integers.  interface.h lists the arguments. */
#ifndef DECONV_QUANTIZED_H
#define DECONV_QUANTIZED_H

#include "python/call.h"

PyObject *module_quantize(PyObject *module, PyObject *arguments);
PyObject *module_pair_channels(PyObject *module, PyObject *arguments);
PyObject *module_max_codes(PyObject *module, PyObject *arguments);
PyObject *module_add_codes(PyObject *module, PyObject *arguments);
PyObject *module_dequantize(PyObject *module, PyObject *arguments);

#endif
