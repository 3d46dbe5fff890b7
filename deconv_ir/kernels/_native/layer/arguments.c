/* Reads layers and runs, and checks them as far as memory safety needs. */
#include "layer/layer.h"

#include <string.h>

int machine_is_sane(const struct machine *machine) {
    return machine->sure_level2 > 0 && machine->level2 >= machine->sure_level2 &&
           machine->level3 > 0 && machine->multiply_adds > 0;
}

int problem_is_sane(const struct problem *problem) {
    if (problem->element < 0 || problem->element >= ELEMENTS) return 0;
    if (!isa_available(problem->isa)) return 0;
    if (problem->groups < 1 || problem->channels_in < 0 || problem->channels_out < 0) return 0;
    if (problem->folded < 1 || problem->channels_out % problem->folded) return 0;
    if (problem->longer < 0 || problem->longer >= problem->folded) return 0;
    if (problem->winograd < WINOGRAD_NEVER || problem->winograd > WINOGRAD_ALWAYS) return 0;
    if (problem->channel_block < 0) return 0;
    if (problem->channel_block % spread_of(problem)) return 0;
    if (problem->form < 0 || problem->form > COMPRESSED_FORMS) return 0;
    /* Other sums read the packed weights themselves. */
    if (is_compressed(problem) &&
        (problem->element != F32 || problem->folded > 1 || problem->channels_in < 2))
        return 0;
    if (!machine_is_sane(&problem->machine)) return 0;
    for (int a = 0; a < AXES; a++)
        if (problem->kernel[a] < 1 || problem->strides[a] < 1 || problem->dilations[a] < 1)
            return 0;
    return 1;
}

/* Bytes of scratch, with which plans compute without checks for overflow. */
#define MOST_SCRATCH (INT64_C(1) << 40)

int64_t product_of(const int64_t *factors, int count) {
    int64_t result = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(result, factors[i], &result)) return -1;
    return result;
}

int buffer_has(const Py_buffer *buffer, int64_t bytes) {
    if (buffer->len == bytes) return 1;
    PyErr_Format(PyExc_ValueError, "a buffer of %zd bytes where %lld are needed", buffer->len,
                 (long long)bytes);
    return 0;
}

int64_t kernel_rows(const Kernel *self) {
    return self->k.problem.groups * filter_rows(&self->k.problem);
}

/* Positions are sums of pads and extents. */
static int axis_is_sane(int64_t data, int64_t pad, int64_t output) {
    return data >= 0 && data < MOST_SUM && pad > -MOST_SUM && pad < MOST_SUM && output >= 0 &&
           output < MOST_SUM;
}

/* Whether positions and sizes of a run are in bounds, and the interleaved positions cover the
 * output. */
static int run_is_sane(const Kernel *self, struct run *run) {
    const int64_t folded = self->k.problem.folded;
    run->threads = threads_within(run->threads);
    run->scratch_bytes = most(0, least(run->scratch_bytes, MOST_SCRATCH));
    run->thread_bytes = most(1, least(run->thread_bytes, MOST_SCRATCH));
    run->winograd = most(WINOGRAD_REFUSED, least(run->winograd, WINOGRAD_JUDGED));
    int good = 1;
    for (int a = 0; a < AXES; a++)
        good &= axis_is_sane(run->data[a], run->pads_begin[a], run->output[a]) &&
                axis_is_sane(run->whole.data[a], run->whole.pads_begin[a], run->whole.output[a]);
    return good && run->extent >= 0 && run->extent < MOST_SUM && run->crop >= 0 &&
           run->crop < folded && run->output[2] == divide_up(run->crop + run->extent, folded);
}

/* Set what does not depend on arrays. */
static void run_of_fields(const struct run_fields *f, struct run *run) {
    memcpy(run->pads_begin, f->pads_begin, sizeof run->pads_begin);
    memcpy(run->output, f->output, sizeof run->output);
    memcpy(run->whole.data, f->data_of_whole, sizeof run->whole.data);
    memcpy(run->whole.pads_begin, f->pads_begin_of_whole, sizeof run->whole.pads_begin);
    memcpy(run->whole.output, f->output_of_whole, sizeof run->whole.output);
    run->threads = f->threads;
    run->scratch_bytes = f->scratch_bytes;
    run->thread_bytes = f->thread_bytes;
    run->winograd = f->winograd;
    run->extent = f->extent;
    run->crop = f->crop;
}

/* Whether results of codes are those of a run, and have some bytes. */
static int results_fit(const Kernel *self, const struct dequantization *d, const struct run *run,
                       int64_t bytes) {
    const struct problem *problem = &self->k.problem;
    const int64_t of_group = problem->channels_out / problem->folded;
    const int64_t channels = problem->groups * of_group;
    /* Groups share no element. */
    const int apart = !d->is_coded || problem->groups == 1 || of_group % 4 == 0;
    const int64_t planes = d->is_coded ? divide_up(channels, 4) : channels;
    return problem_has_codes(problem) && apart && d->channels == channels &&
           d->positions == product_of((int64_t[]){run->output[0], run->output[1], run->extent}, AXES) &&
           bytes == product_of((int64_t[]){4, run->batch, planes, d->positions}, 4);
}

int run_of_arguments(const Kernel *self, PyObject *arguments, struct run *run, Py_buffer *in,
                     Py_buffer *result, Py_buffer *added, Py_buffer *windows,
                     struct results *results) {
    const int64_t size = element_size((enum element)self->k.problem.element);
    const int64_t channels_in = self->k.problem.groups * data_channels(&self->k.problem);
    PyObject *given[5], *addend;
    struct run_fields fields;
    memset(run, 0, sizeof *run);
    memset(added, 0, sizeof *added);
    memset(windows, 0, sizeof *windows);
    memset(results, 0, sizeof *results);
    if (take_call(arguments, 5, given, &fields, sizeof fields)) return -1;
    if (given[3] != Py_None && !(results->by = dequantization_of(given[3]))) return -1;
    run_of_fields(&fields, run);
    addend = given[2];
    if (PyObject_GetBuffer(given[0], in, PyBUF_STRIDED_RO)) return -1;
    if (PyObject_GetBuffer(given[1], result, PyBUF_CONTIG)) {
        PyBuffer_Release(in);
        return -1;
    }
    const int lead = AXES + 2 - in->ndim; /* number of missing leading axes */
    int good = lead >= 0 && lead < AXES && in->itemsize == size && in->shape[1] == channels_in;
    if (good) {
        run->batch = in->shape[0];
        run->image_step = in->strides[0] / size;
        run->channel_step = in->strides[1] / size;
        for (int a = 0; a < AXES; a++) {
            run->data[a] = a < lead ? 1 : in->shape[a + 2 - lead];
            run->step[a] = a < lead ? run->channel_step : in->strides[a + 2 - lead] / size;
        }
        for (int a = 0; a < in->ndim; a++) good &= in->strides[a] % size == 0;
        good = good && run_is_sane(self, run);
        const int64_t planes[] = {size, run->batch, self->k.problem.groups,
                                  self->k.problem.channels_out / self->k.problem.folded,
                                  run->output[0], run->output[1], run->extent};
        const int64_t bytes = product_of(planes, 7);
        good &= bytes >= 0 && (results->by ? results_fit(self, results->by, run, result->len)
                                           : result->len == bytes);
        if (good && addend != Py_None) {
            good = !PyObject_GetBuffer(addend, added, PyBUF_CONTIG_RO);
            good = good && (results->by ? !results->by->from_sums : sums_are_f32(self->k.problem.element)) &&
                   buffer_has(added, bytes);
            results->addend = added->buf;
        }
        const int64_t window_planes = results->by ? results->by->window_planes : 0;
        good &= (given[4] != Py_None) == (window_planes > 0);
        if (good && window_planes) {
            const int64_t sums = product_of((int64_t[]){4, run->batch, window_planes, results->by->positions}, 4);
            good = !PyObject_GetBuffer(given[4], windows, PyBUF_CONTIG_RO) && sums >= 0 &&
                   buffer_has(windows, sums + 4 * WINDOWS_BEYOND);
            results->windows = windows->buf;
        }
        results->out = result->buf;
    }
    if (good) return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "data, out or addend do not fit the kernel");
    if (added->obj) PyBuffer_Release(added);
    if (windows->obj) PyBuffer_Release(windows);
    PyBuffer_Release(in);
    PyBuffer_Release(result);
    return -1;
}

/* Set the steps of contiguous data, the usual case, whose runs reuse the plan. */
static void set_steps(const Kernel *self, struct run *run) {
    int64_t step = 1;
    for (int a = AXES - 1; a >= 0; a--) {
        run->step[a] = step;
        if (__builtin_mul_overflow(step, run->data[a], &step)) step = 0;
    }
    run->channel_step = step;
    if (__builtin_mul_overflow(step, self->k.problem.groups * data_channels(&self->k.problem),
                               &run->image_step))
        run->image_step = 0;
}

int run_of_shape(const Kernel *self, PyObject *shape, const struct run_fields *fields,
                 struct run *run) {
    memset(run, 0, sizeof *run);
    if (!PyArg_ParseTuple(shape, "LLLL", &run->batch, &run->data[0], &run->data[1],
                          &run->data[2]))
        return -1;
    run_of_fields(fields, run);
    if (run->batch < 0 || !run_is_sane(self, run)) {
        PyErr_SetString(PyExc_ValueError, "data or out do not fit the kernel");
        return -1;
    }
    set_steps(self, run);
    return 0;
}
