/* Products with a matrix that stays compressed: its panels are unpacked block by block. */
#include "products/products.h"

#include "simd/compressed.h"
#include "simd/functions.h"

#include <string.h>

/* Bytes of a code: two codes of four bits share one. */
static int64_t code_bytes(enum compressed_form form, int64_t k) {
    if (form == COMPRESSED_4) return divide_up(k, 2);
    return form == COMPRESSED_F16 || form == COMPRESSED_BF16 ? 2 * k : k;
}

/* Take scales or zeros: [strips, groups, STRIP] of f16 or f32. */
static int take_scales(const Py_buffer *b, int64_t count, const void **scales, int *are_halves) {
    *scales = b->buf;
    *are_halves = b->itemsize == 2;
    return (b->itemsize == 2 || b->itemsize == 4) && b->len == count * b->itemsize;
}

/* Whether the buffers of a, codes, table, scales, zeros, bias and out fit each other. */
static int take(struct product *p, struct compressed_matrix *m, float table[BYTE_CODES],
                const Py_buffer *b, const struct multiply_compressed_fields *f) {
    if (b[0].ndim != 2 || b[6].ndim != 2 || b[6].itemsize != sizeof(float)) return 0;
    if (!take_matrices(&b[0], &p->a) || f->form < 0 || f->form >= COMPRESSED_FORMS) return 0;
    p->m = b[0].shape[0], p->k = m->k = b[0].shape[1], p->n = m->n = b[6].shape[1];
    m->form = (enum compressed_form)f->form, m->group = f->group, m->halves = f->halves != 0;
    if (p->n < 1 || b[6].shape[0] != p->m || m->group < 1 || m->k % m->group) return 0;
    if (m->form == COMPRESSED_4 && m->group % 2 && m->group != m->k) return 0;
    const int64_t strips = divide_up(m->n, STRIP), count = strips * (m->k / m->group) * STRIP;
    if (b[1].len != strips * STRIP * code_bytes(m->form, m->k)) return 0;
    if (b[2].buf) {
        if (b[2].len > BYTE_CODES * (Py_ssize_t)sizeof *table || b[2].itemsize != sizeof(float))
            return 0;
        memcpy(table, b[2].buf, (size_t)b[2].len);
    }
    const int64_t numbers =
        m->form == COMPRESSED_TABLE ? BYTE_CODES : m->form == COMPRESSED_4 ? CODES : 0;
    if (numbers && b[2].len < numbers * (int64_t)sizeof(float)) return 0;
    m->codes = b[1].buf, m->table = table, m->width = STRIP;
    if (b[3].buf && !take_scales(&b[3], count, &m->scales, &m->half_scales)) return 0;
    if (b[4].buf && !take_scales(&b[4], count, &m->zeros, &m->half_zeros)) return 0;
    if (b[5].buf && b[5].len != p->n * (int64_t)sizeof(float)) return 0;
    p->bias = b[5].buf, p->out = b[6].buf;
    return 1;
}

PyObject *module_multiply_compressed(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1, good = 1;
    PyObject *given[7];
    struct multiply_compressed_fields f;
    if (take_call(arguments, 7, given, &f, sizeof f)) return NULL;
    struct epilogue finish = EPILOGUE_OF(f);
    Py_buffer buffers[7] = {0};
    for (int i = 0; good && i < 7; i++) {
        const int flags = i == 0 ? PyBUF_STRIDED_RO : i == 6 ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
        /* The table, scales, zeros and bias may be missing. */
        if (i < 2 || i == 6 || given[i] != Py_None)
            good = !PyObject_GetBuffer(given[i], &buffers[i], flags);
    }
    struct product p = {0};
    struct compressed_matrix matrix = {0};
    float table[BYTE_CODES] = {0};
    if (good && isa_available(f.isa) && take(&p, &matrix, table, buffers, &f) &&
        take_kernels(&p, f.isa, ACC_F32) &&
        epilogue_take(&finish, f.isa, 1, f.activation, f.function)) {
        p.finish = f.activation ? &finish : NULL;
        p.compressed = &matrix;
        p.unpacks = BY_ISA(f.isa, &functions_compressed);
        if (p.m <= FEW_ROWS) p.depth = FEW_ROWS_DEPTH;
        failed = run_product(&p, threads_within(f.threads));
    }
    return release_all(failed, buffers, 7);
}
