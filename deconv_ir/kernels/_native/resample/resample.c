/* Interpolation of planes: a pass over rows, then over columns, while a row is in cache. */
#include "resample/resample.h"

#include "simd/taps.h"

#include <stdlib.h>
#include <string.h>

/* Outputs of a job, and minimum number of outputs per thread. */
#define JOB_OUTPUTS 16384
#define LEAST_SHARED 32768

struct resampling {
    const struct resample_functions *functions;
    struct taps rows, columns;
    struct vector_taps vectors; /* of the columns: weighted ones, or more than inputs */
    int64_t size;               /* bytes of an element */
    int64_t rows_of_job, jobs_of_plane;
    const char *data;
    char *out;
};

#define PICK_COLUMNS(type)                                                                    \
    do {                                                                                      \
        const type *from = (const void *)row;                                                 \
        type *to = (void *)out;                                                               \
        for (int64_t x = 0; x < c->outputs; x++) to[x] = from[c->index[x]];                   \
    } while (0)

static void pick_columns(const struct taps *c, int64_t size, const char *row, char *out) {
    if (size == 1) PICK_COLUMNS(uint8_t);
    else if (size == 2) PICK_COLUMNS(uint16_t);
    else if (size == 4) PICK_COLUMNS(uint32_t);
    else PICK_COLUMNS(uint64_t);
}

/* Whether a row of the output equals the one before: nearest rows, or a single input row. */
static int repeats_row(const struct taps *r, int64_t y) {
    for (int64_t at = y; at < r->count * r->outputs; at += r->outputs)
        if (r->index[at] != r->index[at - 1] ||
            (r->weight && r->weight[at] != r->weight[at - 1]))
            return 0;
    return 1;
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct resampling *s = context;
    const struct resample_functions *f = s->functions;
    const struct taps *r = &s->rows, *c = &s->columns;
    const int64_t plane = job / s->jobs_of_plane;
    const int64_t first = job % s->jobs_of_plane * s->rows_of_job;
    const int64_t last = least(r->outputs, first + s->rows_of_job);
    const int64_t row_bytes = c->inputs * s->size, out_bytes = c->outputs * s->size;
    const char *data = s->data + plane * r->inputs * row_bytes;
    char *out = s->out + (plane * r->outputs + first) * out_bytes;
    for (int64_t y = first; y < last; y++, out += out_bytes) {
        if (y > first && repeats_row(r, y)) {
            memcpy(out, out - out_bytes, (size_t)out_bytes);
        } else if (r->weight) {
            f->weigh_rows(r, y, c->inputs, (const void *)data, scratch);
            f->weigh_columns(&s->vectors, scratch, (void *)out);
        } else {
            const char *row = data + r->index[y] * row_bytes;
            if (s->vectors.first) f->pick_columns(&s->vectors, (const void *)row, (void *)out);
            else pick_columns(c, s->size, row, out);
        }
    }
}

/* Reorder the taps of a row's outputs for vectors of outputs.  Returns 0 when out of memory. */
static int gather_vectors(struct vector_taps *v, const struct taps *c, int64_t lanes) {
    const int64_t vectors = divide_up(c->outputs, lanes), count = c->count;
    *v = (struct vector_taps){.count = count, .outputs = c->outputs};
    v->first = malloc((size_t)(vectors * count) * sizeof *v->first);
    v->lanes = malloc((size_t)(vectors * count * lanes) * sizeof *v->lanes);
    if (c->weight) v->weight = malloc((size_t)(vectors * count * lanes) * sizeof *v->weight);
    if (!v->first || !v->lanes || (c->weight && !v->weight)) return 0;
    for (int64_t at = 0; at < vectors * count; at++) {
        const int64_t begin = at % count * c->outputs;
        const int64_t x = most(0, least(at / count * lanes, c->outputs - lanes));
        int64_t low = c->inputs, high = 0;
        for (int64_t i = x; i < least(x + lanes, c->outputs); i++) {
            low = least(low, c->index[begin + i]);
            high = most(high, c->index[begin + i]);
        }
        low = most(0, least(low, c->inputs - lanes));
        v->first[at] = high - low < lanes ? low : -1;
        for (int64_t i = 0; i < lanes; i++) {
            const int64_t from = begin + least(x + i, c->outputs - 1);
            v->lanes[at * lanes + i] = (int32_t)(c->index[from] - most(0, v->first[at]));
            if (c->weight) v->weight[at * lanes + i] = c->weight[from];
        }
    }
    return 1;
}

/* Take index and weight of an axis; `held` gets the buffers. */
static int take_taps(PyObject *const *pair, struct taps *taps, int64_t inputs, int64_t outputs,
                     Py_buffer held[2]) {
    PyObject *const weight = pair[1];
    if (PyObject_GetBuffer(pair[0], &held[0], PyBUF_CONTIG_RO)) return -1;
    if (weight != Py_None && PyObject_GetBuffer(weight, &held[1], PyBUF_CONTIG_RO)) return -1;
    const int64_t count = outputs > 0 ? held[0].len / 8 / outputs : 0;
    *taps = (struct taps){inputs, outputs, count, held[0].buf, held[1].buf};
    int good = held[0].itemsize == 8 && held[0].len == count * outputs * 8 &&
               (weight == Py_None ? count == 1 : held[1].len == held[0].len / 2);
    for (int64_t i = 0; good && i < count * outputs; i++)
        good = taps->index[i] >= 0 && taps->index[i] < inputs;
    if (!good) PyErr_SetString(PyExc_ValueError, "invalid taps");
    return good ? 0 : -1;
}

/* Contiguous arrays; either both axes have weights, in f32, or neither has. */
PyObject *module_resample(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *given[6];
    int failed = -1;
    struct resampling s = {0};
    struct resample_fields f;
    if (take_call(arguments, 6, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[6] = {0};
    const Py_buffer *data = &buffers[0], *out = &buffers[1];
    if (!take_arrays(given, 2, 1 << 1, buffers) || data->ndim != 3 || out->ndim != 3 ||
        data->itemsize != out->itemsize || data->shape[0] != out->shape[0] || out->len == 0 ||
        data->len == 0 || (out->itemsize & (out->itemsize - 1)) || out->itemsize > 8 ||
        !isa_available(f.isa) || data->shape[2] > INT32_MAX ||
        take_taps(given + 2, &s.rows, data->shape[1], out->shape[1], buffers + 2) ||
        take_taps(given + 4, &s.columns, data->shape[2], out->shape[2], buffers + 4))
        goto end;
    if (!s.rows.weight != !s.columns.weight || (s.rows.weight && out->itemsize != 4)) {
        PyErr_SetString(PyExc_ValueError, "invalid weights");
        goto end;
    }
    s.functions = BY_ISA(f.isa, &functions_resample);
    s.size = out->itemsize;
    const int64_t lanes = s.functions->lanes, inputs = data->shape[2], outputs = out->shape[2];
    const int grows = s.size == 4 && inputs >= lanes && outputs >= inputs;
    if ((s.rows.weight || grows) && !gather_vectors(&s.vectors, &s.columns, lanes)) {
        PyErr_NoMemory();
        goto end;
    }
    s.data = data->buf;
    s.out = out->buf;
    s.rows_of_job = most(1, JOB_OUTPUTS / s.columns.outputs);
    s.jobs_of_plane = divide_up(s.rows.outputs, s.rows_of_job);
    failed = run_unlocked(do_job, &s, out->shape[0] * s.jobs_of_plane,
                          least(f.threads, out->len / s.size / LEAST_SHARED),
                          s.rows.weight ? round_up(inputs, lanes) * (int64_t)sizeof(float) : 0);
end:
    free(s.vectors.first);
    free(s.vectors.lanes);
    free(s.vectors.weight);
    return release_all(failed, buffers, 6);
}
