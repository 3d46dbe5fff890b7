/* Sums, products and means of numbers that are given as codes. */
#include "quantized/quantized.h"

#include "quantized/levels.h"
#include "simd/functions.h"

#define JOB_CODES 8192     /* elements of a job */
#define LEAST_SHARED 32768 /* minimum elements per thread */
#define MOST_LANES 16

struct combination {
    const struct quantized_functions *functions;
    struct code_pair pair;
    const uint32_t *first, *second;
    uint32_t *codes; /* or NULL */
    float *numbers;
    int64_t channels, fours, positions, jobs_of_four;
};

static void combine_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct combination *a = context;
    const int64_t four = job / a->jobs_of_four, x = job % a->jobs_of_four * JOB_CODES;
    const int64_t count = least(JOB_CODES, a->positions - x), at = four * a->positions + x;
    const uint32_t *second = a->second + at;
    uint32_t same[MOST_LANES];
    if (!a->pair.second_step) {
        for (int i = 0; i < MOST_LANES; i++) same[i] = a->second[four];
        second = same;
    }
    if (a->codes) {
        a->functions->combine(&a->pair, a->first + at, second, count, a->codes + at);
        return;
    }
    const int64_t image = four / a->fours, channel = four % a->fours * 4;
    float *out = a->numbers + (image * a->channels + channel) * a->positions + x;
    for (int64_t c = 0; c < least(4, a->channels - channel); c++)
        a->functions->combine_numbers(&a->pair, a->first + at, second, (int)c, count,
                                      out + c * a->positions);
}

PyObject *module_combine_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct combine_codes_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    Py_buffer b[3] = {0};
    struct quantizers quantizers;
    double range[2] = {f.out_low, f.out_high};
    const Py_buffer ranges = {.buf = range, .len = sizeof range, .itemsize = 8};
    const Py_buffer *first = &b[0], *second = &b[1], *out = &b[2];
    if (!take_arrays(given, 3, 1 << 2, b) || first->ndim != 3 || out->ndim != 3 ||
        second->ndim != 3 || !isa_available(f.isa))
        return release_all(failed, b, 3);
    struct combination a = {
        .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
        .pair = {.low = {f.first_low, f.second_low},
                 .step = {f.first_step, f.second_step},
                 .multiplies = f.multiplies != 0,
                 .second_step = second->shape[2] == first->shape[2]},
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
        second->shape[0] == first->shape[0] && second->shape[1] == a.fours &&
        (a.pair.second_step || second->shape[2] == 1) && out->shape[0] == first->shape[0] &&
        channels == a.fours && (!f.highest || out->len == first->len) &&
        out->shape[2] == a.positions && out->len > 0 && f.activation >= ACT_NONE &&
        f.activation < ACT_FUNCTION &&
        (!f.highest || quantizers_take(&quantizers, &ranges, 1, f.highest))) {
        struct epilogue epilogue = EPILOGUE_OF(f);
        epilogue.activation = (enum activation)f.activation;
        if (f.highest) {
            a.pair.codes = quantizer_of(&quantizers, 0);
            a.pair.slope = take_activation(&epilogue, f.slope, &a.pair.codes);
        }
        a.jobs_of_four = divide_up(a.positions, JOB_CODES);
        failed = run_unlocked(combine_job, &a, first->shape[0] * a.fours * a.jobs_of_four,
                              least(f.threads, most(1, first->len / 4 / LEAST_SHARED)), 0);
    }
    return release_all(failed, b, 3);
}

struct code_average {
    const uint32_t *codes;
    float *out;
    double scale, offset;
    int64_t channels, fours, positions;
};

static void average_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct code_average *a = context;
    const uint32_t *row = a->codes + job * a->positions;
    int64_t sums[4] = {0};
    for (int64_t x = 0; x < a->positions;) {
        /* Two sums in 16 bits each have room for 257 bytes. */
        const int64_t end = least(a->positions, x + 256);
        uint32_t even = 0, odd = 0;
        for (; x < end; x++) {
            even += row[x] & 0x00ff00ff;
            odd += row[x] >> 8 & 0x00ff00ff;
        }
        sums[0] += even & 0xffff, sums[1] += odd & 0xffff;
        sums[2] += even >> 16, sums[3] += odd >> 16;
    }
    const int64_t channel = job % a->fours * 4;
    float *out = a->out + job / a->fours * a->channels + channel;
    for (int64_t c = 0; c < least(4, a->channels - channel); c++)
        out[c] = (float)(a->offset + a->scale * (double)sums[c]);
}

PyObject *module_average_codes(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[2];
    struct average_codes_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    Py_buffer b[2] = {0};
    const Py_buffer *codes = &b[0], *out = &b[1];
    if (take_arrays(given, 2, 1 << 1, b) && codes->ndim == 3 && out->ndim == 2 &&
        codes->itemsize == 4 && out->itemsize == 4 && out->len > 0 && codes->len > 0 &&
        codes->shape[0] == out->shape[0] && codes->shape[1] == divide_up(out->shape[1], 4)) {
        struct code_average a = {.codes = codes->buf,
                              .out = out->buf,
                              .scale = f.scale,
                              .offset = f.offset,
                              .channels = out->shape[1],
                              .fours = codes->shape[1],
                              .positions = codes->shape[2]};
        failed = run_unlocked(average_job, &a, codes->shape[0] * a.fours,
                              least(f.threads, most(1, codes->len / 4 / LEAST_SHARED)), 0);
    }
    return release_all(failed, b, 2);
}
