/* The Python type of a layer with its weights.
 *
 * native.py is the only caller and checks every argument first.  Memory safety depends on the sizes
 * of buffers, which are checked again here.
 */
#include "layer/layer.h"
#include "simd/functions.h"

#include <stdlib.h>
#include <string.h>

static void kernel_dealloc(PyObject *object) {
    Kernel *self = (Kernel *)object;
    PyTypeObject *type = Py_TYPE(object);
    plan_release(self->last);
    packing_free(&self->k.packing);
    for (int i = 0; i < KEPT_FORMS; i++) form_release(self->forms[i]);
    free(self->cached);
    free(self->k.packed);
    free(self->k.bias);
    if (self->k.codes) {
        free(self->k.codes->scales);
        free(self->k.codes->zeros);
        free(self->k.codes);
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

Kernel *kernel_of(PyObject *object) {
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)kernel_dealloc)
        return (Kernel *)object;
    PyErr_SetString(PyExc_TypeError, "not a Kernel");
    return NULL;
}

int kernel_allocate(Kernel *self) {
    if (!self->k.packed)
        self->k.packed = allocate_weights(
            packed_size(&self->k, self->k.problem.groups * self->k.packing.group_size));
    return self->k.packed ? 0 : -1;
}

/* Copy numbers of output channels; vectors may read a little past the last. */
static float *copy_numbers(const Py_buffer *given, int64_t channels) {
    float *copy = calloc((size_t)channels + CACHE_LINE, sizeof *copy);
    if (copy) memcpy(copy, given->buf, (size_t)given->len);
    return copy;
}

/* Store what computes weights from codes: numbers, scales and zeros.  Returns 0, or -1 with an exception
 * set. */
static int take_codes(Kernel *self, const Py_buffer *given, int64_t halves) {
    const struct problem *problem = &self->k.problem;
    const int64_t channels = problem->groups * problem->channels_out;
    if (!is_compressed(problem)) return 0;
    const int four = problem->form == COMPRESSED_4;
    const int64_t numbers = four ? CODES : problem->form == COMPRESSED_TABLE ? BYTE_CODES : 0;
    /* Two codes share a byte only if they are always unpacked together. */
    if (four && !has_whole_pairs(problem, &self->k.packing)) self->k.problem.form = COMPRESSED_TABLE;
    if (numbers && !buffer_has(&given[0], numbers * (int64_t)sizeof(float))) return -1;
    for (int i = 1; i < 3; i++)
        if (given[i].obj && !buffer_has(&given[i], channels * (int64_t)sizeof(float))) return -1;
    struct filter_codes *codes = self->k.codes = calloc(1, sizeof *codes);
    if (codes) {
        codes->halves = halves != 0;
        if (numbers) memcpy(codes->numbers, given[0].buf, (size_t)numbers * sizeof(float));
        for (int64_t i = numbers; numbers && i < BYTE_CODES; i++)
            codes->numbers[i] = codes->numbers[i - numbers];
        if (given[1].obj) codes->scales = copy_numbers(&given[1], channels);
        if (given[2].obj) codes->zeros = copy_numbers(&given[2], channels);
    }
    if (!codes || (given[1].obj && !codes->scales) || (given[2].obj && !codes->zeros)) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* Store the layer and the bias. */
static int kernel_prepare(Kernel *self, const Py_buffer *bias) {
    const struct problem *problem = &self->k.problem;
    const enum element element = (enum element)problem->element;
    const int size = element_size(element);
    const int64_t filter_bytes =
        product_of((int64_t[]){size, problem->groups, problem->channels_in, problem->channels_out,
                            problem->kernel[0], problem->kernel[1], problem->kernel[2]}, 7);
    const int64_t bias_bytes =
        product_of((int64_t[]){size, problem->groups, problem->channels_out}, 3);
    if (filter_bytes < 0 || filter_bytes > MOST_SUM / 8) {
        PyErr_SetString(PyExc_ValueError, "no such layer");
        return -1;
    }
    if (bias->obj && !buffer_has(bias, bias_bytes)) return -1;
    const int64_t channels = bias_bytes / size;
    self->k.kernels = microkernels_for((enum isa)problem->isa, accumulator_of(element));
    if (!self->k.kernels) {
        PyErr_SetString(PyExc_ValueError, "no such layer");
        return -1;
    }
    self->finite = 1;
    self->takes_weights = -1;
    if (packing_make(problem, self->k.kernels, &self->k.packing)) goto no_memory;
    if (bias->obj) {
        /* Vectors may read a little past the last bias. */
        self->k.bias = calloc((size_t)(channels * self->k.kernels->size) + CACHE_LINE * MAX_ROWS, 1);
        if (!self->k.bias) goto no_memory;
        self->k.kernels->load(element, bias->buf, 1, channels, self->k.bias);
    }
    return 0;
no_memory:
    PyErr_NoMemory();
    return -1;
}

static int is_filled(const Kernel *self) {
    return self->filled == kernel_rows(self) || !self->k.packing.group_size;
}

/* Bytes of the packed filter; and of them, those that are kept: 0 if transformed weights replaced it. */
static int64_t filter_bytes(const Kernel *self) {
    return packed_size(&self->k, self->k.problem.groups * self->k.packing.group_size);
}
static int64_t kept_bytes(const Kernel *self) {
    return self->forms[0] && !is_filled(self) ? 0 : filter_bytes(self);
}

int kernel_is_empty(const Kernel *self) {
    return !self->users && !self->filled && self->k.packing.group_size;
}

/* fill(buffer, first, swapped, threads): pack the next rows of the filter, or start again with the
 * first; all rows if its first two axes are swapped. */
static PyObject *kernel_fill(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    const enum element element = (enum element)self->k.problem.element;
    const int64_t rows = kernel_rows(self);
    const int64_t weights = self->k.problem.groups * self->k.packing.group_size / most(rows, 1);
    const int64_t row_bytes = weights * given_size(&self->k);
    Py_buffer part;
    long long first, threads;
    int swapped;
    if (!PyArg_ParseTuple(arguments, "y*LpL", &part, &first, &swapped, &threads)) return NULL;
    const int64_t count = row_bytes ? part.len / row_bytes : 0;
    int failed = self->users || (self->filled == rows && rows > 0); /* runs may have begun */
    if (failed || count * row_bytes != part.len || (first != 0 && first != self->filled) ||
        first > rows - count || (swapped && count != rows)) {
        PyErr_Format(PyExc_ValueError, "a buffer of %zd bytes is not a part of the filter",
                     part.len);
        failed = 1;
    } else {
        void *wide = part.buf;
        failed = kernel_allocate(self);
        if (!failed && !self->k.codes && element_size(element) != self->k.kernels->size) {
            wide = allocate_weights(count * weights * self->k.kernels->size);
            failed = wide == NULL;
            if (!failed) self->k.kernels->load(element, part.buf, 1, count * weights, wide);
        }
        if (failed) {
            PyErr_NoMemory();
        } else {
            self->users++;
            begin_unlocked();
            const int found = pack_rows(&self->k, first, count, wide, swapped, threads);
            end_unlocked();
            self->users--;
            failed = found < 0;
            self->finite &= !found;
            if (!failed) self->filled = first + count;
        }
        if (wide != part.buf) free(wide);
    }
    PyBuffer_Release(&part);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* read(descriptor, offset, threads): read the whole filter from a file and pack it, unless the file
 * is too short or cannot be read. */
static PyObject *kernel_read(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    int descriptor;
    long long offset, threads;
    if (!PyArg_ParseTuple(arguments, "iLL", &descriptor, &offset, &threads)) return NULL;
    if (self->users || self->filled || self->k.codes) {
        PyErr_SetString(PyExc_ValueError, "the filter is packed");
        return NULL;
    }
    if (offset < 0 || offset > MOST_SUM) Py_RETURN_FALSE;
    if (kernel_allocate(self)) return PyErr_NoMemory();
    self->users++;
    begin_unlocked();
    const int found = read_rows(&self->k, descriptor, offset, threads, NULL);
    end_unlocked();
    self->users--;
    if (found == OUT_OF_MEMORY) return PyErr_NoMemory();
    if (found < 0) return NULL;
    if (found == CANNOT_READ) Py_RETURN_FALSE;
    self->finite &= !found;
    self->filled = kernel_rows(self);
    Py_RETURN_TRUE;
}

/* release(): free the packed weights, unless a run uses them; they can be packed again. */
static PyObject *kernel_release(PyObject *object, PyObject *unused) {
    (void)unused;
    Kernel *self = (Kernel *)object;
    if (!self->users && (is_filled(self) || self->forms[0])) {
        plan_release(self->last);
        self->last = NULL;
        for (int i = 0; i < KEPT_FORMS; i++) {
            form_release(self->forms[i]);
            self->forms[i] = NULL;
        }
        free(self->k.packed);
        self->k.packed = NULL;
        self->filled = self->freed = 0;
    }
    Py_RETURN_NONE;
}

static struct problem problem_of(const struct layer_fields *f) {
    struct problem l = {
        .forward = f->forward,
        .element = f->element,
        .isa = f->isa,
        .groups = f->groups,
        .channels_in = f->channels_in,
        .channels_out = f->channels_out,
        .folded = f->folded,
        .longer = f->longer,
        .winograd = f->winograd,
        .channel_block = f->channel_block,
        .form = f->form,
        .machine = {f->level2_bytes, f->sure_level2_bytes, f->level3_bytes, f->multiply_adds},
    };
    memcpy(l.kernel, f->kernel, sizeof l.kernel);
    memcpy(l.strides, f->strides, sizeof l.strides);
    memcpy(l.dilations, f->dilations, sizeof l.dilations);
    return l;
}

/* Kernel(bias, numbers, scales, zeros, fields): the filter is packed by fill(). */
static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    struct layer_fields f;
    PyObject *given[4];
    Py_buffer buffers[4];
    int good = 1;
    memset(buffers, 0, sizeof buffers);
    if (take_call(arguments, 4, given, &f, sizeof f)) return NULL;
    for (int i = 0; good && i < 4; i++)
        if (given[i] != Py_None) good = !PyObject_GetBuffer(given[i], &buffers[i], PyBUF_CONTIG_RO);
    Kernel *self = NULL;
    const struct problem l = problem_of(&f);
    struct epilogue epilogue = EPILOGUE_OF(f);
    if (!good) {
        /* an exception is set */
    } else if (!problem_is_sane(&l) ||
               !epilogue_take(&epilogue, l.isa, sums_are_f32(l.element), f.activation, f.function)) {
        PyErr_SetString(PyExc_ValueError, "no such layer");
    } else {
        self = (Kernel *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    }
    if (self) {
        self->k.problem = l;
        self->k.epilogue = epilogue;
        if (kernel_prepare(self, &buffers[0]) || take_codes(self, buffers + 1, f.halves))
            Py_CLEAR(self);
        else {
            self->frees = f.frees && !self->k.codes; /* codes are transformed in each run */
            if (f.unread) self->takes_weights = 1;
        }
    }
    for (int i = 0; i < 4; i++)
        if (buffers[i].obj) PyBuffer_Release(&buffers[i]);
    return (PyObject *)self;
}

static PyObject *kernel_run(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    struct run run;
    struct results results;
    Py_buffer data, out, addend, windows;
    if (!is_filled(self) && weights_are_asked(self)) Py_RETURN_NONE;
    if (run_of_arguments(self, arguments, &run, &data, &out, &addend, &windows, &results))
        return NULL;
    struct shared_plan *shared = plan_acquire(self, &run);
    int failed = -1;
    if (shared && plan_needs_filter(shared) && !is_filled(self)) {
        failed = NEEDS_FILTER;
    } else if (shared && ((is_filled(self) && kernel_allocate(self)) || plan_pack(self, shared))) {
        PyErr_NoMemory();
    } else if (shared) {
        const struct tiling *t = &shared->plan.tiling;
        struct kernel k = self->k;
        const int uses = is_filled(self);
        if (!uses) k.packed = NULL; /* it may be filled meanwhile */
        struct addition addition = {k.kernels, k.epilogue, k.epilogue};
        if (results.by) {
            run.results = &results;
        } else if (addend.obj) {
            run.addition = &addition;
            k.epilogue.activation = addition.alone.activation = ACT_NONE;
            addition.epilogue.addend = addition.alone.addend =
                (const char *)addend.buf - (const char *)out.buf;
        }
        /* Otherwise tiles cannot be smaller, and Python calls another kernel. */
        const int fits = t->bytes * least(t->threads, t->jobs) <= run.scratch_bytes;
        failed = 1;
        self->users += uses;
        begin_unlocked();
        if (shared->form)
            failed = wino_execute(&k, &run, &shared->winograd, data.buf, out.buf);
        else if (fits)
            failed = execute(&k, &run, &shared->plan, data.buf, out.buf);
        end_unlocked();
        self->users -= uses;
        if (failed == OUT_OF_MEMORY) PyErr_NoMemory();
    }
    plan_release(shared);
    PyBuffer_Release(&data);
    PyBuffer_Release(&out);
    if (addend.obj) PyBuffer_Release(&addend);
    if (windows.obj) PyBuffer_Release(&windows);
    if (failed == NEEDS_FILTER) Py_RETURN_NONE;
    if (failed > 0) Py_RETURN_FALSE; /* the result is invalid */
    if (failed) return NULL;
    Py_RETURN_TRUE;
}

/* The plan of a run with data of this shape, [batch, Z, Y, X]: a dict, or None if it depends on
 * weights that are not packed.  Does not pack weights. */
static PyObject *kernel_describe(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    struct run run;
    struct run_fields fields;
    PyObject *shape;
    if (take_call(arguments, 1, &shape, &fields, sizeof fields)) return NULL;
    if (run_of_shape(self, shape, &fields, &run)) return NULL;
    if (run.winograd && !is_filled(self) && !self->pending && weights_are_asked(self))
        Py_RETURN_NONE;
    struct shared_plan *shared = plan_acquire(self, &run);
    if (!shared) return NULL;
    const int64_t kept = kept_bytes(self), lacking = filter_bytes(self) - kept;
    const struct tiling *t = &shared->plan.tiling;
    const struct wino_tiling *w = &shared->winograd.tiling;
    PyObject *result = Py_BuildValue(
        "{s:i,s:i,s:i,s:i,s:L,s:(LLL),s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d}", "compact",
        t->compact, "depthwise", t->depthwise, "output_vectors", t->outputs, "rows",
        self->k.packing.rows, "images", t->images, "tile", t->shape[0], t->shape[1], t->shape[2],
        "channels", t->channels, "channel_block", self->k.packing.channel_block, "blocks",
        t->blocks, "threads", t->threads, "jobs", t->jobs, "bytes", t->bytes, "shared_bytes",
        (long long)0, "weight_bytes", (long long)0, "filter_bytes", lacking, "cycles",
        t->cycles);
    if (result && shared->form) {
        const struct wino_axis *a = shared->form->packing.axes;
        PyObject *more = Py_BuildValue(
            "{s:((ii)(ii)(ii)),s:(LLL),s:(LLL),s:(LLL),s:L,s:(LLL),s:L,s:L,s:L,s:L,s:L,s:L,s:L,"
            "s:L,s:L,s:i,s:d}",
            "winograd", a[0].outputs, wino_shapes[a[0].size].taps, a[1].outputs,
            wino_shapes[a[1].size].taps, a[2].outputs, wino_shapes[a[2].size].taps,
            "steps", a[0].step * a[0].stride, a[1].step * a[1].stride, a[2].step * a[2].stride,
            "alignments", a[0].alignments, a[1].alignments, a[2].alignments,
            "windows", shared->winograd.windows[0], shared->winograd.windows[1],
            shared->winograd.windows[2], "images", w->images, "tile", w->shape[0], w->shape[1],
            w->shape[2], "chunks", w->chunks, "threads", w->threads, "jobs", wino_jobs(w), "bytes",
            w->bytes, "shared_bytes", w->shared_bytes, "fills", w->fills,
            "width", w->width, "weight_bytes",
            wino_weight_bytes(&self->k, &shared->form->packing), "filter_bytes",
            self->frees && !self->freed ? -kept : lacking, "packed",
            weights_are_kept(self, shared->form), "cycles", w->cycles);
        if (!more || PyDict_Update(result, more)) Py_CLEAR(result);
        Py_XDECREF(more);
    }
    plan_release(shared);
    return result;
}

/* Write the caller's filter into a buffer. */
static PyObject *kernel_unpack(PyObject *object, PyObject *argument) {
    Kernel *self = (Kernel *)object;
    const struct problem *problem = &self->k.problem;
    const enum element element = (enum element)problem->element;
    const int size = element_size(element);
    const int64_t count = problem->groups * problem->channels_in * problem->channels_out *
                          problem->kernel[0] * problem->kernel[1] * problem->kernel[2];
    Py_buffer filter;
    if (PyObject_GetBuffer(argument, &filter, PyBUF_CONTIG)) return NULL;
    int good = buffer_has(&filter, count * size);
    void *wide = filter.buf;
    if (good && !is_filled(self)) {
        PyBuffer_Release(&filter);
        Py_RETURN_FALSE;
    }
    if (good && (self->k.codes || kernel_allocate(self))) {
        PyErr_SetString(PyExc_ValueError, "the filter is not unpacked");
        good = 0;
    }
    if (good && size != self->k.kernels->size) {
        wide = allocate_weights(count * self->k.kernels->size);
        if (!wide) PyErr_NoMemory();
        good = wide != NULL;
    }
    if (good) {
        unpack_filter(&self->k, wide);
        if (wide != filter.buf) {
            self->k.kernels->store(element, wide, count, filter.buf);
            free(wide);
        }
    }
    PyBuffer_Release(&filter);
    if (!good) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *kernel_finite(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Kernel *)object)->finite);
}

static PyObject *kernel_is_filled(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(is_filled((Kernel *)object));
}

static PyObject *kernel_packed_bytes(PyObject *object, void *unused) {
    (void)unused;
    const Kernel *self = (Kernel *)object;
    int64_t bytes = kept_bytes(self);
    for (int i = 0; i < KEPT_FORMS; i++)
        if (self->forms[i]) bytes += wino_weight_bytes(&self->k, &self->forms[i]->packing);
    if (self->k.codes) {
        const int64_t channels = self->k.problem.groups * self->k.problem.channels_out;
        const int arrays = (self->k.codes->scales != NULL) + (self->k.codes->zeros != NULL);
        bytes += (int64_t)sizeof *self->k.codes + arrays * channels * (int64_t)sizeof(float);
    }
    return PyLong_FromLongLong(bytes);
}

/* The input channels whose sums are rounded together. */
static PyObject *kernel_channel_block(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(((Kernel *)object)->k.packing.channel_block);
}

static PyMethodDef kernel_methods[] = {
    {"fill", kernel_fill, METH_VARARGS,
     "fill(buffer, first, swapped, threads): pack rows of the filter, along its first axis, in "
     "their order; with its first two axes swapped, all of them"},
    {"read", kernel_read, METH_VARARGS,
     "read(descriptor, offset, threads) -> bool: pack the filter that lies in a file, if it can be "
     "read"},
    {"release", kernel_release, METH_NOARGS,
     "release(): free the packed weights, unless a run uses them"},
    {"run", kernel_run, METH_VARARGS,
     "run(data, out, addend, dequantizer, windows, fields) -> bool, or None where the filter has to be packed first"},
    {"describe", kernel_describe, METH_VARARGS,
     "describe(shape, fields) -> dict: how run computes, or None where rows of the filter are not "
     "packed"},
    {"predict", kernel_predict, METH_VARARGS,
     "predict(shape, run's fields, costs, fields) -> cycles of the plan by the "
     "cost model with this machine and these constants"},
    {"unpack", kernel_unpack, METH_O, "unpack(buffer) -> bool: write the filter as it was given, if it is packed"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef kernel_getset[] = {
    {"finite", kernel_finite, NULL, "whether every weight is finite", NULL},
    {"is_filled", kernel_is_filled, NULL, "whether the whole filter is packed", NULL},
    {"channel_block", kernel_channel_block, NULL, "input channels that are rounded together", NULL},
    {"packed_bytes", kernel_packed_bytes, NULL, "bytes of the packed weights, in all forms", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "A packed convolution, transposed or not."},
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_getset},
    {0, NULL},
};

PyType_Spec kernel_spec = {
    .name = "deconv_ir.kernels._compiled.Kernel",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = kernel_slots,
};
