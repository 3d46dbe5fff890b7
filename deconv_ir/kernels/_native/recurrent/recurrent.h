/* LSTM and GRU over time.  interface.h lists the arguments. */
#ifndef DECONV_RECURRENT_H
#define DECONV_RECURRENT_H

#include "python/call.h"

PyObject *module_recur(PyObject *module, PyObject *arguments);

#endif
