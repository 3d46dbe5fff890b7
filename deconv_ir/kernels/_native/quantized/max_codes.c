/* MaxPool of codes: the greatest byte of a window.  A window without data has the lowest code, 0. */
#include "quantized/quantized.h"

#include "interface.h"
#include "runtime/arithmetic.h"

#include <string.h>

#define LEAST_POOLED 32768 /* minimum elements per thread */

struct code_pool {
    struct max_codes_fields f;
    int64_t in[AXES], out[AXES];
    const uint32_t *data;
    uint32_t *codes;
};

static void take_greater(const uint8_t *restrict from, int64_t bytes, uint8_t *restrict to) {
    for (int64_t i = 0; i < bytes; i++) to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* Pool one row of the data into a row of the output, with all taps of the last axis. */
static void pool_row(const struct code_pool *p, const uint32_t *row, uint32_t *every,
                     uint32_t *out) {
    const int64_t stride = p->f.strides[2];
    for (int64_t k = 0; k < p->f.kernel[2]; k++) {
        const int64_t shift = k * p->f.dilations[2] - p->f.pads_begin[2];
        const int64_t first = shift < 0 ? divide_up(-shift, stride) : 0;
        const int64_t last = least(p->out[2], divide_up(p->in[2] - shift, stride));
        const uint32_t *from = row + first * stride + shift;
        if (first >= last) continue;
        if (stride > 1) {
            for (int64_t x = 0; x < last - first; x++) every[x] = from[x * stride];
            from = every;
        }
        take_greater((const void *)from, (last - first) * 4, (void *)(out + first));
    }
}

static void pool_job(void *context, int64_t job, void *scratch) {
    const struct code_pool *p = context;
    const int64_t y = job % p->out[1], z = job / p->out[1] % p->out[0];
    const uint32_t *plane = p->data + job / p->out[1] / p->out[0] * p->in[0] * p->in[1] * p->in[2];
    uint32_t *out = p->codes + job * p->out[2];
    memset(out, 0, (size_t)p->out[2] * sizeof *out);
    for (int64_t j = 0; j < p->f.kernel[0]; j++) {
        const int64_t iz = z * p->f.strides[0] + j * p->f.dilations[0] - p->f.pads_begin[0];
        for (int64_t k = 0; iz >= 0 && iz < p->in[0] && k < p->f.kernel[1]; k++) {
            const int64_t iy = y * p->f.strides[1] + k * p->f.dilations[1] - p->f.pads_begin[1];
            if (iy >= 0 && iy < p->in[1])
                pool_row(p, plane + (iz * p->in[1] + iy) * p->in[2], scratch, out);
        }
    }
}

/* Whether products and sums of the figures of an axis have 64 bits. */
static int axis_is_sane(const struct code_pool *p, int axis) {
    const int64_t most_figure = INT64_C(1) << 30;
    const struct max_codes_fields *f = &p->f;
    return f->kernel[axis] >= 1 && f->strides[axis] >= 1 && f->dilations[axis] >= 1 &&
           f->pads_begin[axis] >= 0 && p->in[axis] >= 1 && p->out[axis] >= 1 &&
           f->kernel[axis] <= most_figure && f->strides[axis] <= most_figure &&
           f->dilations[axis] <= most_figure && f->pads_begin[axis] <= most_figure &&
           p->in[axis] <= most_figure && p->out[axis] <= most_figure;
}

PyObject *module_max_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1, good = 0;
    PyObject *given[2];
    struct code_pool p;
    if (take_call(arguments, 2, given, &p.f, sizeof p.f)) return NULL;
    Py_buffer b[2] = {0};
    if (take_arrays(given, 2, 1 << 1, b) && b[0].ndim == 4 && b[1].ndim == 4 &&
        b[0].itemsize == 4 && b[1].itemsize == 4 && b[0].shape[0] == b[1].shape[0]) {
        good = 1;
        for (int axis = 0; axis < AXES; axis++) {
            p.in[axis] = b[0].shape[axis + 1], p.out[axis] = b[1].shape[axis + 1];
            good = good && axis_is_sane(&p, axis);
        }
    }
    if (good) {
        p.data = b[0].buf, p.codes = b[1].buf;
        failed = run_unlocked(pool_job, &p, b[1].shape[0] * p.out[0] * p.out[1],
                              least(p.f.threads, most(1, b[1].len / 4 / LEAST_POOLED)),
                              p.out[2] * (int64_t)sizeof(uint32_t));
    }
    return release_all(failed, b, 2);
}
