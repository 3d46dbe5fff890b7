/* Data of f32 as pairs of bf16, those of neighbouring channels. */
#include "quantized/quantized.h"

#include "simd/quantized.h"

#define JOB_PAIRS 4096     /* pairs of a job */
#define LEAST_SHARED 65536 /* minimum elements per thread */

struct pairing {
    const struct quantized_functions *functions;
    const float *data;
    uint32_t *out;
    int64_t channels, pairs, positions; /* of a group */
    int64_t jobs_of_pair;
};

static void pair_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct pairing *p = context;
    const int64_t pair = job / p->jobs_of_pair, first = job % p->jobs_of_pair * JOB_PAIRS;
    const int64_t channel = pair % p->pairs * 2;
    const float *row =
        p->data + (pair / p->pairs * p->channels + channel) * p->positions + first;
    p->functions->pair(row, channel + 1 < p->channels ? row + p->positions : NULL,
                       least(JOB_PAIRS, p->positions - first),
                       p->out + pair * p->positions + first);
}

PyObject *module_pair_channels(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[2];
    struct pair_channels_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[2] = {0};
    const Py_buffer *data = &buffers[0], *out = &buffers[1];
    if (take_arrays(given, 2, 1 << 1, buffers) && data->ndim == 3 && out->ndim == 3 &&
        data->itemsize == 4 && out->itemsize == 4 && data->shape[0] == out->shape[0] &&
        data->shape[2] == out->shape[2] && divide_up(data->shape[1], 2) == out->shape[1] &&
        out->len > 0 && isa_available(f.isa)) {
        struct pairing p = {
            .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
            .data = data->buf,
            .out = out->buf,
            .channels = data->shape[1],
            .pairs = out->shape[1],
            .positions = data->shape[2],
            .jobs_of_pair = divide_up(data->shape[2], JOB_PAIRS),
        };
        failed = run_unlocked(pair_job, &p, out->shape[0] * p.pairs * p.jobs_of_pair,
                              least(f.threads, most(1, data->len / 4 / LEAST_SHARED)), 0);
    }
    return release_all(failed, buffers, 2);
}
