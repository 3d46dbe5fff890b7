/* Attention: softmax(scale * query key^T + mask) value of stacks of matrices in f32.  The weights
 * of the queries that are computed at once stay in cache as [key][query]: no sums across lanes.
 *
 * The GEMMs of a job: the scores, then the results.
 *   M  keys; then queries
 *   K  elements of a query; then keys
 *   N  queries; then elements of a value
 */
#include "products/products.h"
#include "simd/rows.h"

#define JOBS_OF_THREAD 3 /* of queries, if matrices are few */

struct attention {
    struct product scores, mixed; /* key query^T, and weights value */
    const struct row_functions *functions;
    struct matrices mask; /* [query][key]; first: NULL without a mask */
    int64_t queries, at_once, jobs, weights; /* of a matrix, of a job; of a matrix, of a job */
};

/* Add the mask of some queries to their scores, [key][query]. */
static void add_mask(const struct product *scores, const struct matrices *all, const float *mask,
                     float *space, float *weights) {
    const struct epilogue none = {0};
    float *const gathered = space + MASKED_KEYS * scores->step;
    for (int64_t key = 0; key < scores->m; key += MASKED_KEYS) {
        const int64_t count = least(MASKED_KEYS, scores->m - key);
        pack(scores, mask + key * all->column, all->column, all->row, count, scores->n,
             scores->step, gathered, space);
        scores->kernels->add(&none, space, weights + key * scores->step, count * scores->step);
    }
}

/* Division by the weights' sums comes last: a row of results is shorter than one of weights. */
static void attend(void *context, int64_t job, void *scratch) {
    const struct attention *t = context;
    struct product scores = t->scores, mixed = t->mixed;
    const int64_t index = job / t->jobs, first = job % t->jobs * t->at_once;
    const int64_t queries = least(t->queries - first, t->at_once);
    float *const factors = scratch, *const weights = factors + t->at_once;
    float *const rest = weights + t->weights;
    set_columns(&scores, queries);
    scores.step = round_up(queries, scores.kernels->lanes), scores.padded = 1;
    for (int64_t key = 0; key < scores.m; key += MOST_ROWS)
        sum_panels(&scores, matrix_at(&scores, &scores.a, index) + key * scores.a.row,
                   matrix_at(&scores, &scores.b, index) + first * scores.b.column,
                   least(MOST_ROWS, scores.m - key), 0, scores.panels, places_at(&scores, rest),
                   weights + key * scores.step);
    if (t->mask.first)
        add_mask(&scores, &t->mask, matrix_at(&scores, &t->mask, index) + first * t->mask.row, rest,
                 weights);
    t->functions->exponentials(weights, scores.m, scores.step, scores.step, factors);
    float *const out = (float *)mixed.out + (index * t->queries + first) * mixed.step;
    mixed.a.column = scores.step;
    sum_panels(&mixed, weights, matrix_at(&mixed, &mixed.b, index), queries, 0, mixed.panels,
               places_at(&mixed, rest), out);
    t->functions->scale_rows(out, queries, mixed.step, mixed.n, factors);
}

/* Divide the queries of each matrix into jobs of whole vectors, so that all threads have jobs. */
static int run(struct attention *t, int64_t threads) {
    struct product *scores = &t->scores;
    const int64_t panel = LEAST_VECTORS * scores->kernels->lanes;
    int64_t matrices = 1;
    for (int d = 0; d < scores->stacked; d++) matrices *= scores->stack[d];
    const int64_t fitting = MOST_WEIGHT_BYTES / (scores->m * (int64_t)sizeof(float));
    const int64_t most_queries = most(panel, least(MOST_ROWS, fitting));
    const int64_t fewest = divide_up(t->queries, most_queries);
    const int64_t wanted = threads > 1 ? divide_up(JOBS_OF_THREAD * threads, matrices) : 1;
    const int64_t jobs = most(fewest, least(wanted, t->queries / panel));
    t->at_once = round_up(divide_up(t->queries, jobs), scores->kernels->lanes);
    t->jobs = divide_up(t->queries, t->at_once);
    t->weights = scores->m * t->at_once;
    const int64_t lanes = scores->kernels->lanes, size = sizeof(float);
    const int64_t masked = t->mask.first ? MASKED_KEYS * (t->at_once + lanes) * size : 0;
    const int64_t packed = most(masked, most(count_packed(scores, least(scores->m, MOST_ROWS)),
                                             count_packed(&t->mixed, t->at_once)));
    return run_unlocked(attend, t, matrices * t->jobs, threads,
                        (t->at_once + t->weights) * size + packed);
}

/* Set the operands of both products: query, key, value and the result. */
static int take(struct attention *t, const Py_buffer *buffers, int64_t isa) {
    struct product *scores = &t->scores, *mixed = &t->mixed;
    const Py_buffer *query = buffers, *key = buffers + 1, *value = buffers + 2, *out = buffers + 3;
    const int axes = query->ndim, stacked = axes - 2;
    struct matrices queries;
    for (int i = 0; i < 4; i++)
        if (buffers[i].ndim != axes || buffers[i].itemsize != sizeof(float)) return 0;
    if (!take_matrices(query, &queries) || !take_matrices(key, &scores->a) ||
        !take_matrices(value, &mixed->b))
        return 0;
    scores->stacked = mixed->stacked = stacked;
    for (int d = 0; d < stacked; d++) {
        scores->stack[d] = mixed->stack[d] = out->shape[d];
        for (int i = 0; i < 3; i++)
            if (buffers[i].shape[d] != out->shape[d]) return 0;
    }
    t->queries = query->shape[stacked], scores->k = query->shape[axes - 1];
    scores->m = mixed->k = key->shape[stacked], mixed->n = value->shape[axes - 1];
    if (key->shape[axes - 1] != scores->k || value->shape[stacked] != mixed->k ||
        out->shape[stacked] != t->queries || out->shape[axes - 1] != mixed->n || mixed->n < 1)
        return 0;
    scores->b = queries, scores->b.row = queries.column, scores->b.column = queries.row;
    scores->n = t->queries;
    mixed->a.row = 1;
    mixed->out = out->buf;
    t->functions = row_functions_of(isa);
    return take_kernels(scores, isa, ACC_F32) && take_kernels(mixed, isa, ACC_F32);
}

/* Set the mask, which has the shape of the scores. */
static int take_mask(struct attention *t, const Py_buffer *mask) {
    const int stacked = t->scores.stacked;
    int good = mask->ndim == stacked + 2 && take_matrices(mask, &t->mask);
    for (int d = 0; good && d < stacked; d++) good = mask->shape[d] == t->scores.stack[d];
    return good && mask->shape[stacked] == t->queries && mask->shape[stacked + 1] == t->scores.m;
}

/* Stacks have equal numbers of axes, and are broadcast by strides. */
PyObject *module_attend(PyObject *module, PyObject *arguments) {
    (void)module;
    int held = 0, failed = -1;
    PyObject *given[5];
    struct attend_fields f;
    if (take_call(arguments, 5, given, &f, sizeof f)) return NULL;
    PyObject *const mask = given[3];
    PyObject *const matrices[] = {given[0], given[1], given[2], given[4]};
    Py_buffer buffers[5];
    struct attention t = {0};
    while (held < 4 && !PyObject_GetBuffer(matrices[held], &buffers[held],
                                           held < 3 ? PyBUF_STRIDED_RO : PyBUF_CONTIG | PyBUF_ND))
        held++;
    int good = held == 4 && isa_available(f.isa) && take(&t, buffers, f.isa);
    if (good && mask != Py_None) {
        good = PyObject_GetBuffer(mask, &buffers[4], PyBUF_STRIDED_RO) == 0;
        held += good;
        good = good && take_mask(&t, &buffers[4]);
    }
    if (good) {
        t.scores.scale = (float)f.scale;
        failed = run(&t, threads_within(f.threads));
    }
    return release_all(failed, buffers, held);
}
