/* Products of matrices, and of stacks of them, in f32 or of bytes, with the micro-kernels of direct sums.
 *
 * The GEMM of a job, sums[M][N] = a[M][K] b[K][N]:
 *   M  rows of a, in groups of the micro-kernel's rows: packed [K][rows] for each job
 *   K  terms, MOST_DEPTH at a time, added in order for all shapes and numbers of threads
 *   N  columns of b, in panels of a few vectors: packed [panel][K][columns], once if b is constant,
 *      else for each job
 */
#include "products/products.h"

#include "simd/functions.h"

#include <string.h>

#define LEAST_ROWS 96 /* of a job, if columns can be divided as well */

/* The first vector of a panel. */
static int64_t panel_begin(int64_t vectors, int64_t panels, int64_t panel) {
    return panel * vectors / panels;
}

/* The rows of the next micro-kernel; there is one for every number of columns of a panel. */
static int group_rows(const struct microkernels *kernels, int64_t left) {
    int rows = (int)least(left, kernels->rows);
    while (!kernels->table[rows][kernels->columns[kernels->rows]]) rows--;
    return rows;
}

/* Copy `count` neighbours from lines `step` apart; calls of memcpy() would take longer. */
static void place_lines(const float *in, int64_t step, int64_t count, int64_t depth,
                        int64_t padded, float *out) {
#define PLACE(size) \
    for (int64_t k = 0; k < depth; k++) memcpy(out + k * padded, in + k * step, size)
    if (count == 16) PLACE(64);
    else if (count == 8) PLACE(32);
    else if (count == 6) PLACE(24);
    else if (count == 4) PLACE(16);
    else PLACE((size_t)count * sizeof *out);
#undef PLACE
}

/* pack() without its zeros. */
static void place(const struct product *p, const float *in, int64_t step, int64_t line,
                  int64_t depth, int64_t width, int64_t padded, float *gathered, float *out) {
    const int64_t lanes = p->kernels->lanes;
    if (line == 1) place_lines(in, step, width, depth, padded, out);
    else if (step == 1)
        for (int64_t w = 0; w < width; w += lanes) {
            const int64_t count = least(lanes, width - w);
            p->moves->gather_channels(in + w * line, line, count, depth, p->places, gathered);
            place_lines(gathered, lanes, count, depth, padded, out + w);
        }
    else
        for (int64_t k = 0; k < depth; k++)
            for (int64_t w = 0; w < width; w++) out[k * padded + w] = in[k * step + w * line];
}

void pack(const struct product *p, const float *in, int64_t step, int64_t line, int64_t depth,
          int64_t width, int64_t padded, float *gathered, float *out) {
    if (width < padded) memset(out, 0, (size_t)(depth * padded) * sizeof *out);
    place(p, in, step, line, depth, width, padded, gathered, out);
}

/* Pack some rows of a panel of b. */
static void pack_panel(const struct product *p, const float *b, int64_t panel, int64_t depth,
                       float *gathered, float *out) {
    const int64_t lanes = p->kernels->lanes, first = panel_begin(p->vectors, p->panels, panel);
    const int64_t padded = (panel_begin(p->vectors, p->panels, panel + 1) - first) * lanes;
    pack(p, b + first * lanes * p->b.column, p->b.row, p->b.column, depth,
         least(padded, p->n - first * lanes), padded, gathered, out);
}

/* Sum a block; the columns of the last one may be fewer than those of its vectors. */
static void sum_block(const struct product *p, int rows, int columns, int64_t depth,
                      const float *data, const float *weights, int64_t width, int begins,
                      const float *bias, const struct epilogue *finish, const void *ahead, float *out) {
    const microkernel sum = p->kernels->table[rows][columns];
    const int32_t *offsets = p->offsets[columns];
    const int64_t whole = columns * p->kernels->lanes;
    if (width >= whole || p->padded) {
        sum(depth, offsets, data, weights, out, p->step, 1, begins, bias, finish, ahead);
        return;
    }
    float block[MAX_ROWS * MOST_PANEL * CACHE_LINE / sizeof(float)];
    float start[MOST_PANEL * CACHE_LINE / sizeof(float)] = {0};
    if (bias) memcpy(start, bias, (size_t)width * sizeof *bias);
    if (!begins) memset(block, 0, sizeof block);
    for (int r = 0; r < rows && !begins; r++)
        memcpy(block + r * whole, out + r * p->step, (size_t)width * sizeof *out);
    sum(depth, offsets, data, weights, block, whole, 1, begins, bias ? start : NULL, finish, ahead);
    for (int r = 0; r < rows; r++)
        memcpy(out + r * p->step, block + r * whole, (size_t)width * sizeof *out);
}

const float *matrix_at(const struct product *p, const struct matrices *all, int64_t index) {
    const float *at = all->first;
    for (int d = p->stacked - 1; d >= 0; d--) {
        at += index % p->stack[d] * all->stack[d];
        index /= p->stack[d];
    }
    return at;
}

/* Elements of a, or of the output, from an element on: of f32, or bytes if they are codes. */
static const void *a_from(const struct product *p, const void *a, int64_t element) {
    return (const char *)a + element * p->a_bytes;
}

static void *out_from(const struct product *p, void *out, int64_t element) {
    return (char *)out + element * p->out_bytes;
}

static void scale_all(float *all, int64_t count, float scale) {
    for (int64_t i = 0; i < count; i++) all[i] *= scale;
}

/* Whether elements hold several terms of a row. */
static int joins_terms(const struct product *p) { return p->quantized || p->pairs; }

/* Whether rows in memory are such elements. */
static int is_joined(const struct product *p) {
    const struct quantized_factor *q = p->quantized;
    return q && q->reads_codes && !q->shorts && p->terms % 4 == 0 && p->a.row % 4 == 0 &&
           (uintptr_t)p->a.first % sizeof(float) == 0;
}

/* Replace terms of some rows, from element k on, by codes or bf16 in `depth` elements; others of the last are 0. */
static void join_terms(const struct product *p, const void *a, int64_t rows, int64_t k,
                       int64_t depth, uint32_t *codes, int32_t *row_sums) {
    const struct quantized_factor *q = p->quantized;
    const int64_t terms = least(p->a.column * depth, p->terms - p->a.column * k);
    for (int64_t r = 0; r < rows && p->pairs; r++) {
        codes[r * depth + depth - 1] = 0;
        p->pairs->round_row(a_from(p, a, r * p->a.row), terms, (uint16_t *)(codes + r * depth));
    }
    if (!q) return;
    const int64_t fours = divide_up(terms, 4);
    for (int64_t r = 0; r < rows; r++, codes += depth) {
        const void *const row = a_from(p, a, r * p->a.row);
        uint32_t *const bytes = codes + depth - fours;
        int32_t sum;
        if (!is_joined(p)) bytes[fours - 1] = 0;
        if (!q->reads_codes)
            sum = q->functions->quantize_row(&q->quantizer, row, terms, (int8_t *)bytes);
        else {
            if (!is_joined(p)) memcpy(bytes, row, (size_t)terms);
            sum = q->functions->sum_row(row, terms);
        }
        row_sums[r] = k == 0 ? sum : row_sums[r] + sum;
        if (q->shorts) q->functions->extend(1, bytes, fours, codes, bytes);
    }
}

/* Pack rows of a for the micro-kernels; those of a few groups are gathered at once. */
static void pack_groups(const struct product *p, const void *a, int64_t rows, int64_t k,
                        int64_t depth, struct pack_buffers to) {
    const int64_t lanes = p->kernels->lanes, most_rows = p->kernels->rows;
    const int fits = lanes >= most_rows; /* vectors hold the rows of a micro-kernel */
    const int64_t strip = most(lanes, most_rows) / most_rows * most_rows;
    const int joins = joins_terms(p), gathers = fits && (joins || (p->a.column == 1 && p->a.row != 1));
    const int in_place = is_joined(p);
    const int64_t column = joins ? 1 : p->a.column;
    const int64_t row = in_place ? p->a.row / 4 : joins ? depth : p->a.row;
    for (int64_t r = 0; r < rows;) {
        const int group = group_rows(p->kernels, rows - r);
        const int64_t first = r % strip;
        const float *strip_begin = a_from(p, a, (r - first) * p->a.row);
        if (joins) {
            if (first == 0)
                join_terms(p, strip_begin, least(strip, rows - r), k, depth,
                           (uint32_t *)to.unpacked, to.row_sums + r);
            if (!in_place) strip_begin = to.unpacked;
        }
        if (gathers) {
            if (first == 0)
                p->moves->gather_channels(strip_begin, row, least(strip, rows - r), depth, p->places,
                                          to.gathered);
            place_lines(to.gathered + first, lanes, group, depth, group, to.a + r * depth);
        } else
            pack(p, strip_begin + first * row, column, row, depth, group, group, to.gathered,
                 to.a + r * depth);
        r += group;
    }
    if (p->scale != 1) scale_all(to.a, rows * depth, p->scale);
}

/* Returns the part of the next panel that is prefetched during the rows from `from` to `to`.  A micro-kernel prefetches
 * as much as it has weights; the rest of the part is prefetched at once. */
static const float *fetch_part(const float *panel, int64_t elements, int64_t from, int64_t to,
                               int64_t rows, int64_t depth) {
    const int64_t line = CACHE_LINE / sizeof *panel;
    const int64_t begin = elements * from / rows / line * line, end = elements * to / rows;
    for (int64_t i = begin + (to - from) * depth; i < end; i += line)
        __builtin_prefetch(panel + i, 0, 2);
    return panel + begin;
}

/* Complete the sums of codes of a block, whose first ones are in `sums`, and store their numbers or codes. */
static void finish_codes(const struct product *p, int rows, int columns, int64_t depth, int64_t at,
                         const float *data, const float *weights, int begins,
                         const int32_t *row_sums, const void *sums, int64_t step, const void *ahead, void *out) {
    const struct quantized_factor *q = p->quantized;
    const int64_t lanes = p->kernels->lanes, whole = columns * lanes, width = least(whole, p->n - at);
    float block[MAX_ROWS * MOST_PANEL * CACHE_LINE / sizeof(float)];
    if (!begins && width < whole) memset(block, 0, sizeof block);
    for (int r = 0; r < rows && !begins; r++)
        memcpy(block + r * whole, (const float *)sums + r * step, (size_t)width * sizeof *block);
    p->kernels->table[rows][columns](depth, p->offsets[columns], data, weights, block, whole, 1,
                                     begins, NULL, NULL, ahead);
    const struct column_dequantizer numbers = {q->columns.scales + at, q->columns.offsets + at,
                                               q->columns.row_scales + at, q->columns.bases + at,
                                               q->columns.factors + at};
    int8_t codes[sizeof block / sizeof *block], *const to_codes = width == whole ? out : codes;
    if (q->from_sums) {
        q->functions->requantize_columns(&q->requantizer, &numbers, row_sums, rows, whole,
                                         (const uint32_t *)(const void *)block, to_codes,
                                         width == whole ? p->step : whole);
        for (int r = 0; r < rows && width < whole; r++)
            memcpy((int8_t *)out + r * p->step, codes + r * whole, (size_t)width);
        return;
    }
    const int direct = width == whole && !q->writes_codes;
    float *const results = direct ? out : block;
    const int64_t pitch = direct ? p->step : whole;
    q->functions->dequantize_columns(&numbers, row_sums, rows, whole, (const uint32_t *)(const void *)block,
                                     results, pitch);
    for (int r = 0; r < rows; r++) {
        float *const row = results + r * pitch;
        if (q->finish.activation != ACT_NONE) p->moves->activate(&q->finish, row, width);
        if (!direct && !q->writes_codes)
            memcpy((float *)out + r * p->step, row, (size_t)width * sizeof *row);
    }
    if (!q->writes_codes) return;
    q->functions->quantize_row(&q->results, block, rows * whole, codes);
    for (int r = 0; r < rows; r++)
        memcpy((int8_t *)out + r * p->step, codes + r * whole, (size_t)width);
}

/* Sum some rows, which are packed, in a panel of columns; `next`: the panel read next, or NULL. */
static void sum_panel(const struct product *p, int64_t rows, int64_t k, int64_t panel,
                      const float *data, const float *next, const struct pack_buffers *packed,
                      void *out) {
    const int64_t lanes = p->kernels->lanes, depth = least(p->depth, p->k - k);
    const int64_t begin = panel_begin(p->vectors, p->panels, panel);
    const int columns = (int)(panel_begin(p->vectors, p->panels, panel + 1) - begin);
    const struct epilogue *const finish = k + depth == p->k ? p->finish : NULL;
    const float *const bias = p->bias && k == 0 ? p->bias + begin * lanes : NULL;
    const int begins = bias ? BEGINS_WITH_BIAS : k == 0;
    const float *const a = packed->a;
    for (int64_t r = 0; r < rows;) {
        const int group = group_rows(p->kernels, rows - r);
        const float *const terms = a + r * depth;
        const void *const ahead =
            next ? fetch_part(next, columns * lanes * depth, r, r + group, rows, depth) : weights_ahead(terms);
        void *const to = out_from(p, out, r * p->step + begin * lanes);
        /* Codes have no room for the first sums. */
        const int in_scratch = p->quantized && p->quantized->writes_codes;
        const int64_t step = in_scratch ? columns * lanes : p->step;
        void *const sums = in_scratch ? packed->sums + r * step : to;
        if (p->quantized && k + depth == p->k)
            finish_codes(p, group, columns, depth, begin * lanes, data, terms, begins,
                         packed->row_sums + r, sums, step, ahead, to);
        else if (in_scratch)
            p->kernels->table[group][columns](depth, p->offsets[columns], data, terms, sums, step, 1,
                                              begins, NULL, NULL, ahead);
        else
            sum_block(p, group, columns, depth, data, terms, p->n - begin * lanes, begins,
                      bias, finish, ahead, to);
        r += group;
    }
}

/* The packed terms of a panel from k on. */
static const float *packed_at(const struct product *p, int64_t panel, int64_t k) {
    const int64_t begin = panel_begin(p->vectors, p->panels, panel);
    const int64_t columns = panel_begin(p->vectors, p->panels, panel + 1) - begin;
    return p->packed + (begin * p->k + k * columns) * p->kernels->lanes;
}

/* Unpack terms of a panel of codes: column by column, then as rows of vectors. */
static void unpack_codes(const struct product *p, int64_t begin, int64_t vectors, int64_t k,
                         int64_t depth, struct pack_buffers to) {
    const int64_t lanes = p->kernels->lanes;
    for (int64_t v = 0; v < vectors; v++) {
        const int64_t first = (begin + v) * lanes, count = least(lanes, p->n - first);
        for (int64_t c = 0; c < count; c++)
            p->decodes->unpack(p->coded, first + c, k, k + depth, to.unpacked + c * depth);
        p->moves->gather_channels(to.unpacked, depth, count, depth, p->unpacked, to.gathered);
        place_lines(to.gathered, lanes, lanes, depth, vectors * lanes, to.b + v * lanes);
    }
}

/* The terms of a panel from k on, unpacked in to.b if they are not packed. */
static const float *panel_at(const struct product *p, const float *b, int64_t panel, int64_t k,
                             int64_t depth, struct pack_buffers to) {
    const struct quantized_factor *const q = p->quantized;
    if (p->packed && !(q && q->shorts)) return packed_at(p, panel, k);
    const int64_t lanes = p->kernels->lanes, begin = panel_begin(p->vectors, p->panels, panel);
    const int64_t vectors = panel_begin(p->vectors, p->panels, panel + 1) - begin;
    if (q) {
        const int64_t half = depth / 2 * vectors * lanes;
        const uint32_t *bytes = (const uint32_t *)p->packed + (begin * p->k + k * vectors) * lanes / 2;
        q->functions->extend(0, bytes, half, (uint32_t *)to.b, (uint32_t *)to.b + half);
    } else if (p->coded) unpack_codes(p, begin, vectors, k, depth, to);
    else if (p->compressed)
        p->unpacks->unpack(p->compressed, begin * lanes, vectors, k, k + depth, to.b,
                           vectors * lanes);
    else pack_panel(p, b + k * p->b.row, panel, depth, to.gathered, to.b);
    return to.b;
}

/* As sum_panels(), of results that are codes: all terms of rows are packed, so that panels are complete in turn. */
static void sum_panels_of_codes(const struct product *p, const void *a, int64_t rows,
                                int64_t first_panel, int64_t last_panel, struct pack_buffers to,
                                void *out) {
    float *const packed = to.a;
    for (int64_t k = 0; k < p->k; k += p->depth) {
        to.a = packed + rows * k;
        pack_groups(p, a_from(p, a, k * p->a.column), rows, k, least(p->depth, p->k - k), to);
    }
    for (int64_t panel = first_panel; panel < last_panel; panel++)
        for (int64_t k = 0; k < p->k; k += p->depth) {
            const int64_t depth = least(p->depth, p->k - k);
            const float *const data = panel_at(p, NULL, panel, k, depth, to), *next = NULL;
            if (data == to.b) next = NULL;
            else if (k + depth < p->k) next = packed_at(p, panel, k + depth);
            else if (panel + 1 < last_panel) next = packed_at(p, panel + 1, 0);
            to.a = packed + rows * k;
            sum_panel(p, rows, k, panel, data, next, &to, out);
        }
}

void sum_panels(const struct product *p, const void *a, const float *b, int64_t rows,
                int64_t first_panel, int64_t last_panel, struct pack_buffers to, void *out) {
    if (p->quantized && p->quantized->writes_codes) {
        sum_panels_of_codes(p, a, rows, first_panel, last_panel, to, out);
        return;
    }
    for (int64_t k = 0; k < p->k; k += p->depth) {
        const int64_t depth = least(p->depth, p->k - k);
        pack_groups(p, a_from(p, a, k * p->a.column), rows, k, depth, to);
        for (int64_t panel = first_panel; panel < last_panel; panel++) {
            const float *const data = panel_at(p, b, panel, k, depth, to), *next = NULL;
            if (data == to.b) next = NULL;
            else if (panel + 1 < last_panel) next = packed_at(p, panel + 1, k);
            else if (k + depth < p->k) next = packed_at(p, first_panel, k + depth);
            sum_panel(p, rows, k, panel, data, next, &to, out);
        }
    }
}

int64_t count_packed(struct product *p, int64_t rows) {
    const int64_t depth = least(p->k, p->depth), widest = p->kernels->columns[p->kernels->rows];
    const int writes_codes = p->quantized && p->quantized->writes_codes;
    p->packed_a = rows * (writes_codes ? p->k : depth);
    const int as_packed = p->packed && !(p->quantized && p->quantized->shorts);
    p->packed_b = as_packed ? 0 : depth * widest * p->kernels->lanes;
    int64_t vectors = depth * p->kernels->lanes * (p->coded ? 2 : 1);
    if (joins_terms(p)) vectors += depth * most(p->kernels->lanes, p->kernels->rows) + rows;
    p->panel_sums = writes_codes && depth < p->k ? rows * widest * p->kernels->lanes : 0;
    vectors += p->panel_sums;
    return (p->packed_a + p->packed_b + vectors) * (int64_t)sizeof(float);
}

struct pack_buffers places_at(const struct product *p, float *scratch) {
    float *const b = scratch + p->packed_a, *const gathered = b + p->packed_b;
    const int64_t depth = least(p->k, p->depth);
    float *const unpacked = gathered + depth * p->kernels->lanes;
    void *const sums = unpacked + depth * most(p->kernels->lanes, p->kernels->rows);
    return (struct pack_buffers){scratch, b, gathered, unpacked, (int32_t *)sums + p->panel_sums, sums};
}

/* The first row of a job: each has whole groups. */
static int64_t row_begin(const struct product *p, int64_t row_job) {
    const int64_t groups = divide_up(p->m, p->kernels->rows);
    return least(p->m, row_job * groups / p->row_jobs * p->kernels->rows);
}

static void multiply(void *context, int64_t job, void *scratch) {
    const struct product *p = context;
    const int64_t column_job = job % p->column_jobs, row_job = job / p->column_jobs % p->row_jobs;
    const int64_t index = job / p->column_jobs / p->row_jobs;
    const int64_t first = row_begin(p, row_job);
    sum_panels(p, a_from(p, matrix_at(p, &p->a, index), first * p->a.row),
               p->b.first ? matrix_at(p, &p->b, index) : NULL, row_begin(p, row_job + 1) - first,
               column_job * p->panels_at_once,
               least(p->panels, (column_job + 1) * p->panels_at_once), places_at(p, scratch),
               out_from(p, p->out, (index * p->m + first) * p->step));
}

/* The rows of a job; packed ones stay in the second-level cache if all their terms are packed. */
static int64_t most_rows(const struct product *p) {
    if (!p->quantized || !p->quantized->writes_codes) return MOST_ROWS;
    const int64_t rows = least(MOST_ROWS, MOST_ROWS * MOST_DEPTH / p->k);
    return most(rows / p->kernels->rows, 1) * p->kernels->rows;
}

int run_product(struct product *p, int64_t threads) {
    int64_t matrices = 1;
    for (int d = 0; d < p->stacked; d++) matrices *= p->stack[d];
    const int64_t wanted = threads > 1 ? divide_up(2 * threads, matrices) : 1;
    p->row_jobs = most(divide_up(p->m, most_rows(p)), least(wanted, p->m / LEAST_ROWS));
    /* With a job less than all others, a thread would wait for about as long as a job takes. */
    const int64_t even = round_up(p->row_jobs, threads);
    if (matrices == 1 && p->row_jobs > 1 && even <= p->m / LEAST_ROWS) p->row_jobs = even;
    const int64_t at_once = divide_up(divide_up(p->m, p->kernels->rows), p->row_jobs);
    /* Jobs of the same rows each pack them, which is not worth it if the rows alone occupy all threads evenly. */
    const int64_t of_rows = p->row_jobs * matrices % threads ? divide_up(wanted, p->row_jobs) : 1;
    p->panels_at_once = divide_up(p->panels, least(p->panels, of_rows));
    p->column_jobs = divide_up(p->panels, p->panels_at_once);
    const int64_t bytes = count_packed(p, at_once * p->kernels->rows);
    return run_unlocked(multiply, p, matrices * p->row_jobs * p->column_jobs, threads, bytes);
}

int take_matrices(const Py_buffer *buffer, struct matrices *all) {
    const int axes = buffer->ndim;
    if (axes < 2 || axes - 2 > MOST_STACKED || buffer->itemsize != sizeof(float)) return 0;
    if ((uintptr_t)buffer->buf % sizeof(float)) return 0;
    for (int d = 0; d < axes; d++)
        if (buffer->shape[d] < 1 || buffer->strides[d] % (Py_ssize_t)sizeof(float)) return 0;
    all->first = buffer->buf;
    for (int d = 0; d < axes - 2; d++)
        all->stack[d] = buffer->strides[d] / (Py_ssize_t)sizeof(float);
    all->row = buffer->strides[axes - 2] / (Py_ssize_t)sizeof(float);
    all->column = buffer->strides[axes - 1] / (Py_ssize_t)sizeof(float);
    return 1;
}

void set_columns(struct product *p, int64_t n) {
    p->n = p->step = n;
    p->vectors = divide_up(n, p->kernels->lanes);
    p->panels = divide_up(p->vectors, p->kernels->columns[p->kernels->rows]);
}

int take_kernels(struct product *p, int64_t isa, enum accumulator accumulator) {
    if (!isa_available(isa)) return 0;
    p->kernels = microkernels_for((enum isa)isa, accumulator);
    p->moves = microkernels_for((enum isa)isa, ACC_F32);
    if (!p->kernels) return 0;
    p->scale = 1, p->depth = MOST_DEPTH, p->a_bytes = p->out_bytes = sizeof(float);
    if (p->kernels->columns[p->kernels->rows] > MOST_PANEL) return 0;
    set_columns(p, p->n);
    for (int i = 0; i < MOST_DEPTH; i++) p->places[i] = i;
    for (int c = 1; c <= MOST_PANEL; c++)
        for (int i = 0; i < MOST_DEPTH + AHEAD; i++) p->offsets[c][i] = i * c * p->kernels->lanes;
    return 1;
}

/* Place a block of b in the panels that it is in, of `terms` rows. */
static void place_block(const struct product *p, const struct pack_columns_fields *f, int64_t width,
                        float *out) {
    const int64_t lanes = p->kernels->lanes;
    float gathered[MOST_DEPTH * CACHE_LINE / sizeof(float)];
    for (int64_t panel = 0; panel < p->panels; panel++) {
        const int64_t begin = panel_begin(p->vectors, p->panels, panel) * lanes;
        const int64_t end = panel_begin(p->vectors, p->panels, panel + 1) * lanes;
        const int64_t first = most(f->column, begin), last = least(f->column + width, end);
        for (int64_t k = 0; first < last && k < p->k; k += MOST_DEPTH)
            place(p, p->b.first + k * p->b.row + (first - f->column) * p->b.column, p->b.row,
                  p->b.column, least(MOST_DEPTH, p->k - k), last - first, end - begin, gathered,
                  out + begin * f->terms + (f->row + k) * (end - begin) + first - begin);
    }
}

/* out: `terms` rows of whole vectors */
PyObject *module_pack_columns(PyObject *module, PyObject *arguments) {
    (void)module;
    int held = 0, failed = -1;
    PyObject *given[2];
    struct pack_columns_fields f;
    if (take_call(arguments, 2, given, &f, sizeof f)) return NULL;
    Py_buffer buffers[2];
    struct product p = {0};
    if (PyObject_GetBuffer(given[0], &buffers[0], PyBUF_STRIDED_RO) == 0) held++;
    if (held == 1 && PyObject_GetBuffer(given[1], &buffers[1], PyBUF_CONTIG) == 0) held++;
    if (held == 2 && take_matrices(&buffers[0], &p.b) && buffers[0].ndim == 2) {
        const int64_t bytes = buffers[1].len, width = buffers[0].shape[1];
        p.k = buffers[0].shape[0], p.n = f.columns;
        if (0 < f.columns && f.columns <= bytes && take_kernels(&p, f.isa, ACC_F32) &&
            f.terms <= bytes / (p.vectors * p.kernels->lanes * (int64_t)sizeof(float)) &&
            0 <= f.row && f.row <= f.terms - p.k && 0 <= f.column &&
            f.column <= f.columns - width) {
            place_block(&p, &f, width, buffers[1].buf);
            failed = 0;
        }
    }
    return release_all(failed, buffers, held);
}

/* Stacks have equal numbers of axes, and are broadcast by strides. */
PyObject *module_multiply(PyObject *module, PyObject *arguments) {
    (void)module;
    int held = 0, failed = -1;
    PyObject *given[4];
    struct multiply_fields f;
    if (take_call(arguments, 4, given, &f, sizeof f)) return NULL;
    struct epilogue finish = EPILOGUE_OF(f);
    PyObject *const bias = given[2];
    PyObject *const matrices[] = {given[0], given[1], given[3]};
    Py_buffer buffers[4];
    const int flags[] = {PyBUF_STRIDED_RO, f.is_packed ? PyBUF_CONTIG_RO : PyBUF_STRIDED_RO,
                         PyBUF_CONTIG | PyBUF_ND};
    while (held < 3 && PyObject_GetBuffer(matrices[held], &buffers[held], flags[held]) == 0) held++;
    struct product p = {0};
    if (held == 3 && take_matrices(&buffers[0], &p.a) && buffers[2].ndim == buffers[0].ndim &&
        buffers[2].itemsize == sizeof(float)) {
        const int axes = buffers[0].ndim;
        const Py_ssize_t *a = buffers[0].shape, *out = buffers[2].shape;
        p.stacked = axes - 2;
        p.m = a[axes - 2], p.k = p.terms = a[axes - 1], p.n = out[axes - 1];
        p.out = buffers[2].buf;
        int good = p.n > 0 && out[axes - 2] == p.m && take_kernels(&p, f.isa, f.pairs ? ACC_PAIRS : ACC_F32) &&
                   epilogue_take(&finish, f.isa, 1, f.activation, f.function);
        p.finish = f.activation ? &finish : NULL;
        for (int d = 0; d < p.stacked; d++) {
            p.stack[d] = out[d];
            good = good && a[d] == out[d];
        }
        if (good && f.pairs) {
            good = f.is_packed && (p.a.column == 1 || p.k == 1);
            p.pairs = BY_ISA((enum isa)f.isa, &functions_quantized);
            p.a.column = 2, p.k = divide_up(p.k, 2);
        }
        if (good && f.is_packed) {
            p.packed = buffers[1].buf;
            good = buffers[1].len >=
                   p.k * p.vectors * p.kernels->lanes * (int64_t)sizeof(float);
        } else if (good) {
            good = buffers[1].ndim == axes && take_matrices(&buffers[1], &p.b) &&
                   buffers[1].shape[axes - 2] == p.k && buffers[1].shape[axes - 1] == p.n;
            for (int d = 0; good && d < p.stacked; d++) good = buffers[1].shape[d] == out[d];
        }
        if (good && bias != Py_None) {
            good = PyObject_GetBuffer(bias, &buffers[3], PyBUF_CONTIG_RO) == 0;
            held += good;
            good = good && buffers[3].len == p.n * (int64_t)sizeof(float);
            p.bias = buffers[3].buf;
        }
        if (good) failed = run_product(&p, threads_within(f.threads));
    }
    return release_all(failed, buffers, held);
}
