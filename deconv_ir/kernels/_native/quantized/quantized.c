/* Codes of data, and sums of codes. */
#include "quantized/quantized.h"

#include "quantized/levels.h"
#include "simd/functions.h"

#define JOB_CODES 8192      /* elements of a job */
#define LEAST_SHARED 32768  /* minimum elements per thread */

struct quantization {
    const struct quantized_functions *functions;
    struct quantizers quantizers;
    const float *data;
    uint32_t *out;
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
                           q->out + four * q->positions + first);
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
    if (take_arrays(given, 3, 1 << 1, buffers) && data->ndim == 3 && out->ndim == 3 &&
        data->itemsize == 4 && out->itemsize == 4 && data->shape[0] == out->shape[0] &&
        data->shape[2] == out->shape[2] && divide_up(data->shape[1], 4) == out->shape[1] &&
        out->len > 0 && isa_available(f.isa) &&
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
        failed = run_unlocked(quantize_job, &q, out->shape[0] * q.fours * q.jobs_of_four,
                              least(f.threads, most(1, data->len / 4 / LEAST_SHARED)), 0);
    }
    return release_all(failed, buffers, 3);
}

struct code_addition {
    const struct quantized_functions *functions;
    struct code_sum sum;
    const uint32_t *first, *second;
    uint32_t *codes; /* or NULL */
    float *numbers;
    int64_t channels, fours, positions, jobs_of_four;
};

static void add_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct code_addition *a = context;
    const int64_t four = job / a->jobs_of_four, x = job % a->jobs_of_four * JOB_CODES;
    const int64_t count = least(JOB_CODES, a->positions - x), at = four * a->positions + x;
    if (a->codes) {
        a->functions->add(&a->sum, a->first + at, a->second + at, count, a->codes + at);
        return;
    }
    const int64_t image = four / a->fours, channel = four % a->fours * 4;
    float *out = a->numbers + (image * a->channels + channel) * a->positions + x;
    for (int64_t c = 0; c < least(4, a->channels - channel); c++)
        a->functions->add_numbers(&a->sum, a->first + at, a->second + at, (int)c, count,
                                  out + c * a->positions);
}

PyObject *module_add_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct add_codes_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    Py_buffer b[3] = {0};
    struct quantizers quantizers;
    double range[2] = {f.out_low, f.out_high};
    const Py_buffer ranges = {.buf = range, .len = sizeof range, .itemsize = 8};
    const Py_buffer *first = &b[0], *second = &b[1], *out = &b[2];
    if (!take_arrays(given, 3, 1 << 2, b) || first->ndim != 3 || out->ndim != 3 ||
        second->ndim != 3 || !isa_available(f.isa))
        return release_all(failed, b, 3);
    struct code_addition a = {
        .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
        .sum = {.low = {f.first_low, f.second_low}, .step = {f.first_step, f.second_step}},
        .first = first->buf,
        .second = second->buf,
        .codes = f.highest ? out->buf : NULL,
        .numbers = out->buf,
        .channels = out->shape[1],
        .fours = first->shape[1],
        .positions = first->shape[2],
    };
    const int64_t channels = f.highest ? a.fours : divide_up(a.channels, 4);
    if (first->itemsize == 4 && second->itemsize == 4 && out->itemsize == 4 &&
        first->len == second->len && second->shape[1] == a.fours &&
        second->shape[2] == a.positions && out->shape[0] == first->shape[0] &&
        channels == a.fours && (!f.highest || out->len == first->len) &&
        out->shape[2] == a.positions && out->len > 0 && f.activation >= ACT_NONE &&
        f.activation < ACT_FUNCTION &&
        (!f.highest || quantizers_take(&quantizers, &ranges, 1, f.highest))) {
        struct epilogue epilogue = EPILOGUE_OF(f);
        epilogue.activation = (enum activation)f.activation;
        if (f.highest) {
            a.sum.codes = quantizer_of(&quantizers, 0);
            a.sum.slope = take_activation(&epilogue, f.slope, &a.sum.codes);
        }
        a.jobs_of_four = divide_up(a.positions, JOB_CODES);
        failed = run_unlocked(add_job, &a, first->shape[0] * a.fours * a.jobs_of_four,
                              least(f.threads, most(1, first->len / 4 / LEAST_SHARED)), 0);
    }
    return release_all(failed, b, 3);
}
