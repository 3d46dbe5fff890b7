/* Runs an LSTM or a GRU over time, for all sequences and directions.
 *
 * The GEMMs of a block of units, inputs for many moments ahead and states for one:
 *   M  moments x sequences; or sequences
 *   K  inputs; or hidden units
 *   N  gates x units of the block
 */
#include "recurrent/recurrent.h"

#include "simd/moments.h"

#include <string.h>

/* Minimum multiply-adds per thread. */
#define LEAST_SHARED ((int64_t)1 << 18)
/* Minimum cycles of a moment's multiply-adds that threads share: they wait for each other after
 * each moment. */
#define SHARED_MOMENT 8192

struct recurrence {
    const struct recurrent_functions *functions;
    int64_t gates, inputs, units, blocks, batch, directions, time;
    const float *x;         /* [batch][time][inputs] */
    const float *w, *r;     /* [directions][blocks][inputs or units][gates][RECURRENT_UNITS] */
    const float *bias;      /* [directions][blocks][gates][RECURRENT_UNITS] */
    const float *inner;     /* GRU: [directions][blocks][RECURRENT_UNITS] */
    float *cell;            /* LSTM: [directions][batch][blocks][RECURRENT_UNITS] */
    float *hidden;          /* two such arrays: before and after a moment */
    float *steps;           /* [batch][directions][time][units] */
    float *projected;       /* [directions][at_once][batch][blocks][gates][RECURRENT_UNITS] */
    int64_t at_once, backwards; /* moments; a bit for each direction */
    int64_t begin, end, moment; /* moments of projected; the current one */
    int64_t shares;             /* of the blocks, one per thread */
    double multiply_adds;       /* that a core begins in a cycle */
};

static int64_t place_of(const struct recurrence *r, int64_t d, int64_t moment) {
    return r->backwards >> d & 1 ? r->time - 1 - moment : moment;
}

/* Multiplies the rows of X of the projected moments by W, for a block of a direction. */
static void project_block(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct recurrence *r = context;
    const int64_t d = job / r->blocks, block = job % r->blocks, width = r->gates * RECURRENT_UNITS;
    const int64_t count = (r->end - r->begin) * r->batch;
    struct projection p = {
        .depth = r->inputs,
        .weights = r->w + job * r->inputs * width,
        .bias = r->bias + job * width,
        .pitch = r->blocks * width,
    };
    for (int64_t row = 0; row < count; row += PROJECTED_ROWS) {
        const int64_t rows = least(PROJECTED_ROWS, count - row);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t place = place_of(r, d, r->begin + (row + i) / r->batch);
            p.rows[i] = r->x + ((row + i) % r->batch * r->time + place) * r->inputs;
        }
        p.out = r->projected + (d * r->at_once * r->batch + row) * p.pitch + block * width;
        r->functions->project(&p, rows);
    }
}

static void move_block(const struct recurrence *r, int64_t moment, int64_t d, int64_t block) {
    const int64_t pitch = r->blocks * RECURRENT_UNITS, state = r->directions * r->batch * pitch;
    const int64_t at = d * r->batch * pitch, unit = block * RECURRENT_UNITS;
    const float *before = r->hidden + moment % 2 * state + at;
    float *after = r->hidden + (moment + 1) % 2 * state + at;
    const struct time_step m = {
        .depth = r->units,
        .pitch = pitch,
        .batch = r->batch,
        .weights = r->r + (d * r->blocks + block) * r->units * r->gates * RECURRENT_UNITS,
        .inner = r->inner ? r->inner + (d * r->blocks + block) * RECURRENT_UNITS : NULL,
        .before = before,
        .projected = r->projected + ((d * r->at_once + moment - r->begin) * r->batch * pitch +
                                     unit) * r->gates,
        .old = before + unit,
        .cell = r->cell ? r->cell + at + unit : NULL,
        .hidden = after + unit,
    };
    r->functions->move(&m);
    const int64_t width = least(RECURRENT_UNITS, r->units - unit), place = place_of(r, d, moment);
    for (int64_t n = 0; n < r->batch; n++)
        memcpy(r->steps + ((n * r->directions + d) * r->time + place) * r->units + unit,
               after + n * pitch + unit, (size_t)width * sizeof(float));
}

/* The `at`-th block in a moment: the order alternates, so that a moment begins with the weights
 * that the one before has left in cache. */
static int64_t block_at(const struct recurrence *r, int64_t moment, int64_t at) {
    return moment % 2 ? r->blocks - 1 - at : at;
}

static void do_direction(void *context, int64_t d, void *scratch) {
    (void)scratch;
    const struct recurrence *r = context;
    for (int64_t t = r->begin; t < r->end; t++)
        for (int64_t at = 0; at < r->blocks; at++) move_block(r, t, d, block_at(r, t, at));
}

/* Blocks of all directions that the same thread computes at each moment, as far as it can: their
 * weights stay in its cache. */
struct thread_blocks {
    const struct recurrence *r;
    int64_t first, count;
};

static void do_block(void *context, int64_t piece, void *scratch) {
    (void)scratch;
    const struct thread_blocks *s = context;
    const int64_t at = s->first + (s->r->moment % 2 ? s->count - 1 - piece : piece);
    move_block(s->r, s->r->moment, at / s->r->blocks, at % s->r->blocks);
}

static void do_share(void *context, int64_t job, void *scratch) {
    const struct recurrence *r = context;
    const int64_t all = r->directions * r->blocks, first = job * all / r->shares;
    struct thread_blocks share = {r, first, (job + 1) * all / r->shares - first};
    parallel_pieces(do_block, &share, share.count, scratch);
}

static int run(struct recurrence *r, int64_t threads) {
    const int64_t state = r->directions * r->batch * r->blocks * RECURRENT_UNITS;
    const int64_t jobs = r->directions * r->blocks, work = state * r->gates * r->units;
    const int is_shared = threads > 1 && (double)work >= SHARED_MOMENT * r->multiply_adds;
    int failed = 0;
    r->shares = least(jobs, threads);
    for (r->begin = 0; r->begin < r->time && !failed; r->begin = r->end) {
        r->end = least(r->time, r->begin + r->at_once);
        const int64_t count = r->end - r->begin;
        const int64_t all = state * r->gates * r->inputs * count;
        failed = parallel_run(project_block, r, jobs,
                              most(1, least(threads, all / LEAST_SHARED)), 0);
        r->moment = r->begin;
        if (!failed && !is_shared)
            failed = parallel_run(do_direction, r, r->directions,
                                  work * count < LEAST_SHARED ? 1 : threads, 0);
        else
            for (; r->moment < r->end && !failed; r->moment++)
                failed = parallel_run(do_share, r, r->shares, threads, 0);
    }
    if (r->time % 2) memcpy(r->hidden, r->hidden + state, (size_t)state * sizeof(float));
    return failed;
}

/* The arrays, in the order of the arguments. */
enum { X, W, R, BIAS, EXTRA, HIDDEN, STEPS, PROJECTED, ARRAYS };

/* Whether f32 arrays have these shapes. */
static int has_shape(const Py_buffer *buffer, int ndim, const int64_t *shape) {
    int good = buffer->ndim == ndim && buffer->itemsize == 4;
    for (int i = 0; good && i < ndim; i++) good = buffer->shape[i] == shape[i];
    return good;
}

static int fill_in(struct recurrence *r, const Py_buffer *b, int is_gru) {
    if (b[X].ndim != 3 || b[R].ndim != 5 || b[PROJECTED].ndim != 4) return 0;
    r->gates = r->functions->gates;
    r->batch = b[X].shape[0], r->time = b[X].shape[1], r->inputs = b[X].shape[2];
    r->directions = b[R].shape[0], r->blocks = b[R].shape[1], r->units = b[R].shape[2];
    r->at_once = b[PROJECTED].shape[1];
    const int64_t d = r->directions, n = r->batch, g = r->gates, u = RECURRENT_UNITS;
    const int64_t pitch = r->blocks * u;
    const int64_t x[] = {n, r->time, r->inputs}, w[] = {d, r->blocks, r->inputs, g, u};
    const int64_t weights[] = {d, r->blocks, r->units, g, u}, bias[] = {d, r->blocks, g, u};
    const int64_t extra[] = {d, is_gru ? r->blocks : n, is_gru ? u : pitch};
    const int64_t hidden[] = {2, d, n, pitch}, steps[] = {n, d, r->time, r->units};
    const int64_t projected[] = {d, r->at_once, n, pitch * g};
    r->x = b[X].buf, r->w = b[W].buf, r->r = b[R].buf, r->bias = b[BIAS].buf;
    r->hidden = b[HIDDEN].buf, r->steps = b[STEPS].buf, r->projected = b[PROJECTED].buf;
    r->cell = is_gru ? NULL : b[EXTRA].buf;
    r->inner = is_gru ? b[EXTRA].buf : NULL;
    return has_shape(&b[X], 3, x) && has_shape(&b[W], 5, w) && has_shape(&b[R], 5, weights) &&
           has_shape(&b[BIAS], 4, bias) && has_shape(&b[EXTRA], 3, extra) &&
           has_shape(&b[HIDDEN], 4, hidden) && has_shape(&b[STEPS], 4, steps) &&
           has_shape(&b[PROJECTED], 4, projected) && r->units > pitch - u &&
           r->units <= pitch && d <= 2 && r->at_once > 0;
}

/* The arrays of struct recurrence are in f32 and contiguous. */
PyObject *module_recur(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[ARRAYS];
    struct recur_fields f;
    if (take_call(arguments, ARRAYS, given, &f, sizeof f)) return NULL;
    const int is_gru = f.is_gru != 0;
    Py_buffer buffers[ARRAYS] = {0};
    struct recurrence r = {.backwards = f.backwards};
    const unsigned written = 1 << HIDDEN | 1 << STEPS | 1 << PROJECTED | !is_gru << EXTRA;
    int good = take_arrays(given, ARRAYS, written, buffers) && isa_available(f.isa);
    if (good) {
        r.functions = BY_ISA(f.isa, functions_recurrent) + is_gru;
        r.multiply_adds = f.multiply_adds * microkernels_for((enum isa)f.isa, ACC_F32)->lanes;
    }
    if (good && fill_in(&r, buffers, is_gru)) {
        begin_unlocked();
        failed = run(&r, threads_within(f.threads));
        end_unlocked();
        if (failed == OUT_OF_MEMORY) PyErr_NoMemory();
    }
    return release_all(failed, buffers, ARRAYS);
}
