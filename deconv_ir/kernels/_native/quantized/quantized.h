/* Codes of convolutions in integers.  interface.h lists the arguments. */
#ifndef DECONV_QUANTIZED_H
#define DECONV_QUANTIZED_H

#include "python/call.h"
#include "quantized/dequantize.h"

/* The dequantization of a Python object, or NULL with an exception set. */
const struct dequantization *dequantization_of(PyObject *object);
extern PyType_Spec dequantizer_spec; /* quantized/object.c */

PyObject *module_quantize(PyObject *module, PyObject *arguments);
PyObject *module_pair_channels(PyObject *module, PyObject *arguments);
PyObject *module_max_codes(PyObject *module, PyObject *arguments);
PyObject *module_combine_codes(PyObject *module, PyObject *arguments);
PyObject *module_average_codes(PyObject *module, PyObject *arguments);

#endif
