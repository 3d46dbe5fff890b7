/* Codes of data. */
#include "quantized/quantized.h"

#include "quantized/levels.h"
#include "simd/functions.h"

#define JOB_CODES 8192      /* elements of a job */
#define LEAST_SHARED 32768  /* minimum elements per thread */

struct quantization {
    const struct quantized_functions *functions;
    struct quantizers quantizers;
    const float *data;
    void *out;
    int64_t channels, fours, positions; /* of a group */
    int64_t jobs_of_four, positions_of_job;
};

static void quantize_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct quantization *q = context;
    const int64_t four = job / q->jobs_of_four, group = four / q->fours;
    const int64_t channel = four % q->fours * 4;
    const int64_t first = job % q->jobs_of_four * q->positions_of_job;
    const int64_t count = least(q->positions_of_job, q->positions - first);
    struct quantizer quantizers[4];
    const int64_t channels = least(4, q->channels - channel);
    for (int64_t c = 0; c < channels; c++)
        quantizers[c] = quantizer_of(&q->quantizers, channel + c);
    q->functions->quantize(quantizers,
                           q->data + (group * q->channels + channel) * q->positions + first,
                           q->positions, channels, count,
                           (uint32_t *)q->out + four * q->positions + first);
}

/* Codes that are elements of their own, as signed bytes. */
static void quantize_plain_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct quantization *q = context;
    const struct quantizer quantizer = quantizer_of(&q->quantizers, 0);
    const int64_t first = job * JOB_CODES;
    q->functions->quantize_row(&quantizer, q->data + first, least(JOB_CODES, q->positions - first),
                               (int8_t *)q->out + first);
}

PyObject *module_quantize(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct quantize_fields f;
    struct quantization q;
    struct quantizers quantizers;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[3] = {0};
    const Py_buffer *data = &buffers[0], *out = &buffers[1];
    const int good = take_arrays(given, 3, 1 << 1, buffers) && data->ndim == 3 && out->ndim == 3;
    const int is_plain = good && out->itemsize == 1;
    const int64_t joined = is_plain ? 1 : 4; /* codes of an element */
    if (good && data->itemsize == 4 && out->itemsize == joined && data->shape[0] == out->shape[0] &&
        data->shape[2] == out->shape[2] && divide_up(data->shape[1], joined) == out->shape[1] &&
        out->len > 0 && isa_available(f.isa) && (!is_plain || (data->shape[0] == 1 && data->shape[1] == 1)) &&
        quantizers_take(&quantizers, &buffers[2], data->shape[1], f.highest)) {
        q = (struct quantization){
            .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
            .quantizers = quantizers,
            .data = data->buf,
            .out = out->buf,
            .channels = data->shape[1],
            .fours = out->shape[1],
            .positions = data->shape[2],
        };
        q.positions_of_job = JOB_CODES / 4;
        q.jobs_of_four = divide_up(q.positions, q.positions_of_job);
        const int64_t threads = least(f.threads, most(1, data->len / 4 / LEAST_SHARED));
        const int64_t jobs = out->shape[0] * q.fours * q.jobs_of_four;
        failed = is_plain ? run_unlocked(quantize_plain_job, &q, divide_up(q.positions, JOB_CODES), threads, 0)
                          : run_unlocked(quantize_job, &q, jobs, threads, 0);
    }
    return release_all(failed, buffers, 3);
}
