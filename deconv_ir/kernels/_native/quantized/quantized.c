/* What surrounds the sums of a convolution in integers: codes of data, numbers of sums. */
#include "quantized/quantized.h"

#include "simd/functions.h"
#include "simd/quantized.h"

#include <math.h>

#define JOB_CODES 8192      /* elements of a job */
#define LEAST_SHARED 32768  /* minimum elements per thread */

/* Quantizers of all channels, which repeat if there is one range. */
struct quantizers {
    const double *ranges;
    int64_t count, highest;
};

static struct quantizer quantizer_of(const struct quantizers *q, int64_t channel) {
    const double *range = q->ranges + (q->count > 1 ? 2 * channel : 0);
    const double low = range[0], high = range[1], factor = (double)q->highest / (high - low);
    const int near = levels_are_near(low, high, factor);
    return (struct quantizer){(float)low, (float)high, low, factor, near ? TIE : -1,
                              level_of_ends(low, high, factor)};
}

/* Make an activation part of the range of codes, and return the factor of negative numbers. */
static float take_activation(const struct epilogue *e, double slope, struct quantizer *codes) {
    const float low = codes->least, high = codes->most;
    if (e->activation == ACT_RELU) codes->least = fminf(fmaxf(low, 0), high);
    if (e->activation == ACT_CLAMP) {
        codes->least = fminf(fmaxf((float)e->low, low), high);
        codes->most = fminf(fmaxf((float)e->high, low), high);
    }
    return e->activation == ACT_LEAKY ? (float)slope : 1;
}

/* Whether ranges are those of a number of channels, and possible. */
static int quantizers_take(struct quantizers *q, const Py_buffer *ranges, int64_t channels,
                           int64_t highest) {
    *q = (struct quantizers){ranges->buf, ranges->len / 16, highest};
    int good = ranges->itemsize == 8 && ranges->len == 16 * q->count && highest >= 1 &&
               highest <= 255 && (q->count == 1 || q->count == channels);
    for (int64_t i = 0; good && i < q->count; i++)
        good = isfinite(q->ranges[2 * i]) && isfinite(q->ranges[2 * i + 1]) &&
               q->ranges[2 * i] < q->ranges[2 * i + 1];
    return good;
}

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

struct dequantization {
    const struct quantized_functions *functions;
    const struct microkernels *kernels;
    struct epilogue epilogue;
    struct quantizers quantizers;
    const char *sums;
    const double *of_channels, *offsets;
    const int32_t *classes; /* of the rows; or NULL: one row, with one offset */
    const float *addend;
    float *out;
    uint32_t *codes; /* instead of `out`, or NULL */
    int64_t first, plane; /* elements of a plane of the output before those of the sums, and all */
    int64_t channels, rows, columns;
    int64_t kinds, width; /* classes of a channel, and offsets of each */
    int64_t begin, chunk, end; /* columns with repeated offsets; see interface.h */
    int64_t groups; /* planes of all images, or fours of them */
    int64_t rows_of_job, columns_of_job, groups_of_job;
    int from_sums; /* whether sums become codes without numbers between them */
};

/* Set the offsets of some columns of a row, and return their number, up to `last` at most. */
static int64_t take_offsets(const struct dequantization *d, int64_t channel, int64_t y, int64_t x,
                            int64_t last, struct dequantizer *to) {
    const int64_t class = d->classes ? d->classes[y] : 0;
    const double *offsets = d->offsets + (channel * d->kinds + class) * d->width;
    to->offsets = NULL;
    to->offset = *offsets;
    if (!d->classes) return last - x;
    if (x < d->begin) {
        to->offsets = offsets + x;
        return least(last, d->begin) - x;
    }
    if (x >= d->end) {
        to->offsets = offsets + d->begin + d->chunk + x - d->end;
        return last - x;
    }
    to->offset = offsets[d->begin];
    if (d->chunk == 1) return least(last, d->end) - x;
    const int64_t within = (x - d->begin) % d->chunk;
    to->offsets = offsets + d->begin + within;
    return least(least(last, d->end) - x, d->chunk - within);
}

static struct dequantizer dequantizer_of(const struct dequantization *d, int64_t channel) {
    return (struct dequantizer){.scale = d->of_channels[4 * channel]};
}

static struct requantizer requantizer_of(const struct dequantization *d, int64_t channel) {
    const double *of = d->of_channels + 4 * channel;
    struct requantizer r = {
        .numbers = dequantizer_of(d, channel),
        .codes = quantizer_of(&d->quantizers, channel),
        .base = fabs(of[2]) < INT32_MAX ? (int32_t)of[2] : 0,
    };
    r.slope = take_activation(&d->epilogue, of[1], &r.codes);
    if (d->epilogue.activation == ACT_FUNCTION) r.hswish = d->epilogue.function;
    r.greatest = of[3] * fmax(1, fabsf(r.slope));
    return r;
}

/* Compute the numbers of a row from column x to `last`, without activation. */
static void dequantize_row(const struct dequantization *d, int64_t plane, int64_t y, int64_t x,
                           int64_t last, float *out) {
    const int64_t channel = plane % d->channels, at = (plane * d->rows + y) * d->columns;
    const int64_t to = plane * d->plane + d->first + y * d->columns;
    struct dequantizer row = dequantizer_of(d, channel);
    for (int64_t count; x < last; out += count, x += count) {
        count = take_offsets(d, channel, y, x, last, &row);
        if (d->addend) row.addend = d->addend + to + x;
        d->functions->dequantize(&row, count, d->sums + (at + x) * 4, out);
    }
}

/* Compute the codes of a row of four planes from column x to `last`. */
static void requantize_row(const struct dequantization *d, struct requantizer *r, int64_t plane,
                           int64_t channels, int64_t y, int64_t x, int64_t last, uint32_t *out) {
    const int64_t channel = plane % d->channels, step = d->rows * d->columns;
    const char *sums = d->sums + (plane * step + y * d->columns) * 4;
    for (int64_t count; x < last; out += count, x += count) {
        for (int64_t c = 0; c < channels; c++)
            count = take_offsets(d, channel + c, y, x, last, &r[c].numbers);
        d->functions->requantize(r, sums + x * 4, step, channels, count, out);
    }
}

/* Compute a block of rows and columns of a plane, or of four planes whose codes are together. */
static void dequantize_block(const struct dequantization *d, int64_t group, int64_t y, int64_t x,
                             float *scratch) {
    const int64_t together = d->codes ? 4 : 1, groups = divide_up(d->channels, together);
    const int64_t image = group / groups, channel = group % groups * together;
    const int64_t last = least(d->columns, x + d->columns_of_job);
    const int64_t rows = least(d->rows_of_job, d->rows - y), count = rows * (last - x);
    const int64_t most_count = d->rows_of_job * d->columns_of_job;
    const int64_t channels = least(together, d->channels - channel);
    uint32_t *codes = NULL;
    if (d->codes)
        codes = d->codes + (image * groups + channel / 4) * d->plane + d->first + y * d->columns + x;
    if (d->from_sums) {
        struct requantizer r[4];
        for (int64_t c = 0; c < channels; c++) r[c] = requantizer_of(d, channel + c);
        for (int64_t i = 0; i < rows; i++)
            requantize_row(d, r, image * d->channels + channel, channels, y + i, x, last,
                           codes + i * (last - x));
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        const int64_t plane = image * d->channels + channel + c;
        struct epilogue epilogue = d->epilogue;
        epilogue.slope = d->of_channels[4 * (channel + c) + 1];
        float *to = scratch + c * most_count;
        if (!d->codes) to = d->out + plane * d->plane + d->first + y * d->columns + x;
        for (int64_t i = 0; i < rows; i++)
            dequantize_row(d, plane, y + i, x, last, to + i * (last - x));
        d->kernels->activate(&epilogue, to, count);
    }
    if (!d->codes) return;
    struct quantizer quantizers[4];
    for (int64_t c = 0; c < channels; c++)
        quantizers[c] = quantizer_of(&d->quantizers, channel + c);
    d->functions->quantize(quantizers, scratch, most_count, channels, count, codes);
}

static void dequantize_job(void *context, int64_t job, void *scratch) {
    const struct dequantization *d = context;
    const int64_t blocks = divide_up(d->columns, d->columns_of_job);
    const int64_t bands = divide_up(d->rows, d->rows_of_job);
    const int64_t first = job / blocks / bands * d->groups_of_job;
    const int64_t last = least(d->groups, first + d->groups_of_job);
    for (int64_t group = first; group < last; group++)
        dequantize_block(d, group, job / blocks % bands * d->rows_of_job,
                         job % blocks * d->columns_of_job, scratch);
}

/* Whether all classes have offsets. */
static int are_classes(const struct dequantization *d) {
    for (int64_t y = 0; d->classes && y < d->rows; y++)
        if (d->classes[y] < 0 || d->classes[y] >= d->kinds) return 0;
    return 1;
}

/* Whether a row has the offsets of all columns. */
static int has_all_columns(const struct dequantization *d) {
    return d->begin >= 0 && d->begin <= d->end && d->end <= d->columns && d->chunk >= 0 &&
           d->chunk <= d->end - d->begin && (d->chunk > 0 || d->begin == d->end) &&
           d->width == d->begin + d->chunk + d->columns - d->end;
}

PyObject *module_dequantize(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[7];
    struct dequantize_fields f;
    if (take_call(arguments, 7, given, &f, sizeof f)) return NULL;
    Py_buffer b[7] = {0};
    const int has_classes = given[3] != Py_None, has_addend = given[4] != Py_None;
    const int has_codes = given[5] != Py_None;
    if (!take_arrays(given, 3, 0, b) || !take_arrays(given + 6, 1, 1 << 0, b + 6) ||
        (has_codes && !take_arrays(given + 5, 1, 0, b + 5)) ||
        (has_classes && !take_arrays(given + 3, 1, 0, b + 3)) ||
        (has_addend && !take_arrays(given + 4, 1, 0, b + 4)) || b[0].ndim != 4 ||
        b[2].ndim != 3 || b[6].ndim != 3 || b[0].itemsize != 4 || !isa_available(f.isa))
        return release_all(failed, b, 7);
    struct dequantization d = {
        .functions = BY_ISA((enum isa)f.isa, &functions_quantized),
        .kernels = microkernels_for((enum isa)f.isa, ACC_F32),
        .epilogue = EPILOGUE_OF(f),
        .sums = b[0].buf,
        .of_channels = b[1].buf,
        .offsets = b[2].buf,
        .classes = b[3].buf,
        .addend = b[4].buf,
        .out = b[6].buf,
        .codes = has_codes ? b[6].buf : NULL,
        .first = f.first,
        .plane = b[6].shape[2],
        .channels = b[0].shape[1],
        .rows = b[0].shape[2],
        .columns = b[0].shape[3],
        .kinds = b[2].shape[1],
        .width = b[2].shape[2],
        .begin = f.begin,
        .chunk = f.chunk,
        .end = f.end,
    };
    const int64_t together = has_codes ? 4 : 1, planes = divide_up(d.channels, together);
    const int64_t rows_of_classes = has_classes ? b[3].len / 4 : d.rows;
    const int64_t all_bytes = b[0].shape[0] * d.channels * d.plane * (int64_t)sizeof(float);
    if (b[1].itemsize == 8 && b[1].len == d.channels * 32 && b[2].itemsize == 8 &&
        b[2].shape[0] == d.channels && d.kinds >= 1 && rows_of_classes == d.rows &&
        (has_classes ? has_all_columns(&d) : d.kinds == 1 && d.width == 1) &&
        (!has_classes || b[3].itemsize == 4) && (!has_addend || b[4].len == all_bytes) &&
        b[0].len > 0 && are_classes(&d) && b[6].itemsize == 4 &&
        b[6].shape[0] == b[0].shape[0] && b[6].shape[1] == planes && f.first >= 0 &&
        f.first <= d.plane - d.rows * d.columns &&
        (!has_codes || quantizers_take(&d.quantizers, &b[5], d.channels, f.highest)) &&
        epilogue_take(&d.epilogue, f.isa, 1, f.activation, f.function)) {
        const int64_t of_job = JOB_CODES / together;
        const int swishes = f.function == PW_hswish && !d.epilogue.scales;
        d.from_sums = has_codes && !has_addend &&
                      (d.epilogue.activation != ACT_FUNCTION || swishes);
        if (!has_classes) d.columns *= d.rows, d.rows = 1;
        d.columns_of_job = least(d.columns, of_job);
        d.rows_of_job = d.columns_of_job < d.columns ? 1 : most(1, of_job / d.columns_of_job);
        const int64_t parts = divide_up(d.rows, d.rows_of_job) *
                              divide_up(d.columns, d.columns_of_job);
        d.groups = b[0].shape[0] * planes;
        d.groups_of_job = parts > 1 ? 1 : most(1, of_job / (d.rows * d.columns));
        failed = run_unlocked(dequantize_job, &d, divide_up(d.groups, d.groups_of_job) * parts,
                              least(f.threads, most(1, b[0].len / 4 / LEAST_SHARED)),
                              together * d.rows_of_job * d.columns_of_job *
                                  (int64_t)sizeof(float));
    }
    return release_all(failed, b, 7);
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
