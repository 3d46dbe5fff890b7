/* Products of data that are codes, or become codes when they are packed, with a matrix of codes, in integers. */
#include "products/products.h"

#include "simd/functions.h"

#include <math.h>

#define LEAST_REQUANTIZED 4 /* rows for which the numbers of columns are converted to those of requantize_columns() */
#define LEAST_EXTENDED 16 /* rows for which extended bytes are stored, without an instruction for products of four */

static int is_range(double low, double high, int64_t highest) {
    return isfinite(low) && isfinite(high) && low < high && highest >= 1 && highest <= 255;
}

/* Take data of f32, or rows of codes. */
static int take_data(struct product *p, struct quantized_factor *q, const Py_buffer *b) {
    q->reads_codes = b->itemsize == 1;
    if (b->ndim != 2) return 0;
    if (!q->reads_codes) return take_matrices(b, &p->a) && (p->a.column == 1 || b->shape[1] == 1);
    p->a.first = b->buf, p->a.row = b->strides[0];
    return b->shape[0] > 0 && b->shape[1] > 0 && (b->strides[1] == 1 || b->shape[1] == 1);
}

static void take_results(struct quantized_factor *q, int64_t m, const struct multiply_quantized_fields *f) {
    struct quantizer codes = q->results = quantizer_between(f->out_low, f->out_high, f->out_highest);
    const int bent = take_activation(&q->finish, 1, &codes) != 1;
    const int activation = q->finish.activation;
    const int is_known = isfinite(f->greatest) && f->greatest >= 0;
    q->requantizer = column_requantizer_of(codes, is_known ? f->greatest : 0);
    q->from_sums = m >= LEAST_REQUANTIZED && is_known && !bent &&
                   (activation == ACT_NONE || activation == ACT_RELU || activation == ACT_CLAMP);
}

/* Whether the buffers of a, b, numbers, bases and out fit each other, and ranges are possible. */
static int take(struct product *p, struct quantized_factor *q, const Py_buffer *b,
                const struct multiply_quantized_fields *f) {
    if (!take_data(p, q, &b[0]) || b[2].ndim != 2 || b[4].ndim != 2) return 0;
    p->m = b[0].shape[0], p->n = b[4].shape[1], p->terms = b[0].shape[1];
    p->a.column = q->shorts ? 2 : 4, p->k = divide_up(p->terms, 4) * (q->shorts ? 2 : 1);
    if (p->m < 1 || p->n < 1 || p->terms > MOST_QUANTIZED_TERMS) return 0;
    const int64_t columns = b[2].shape[1];
    const double *numbers = b[2].buf;
    const int32_t *bases = b[3].buf;
    q->columns = (struct column_dequantizer){numbers, numbers + columns, numbers + 2 * columns, bases, bases + columns};
    p->packed = b[1].buf, p->out = b[4].buf;
    q->writes_codes = b[4].itemsize == 1;
    return b[2].shape[0] == 3 && b[2].itemsize == 8 && b[3].itemsize == 4 &&
           b[3].len == columns * 8 && columns >= round_up(p->n, MOST_PRODUCT_LANES) &&
           b[1].len >= divide_up(p->terms, 4) * columns * 4 && b[4].shape[0] == p->m && b[4].itemsize == (q->writes_codes ? 1 : 4) &&
           is_range(f->data_low, f->data_high, f->highest) &&
           (!q->writes_codes || is_range(f->out_low, f->out_high, f->out_highest));
}

PyObject *module_multiply_quantized(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1, good = 1;
    PyObject *given[5];
    struct multiply_quantized_fields f;
    if (take_call(arguments, 5, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[5] = {0};
    for (int i = 0; good && i < 5; i++)
        good = !PyObject_GetBuffer(given[i], &buffers[i],
                                   i == 0 ? PyBUF_STRIDED_RO : i == 4 ? PyBUF_CONTIG : PyBUF_CONTIG_RO);
    struct product p = {0};
    enum accumulator accumulator = ACC_DOTS;
    struct quantized_factor factor = {.finish = EPILOGUE_OF(f)};
    good = good && isa_available(f.isa);
    if (good && buffers[0].ndim == 2 && f.plain)
        accumulator = buffers[0].shape[0] >= LEAST_EXTENDED ? ACC_SHORTS : ACC_PLAIN_DOTS;
    factor.shorts = accumulator == ACC_SHORTS;
    if (good && take(&p, &factor, buffers, &f) && take_kernels(&p, f.isa, accumulator) &&
        epilogue_take(&factor.finish, f.isa, 1, f.activation, f.function)) {
        factor.functions = BY_ISA((enum isa)f.isa, &functions_quantized);
        factor.quantizer = quantizer_between(f.data_low, f.data_high, f.highest);
        if (factor.writes_codes) take_results(&factor, p.m, &f);
        p.a_bytes = factor.reads_codes ? 1 : sizeof(float), p.out_bytes = factor.writes_codes ? 1 : sizeof(float);
        p.quantized = &factor;
        failed = run_product(&p, threads_within(f.threads));
    }
    return release_all(failed, buffers, 5);
}
