/* The Python type of what becomes of the integer sums of a layer. */
#include "quantized/levels.h"
#include "quantized/quantized.h"
#include "simd/functions.h"

#include <stdlib.h>
#include <string.h>

#define BEYOND 16 /* offsets that vectors may read after the last */

typedef struct {
    PyObject_HEAD
    struct dequantization d;
} Dequantizer;

static void dequantizer_dealloc(PyObject *object) {
    struct dequantization *d = &((Dequantizer *)object)->d;
    PyTypeObject *type = Py_TYPE(object);
    free(d->of_channels);
    free(d->classes);
    free(d->offsets);
    free(d->in_steps);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

const struct dequantization *dequantization_of(PyObject *object) {
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)dequantizer_dealloc)
        return &((Dequantizer *)object)->d;
    PyErr_SetString(PyExc_TypeError, "not a Dequantizer");
    return NULL;
}

/* The number that is added to a level, in LEVEL_PARTS, before it is truncated. */
static double rounding_of(const struct requantizer *r) {
    /* The slope of HSwish is up to 1.5. */
    const double error = ERROR_32(r->codes.ends, r->greatest * r->codes.factor);
    return (double)LEVEL_PARTS / 2 + margin_of(r->bend == SWISHED ? 2 * error : error);
}

/* An offset in parts of steps of the levels. */
static float in_steps(const struct requantizer *r, double offset) {
    const double rest = offset - r->base * r->scale;
    const double level = (rest - (r->bend ? 0 : r->codes.low)) * r->codes.factor;
    return (float)(level * (double)LEVEL_PARTS + (r->bend ? 0 : rounding_of(r)));
}

/* `greatest_sum` is the greatest magnitude of sums. */
static void set_steps(struct requantizer *r, double greatest_sum, int64_t highest) {
    const struct quantizer *q = &r->codes;
    const double parts = (double)LEVEL_PARTS, rounding = rounding_of(r);
    const double least = (q->least - q->low) * q->factor, most = (q->most - q->low) * q->factor;
    r->step_scale = (float)(r->scale * q->factor * parts);
    r->step_offset = in_steps(r, r->offset);
    r->step_window = (float)(r->of_window.scale * q->factor * parts);
    /* HSwish is x * (x / 6 + 0.5), with the factor from 0 to 1. */
    r->step_slope = r->bend == SWISHED ? (float)(1 / (6 * q->factor * parts)) : r->slope;
    r->step_least = (float)(least * parts + rounding);
    r->step_most = (float)(most * parts + rounding);
    r->zero = (float)(-q->low * q->factor * parts + rounding);
    r->rest = least_rest(rounding - parts / 2);
    const double sum = (greatest_sum + fabs((double)r->base)) * fabs(r->scale);
    const double number = (sum + r->greatest) * fmax(1, fabs(r->slope));
    r->is_within = highest == 255 && fabs(least) < 0.25 && fabs(most - 255) < 0.25 &&
                   are_truncated(q->ends + number * q->factor);
}

static int32_t whole_of(double number) {
    return fabs(number) < INT32_MAX ? (int32_t)number : 0;
}

/* Set what becomes of each channel; `of` has its scale, slope, base, greatest offset and factors of windows. */
static void set_channels(struct dequantization *d, const double *of, double greatest_sum,
                         const struct quantizers *quantizers) {
    int slopes = 0;
    for (int64_t c = 0; c < d->channels; c++, of += 6) {
        struct requantizer *r = &d->of_channels[c];
        *r = (struct requantizer){
            .scale = of[0],
            .offset = d->offsets[c * d->kinds * d->width],
            .slope = (float)of[1],
            .base = whole_of(of[2]),
            .of_window = {whole_of(of[4]), of[5]},
        };
        if (!d->is_coded) continue;
        r->codes = quantizer_of(quantizers, c);
        if (d->from_sums) r->slope = take_activation(&d->epilogue, of[1], &r->codes);
        slopes |= d->from_sums && r->slope != 1;
        r->greatest = of[3] * fmax(1, fabsf(r->slope));
    }
    const int swishes = d->from_sums && d->epilogue.activation == ACT_FUNCTION;
    for (int64_t c = 0; d->from_sums && c < d->channels; c++) {
        struct requantizer *r = &d->of_channels[c];
        r->bend = swishes ? SWISHED : slopes ? SLOPED : UNBENT;
        r->hswish = swishes ? d->epilogue.function : NULL;
        set_steps(r, greatest_sum, quantizers->highest);
        const int64_t first = c * d->kinds * d->width;
        for (int64_t i = first; d->in_steps && i < first + d->kinds * d->width; i++)
            d->in_steps[i] = in_steps(r, d->offsets[i]);
    }
}

/* Whether a row has the offsets of all columns, and rows make up a result. */
static int has_all_columns(const struct dequantization *d, const Py_buffer *classes) {
    const int64_t rows = classes->len / 4;
    const int32_t *of_rows = classes->buf;
    int good = classes->itemsize == 4 && d->columns > 0 && rows > 0 &&
               d->positions / rows == d->columns && d->positions % rows == 0 && d->begin >= 0 &&
               d->begin <= d->end && d->end <= d->columns && d->chunk >= 0 &&
               d->chunk <= d->end - d->begin && (d->chunk > 0 || d->begin == d->end) &&
               d->width == d->begin + d->chunk + d->columns - d->end;
    for (int64_t y = 0; good && y < rows; y++) good = of_rows[y] >= 0 && of_rows[y] < d->kinds;
    return good;
}

/* Allocate and fill what the object owns.  Returns 0 or -1. */
static int dequantizer_fill(struct dequantization *d, const Py_buffer *b, double greatest_sum,
                            const struct quantizers *quantizers) {
    const size_t count = (size_t)(d->channels * d->kinds * d->width);
    d->of_channels = malloc((size_t)d->channels * sizeof *d->of_channels);
    d->offsets = calloc(count + BEYOND, sizeof *d->offsets);
    if (b[2].obj) d->classes = malloc((size_t)b[2].len);
    if (b[2].obj && d->from_sums) d->in_steps = calloc(count + BEYOND, sizeof *d->in_steps);
    if (!d->of_channels || !d->offsets ||
        (b[2].obj && (!d->classes || (d->from_sums && !d->in_steps))))
        return -1;
    memcpy(d->offsets, b[1].buf, count * sizeof *d->offsets);
    if (d->classes) memcpy(d->classes, b[2].buf, (size_t)b[2].len);
    set_channels(d, b[0].buf, greatest_sum, quantizers);
    return 0;
}

static PyObject *dequantizer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *given[4];
    struct dequantizer_fields f;
    if (take_call(arguments, 4, given, &f, sizeof f)) return NULL;
    Py_buffer b[4] = {0};
    struct quantizers quantizers = {NULL, 0, 0};
    const int has_classes = given[2] != Py_None, is_coded = given[3] != Py_None;
    Dequantizer *self = NULL;
    if (take_arrays(given, 2, 0, b) && (!has_classes || take_arrays(given + 2, 1, 0, b + 2)) &&
        (!is_coded || take_arrays(given + 3, 1, 0, b + 3)) && isa_available(f.isa) &&
        b[1].ndim == 3 && b[1].itemsize == 8 && b[0].itemsize == 8 && b[1].shape[0] >= 1 &&
        b[0].len / 48 == b[1].shape[0] && b[0].len % 48 == 0 && b[1].len > 0) {
        struct dequantization d = {
            .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
            .kernels = microkernels_for((enum isa)f.isa, ACC_F32),
            .epilogue = EPILOGUE_OF(f),
            .channels = b[1].shape[0],
            .positions = f.positions,
            .window_planes = f.window_planes,
            .is_coded = is_coded,
            .columns = f.columns,
            .kinds = b[1].shape[1],
            .width = b[1].shape[2],
            .begin = f.begin,
            .chunk = f.chunk,
            .end = f.end,
        };
        const int64_t planes = f.window_planes;
        const int good = planes >= 0 && planes <= d.channels &&
                         (!planes || d.channels % planes == 0) && epilogue_take(&d.epilogue, f.isa, 1, f.activation, f.function) &&
                         (has_classes ? has_all_columns(&d, &b[2]) : d.kinds * d.width == 1) &&
                         (!is_coded || quantizers_take(&quantizers, &b[3], d.channels, f.highest));
        const int swishes = f.function == PW_hswish && !d.epilogue.scales;
        d.from_sums =
            is_coded && !f.adds && (d.epilogue.activation != ACT_FUNCTION || swishes);
        if (good) self = (Dequantizer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
        if (self) {
            self->d = d;
            if (dequantizer_fill(&self->d, b, f.greatest_sum, &quantizers)) {
                PyErr_NoMemory();
                Py_CLEAR(self);
            }
        }
    }
    if (!self && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "arrays do not fit");
    for (int i = 0; i < 4; i++) PyBuffer_Release(&b[i]);
    return (PyObject *)self;
}

static PyType_Slot dequantizer_slots[] = {
    {Py_tp_doc, "From integer sums of codes to numbers, or codes."},
    {Py_tp_new, dequantizer_new},
    {Py_tp_dealloc, dequantizer_dealloc},
    {0, NULL},
};

PyType_Spec dequantizer_spec = {
    .name = "deconv_ir.kernels._compiled.Dequantizer",
    .basicsize = sizeof(Dequantizer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = dequantizer_slots,
};
