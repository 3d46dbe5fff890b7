/* Interpolation of planes: a pass over rows, then over columns, while a row is in cache. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "native.h"

#include <string.h>

/* Outputs of a job, and those that are worth a thread. */
#define JOB_OUTPUTS 16384
#define LEAST_SHARED 32768

/* The terms of the outputs along one axis, tap by tap: [taps][outputs]. */
struct taps {
    int64_t inputs, outputs, count;
    const int64_t *index;
    const float *weight; /* NULL: the one element itself */
};

struct resampling {
    struct taps rows, columns;
    int64_t size; /* bytes of an element */
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

static void weigh_rows(const struct taps *r, int64_t y, int64_t width, const float *plane,
                       float *restrict sums) {
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t t = 0; t < r->count; t++) {
        const float weight = r->weight[t * r->outputs + y];
        const float *row = plane + r->index[t * r->outputs + y] * width;
        for (int64_t x = 0; x < width; x++) sums[x] += row[x] * weight;
    }
}

static void weigh_columns(const struct taps *c, const float *row, float *restrict out) {
    memset(out, 0, (size_t)c->outputs * sizeof *out);
    for (int64_t t = 0; t < c->count; t++) {
        const int64_t *index = c->index + t * c->outputs;
        const float *weight = c->weight + t * c->outputs;
        for (int64_t x = 0; x < c->outputs; x++) out[x] += row[index[x]] * weight[x];
    }
}

/* Whether a row of the output equals the one before: nearest rows, and all of a single one. */
static int repeats_row(const struct taps *r, int64_t y) {
    for (int64_t at = y; at < r->count * r->outputs; at += r->outputs)
        if (r->index[at] != r->index[at - 1] ||
            (r->weight && r->weight[at] != r->weight[at - 1]))
            return 0;
    return 1;
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct resampling *s = context;
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
            weigh_rows(r, y, c->inputs, (const void *)data, scratch);
            weigh_columns(c, scratch, (void *)out);
        } else {
            pick_columns(c, s->size, data + r->index[y] * row_bytes, out);
        }
    }
}

/* Take (index, weight) of an axis; `held` gets the buffers. */
static int take_taps(PyObject *pair, struct taps *taps, int64_t inputs, int64_t outputs,
                     Py_buffer held[2]) {
    PyObject *index, *weight;
    if (!PyArg_ParseTuple(pair, "OO", &index, &weight)) return -1;
    if (PyObject_GetBuffer(index, &held[0], PyBUF_CONTIG_RO)) return -1;
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

/* resample(data, out, rows, columns, threads): the last two axes of contiguous arrays; rows and
 * columns are (index, weight), weights of all in f32, or of none. */
PyObject *module_resample(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *rows, *columns;
    long long threads;
    struct resampling s;
    Py_buffer data, out, held[4];
    memset(held, 0, sizeof held);
    data.obj = out.obj = NULL;
    int failed = -1;
    PyObject *given, *result;
    if (!PyArg_ParseTuple(arguments, "OOOOL", &given, &result, &rows, &columns, &threads))
        return NULL;
    if (PyObject_GetBuffer(given, &data, PyBUF_CONTIG_RO)) return NULL;
    if (PyObject_GetBuffer(result, &out, PyBUF_CONTIG)) goto end;
    int good = data.ndim == 3 && out.ndim == 3 && data.itemsize == out.itemsize &&
               data.shape[0] == out.shape[0] && out.len > 0 && data.len > 0 &&
               (out.itemsize & (out.itemsize - 1)) == 0 && out.itemsize <= 8;
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "data and out do not fit");
        goto end;
    }
    if (take_taps(rows, &s.rows, data.shape[1], out.shape[1], held) ||
        take_taps(columns, &s.columns, data.shape[2], out.shape[2], held + 2))
        goto end;
    if (!s.rows.weight != !s.columns.weight || (s.rows.weight && out.itemsize != 4)) {
        PyErr_SetString(PyExc_ValueError, "invalid weights");
        goto end;
    }
    s.size = out.itemsize;
    s.data = data.buf;
    s.out = out.buf;
    s.rows_of_job = most(1, JOB_OUTPUTS / s.columns.outputs);
    s.jobs_of_plane = divide_up(s.rows.outputs, s.rows_of_job);
    const int64_t shared = most(1, out.len / s.size / LEAST_SHARED);
    begin_unlocked();
    failed = parallel_run(do_job, &s, out.shape[0] * s.jobs_of_plane,
                          most(1, least(least(threads, MOST_THREADS), shared)),
                          s.rows.weight ? s.columns.inputs * (int64_t)sizeof(float) : 0);
    end_unlocked();
    if (failed == OUT_OF_MEMORY) PyErr_NoMemory();
end:
    for (int i = 0; i < 4; i++)
        if (held[i].obj) PyBuffer_Release(&held[i]);
    if (out.obj) PyBuffer_Release(&out);
    PyBuffer_Release(&data);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
