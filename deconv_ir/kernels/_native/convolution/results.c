/* Results: whether they are streamed, and those that no tap reaches: the bias, activated. */
#include "convolution/convolution.h"

#include <stdlib.h>
#include <string.h>

int is_streamed(const struct kernel *k, const struct run *run) {
    const enum element element = (enum element)k->problem.element;
    const int64_t size = element_size(element);
    const int64_t row = run->extent * size;
    const int64_t rows = run->batch * k->problem.groups * k->problem.channels_out / k->problem.folded *
                         run->output[0] * run->output[1];
    return (sums_are_f32(element) || element == F64) && row >= STREAMED_ROW &&
           rows * row >= STREAMED_BYTES;
}

/* Positions of an axis. */
struct spans {
    int64_t count;
    struct span {
        int64_t begin, end;
    } *span;
};

struct results_context {
    const struct kernel *k;
    const struct problem *problem;
    const struct microkernels *kernels;
    const struct run *run;
    char *out;
    const struct spans *spans;
};

/* Write one value to `count` results from `to` on, plus an addition; `values` holds it `at_once`
 * times. */
static void fill(const struct results_context *c, const void *values, int64_t at_once, char *to,
                 int64_t count) {
    const enum element element = (enum element)c->problem->element;
    for (int64_t done = 0; done < count; done += at_once)
        c->kernels->store(element, values, least(at_once, count - done),
                          to + done * element_size(element));
    if (c->run->addition) add_to(c->run->addition, to, to, count);
}

static int is_within(const struct spans *spans, int64_t at) {
    for (int64_t i = 0; i < spans->count; i++)
        if (at >= spans->span[i].begin && at < spans->span[i].end) return 1;
    return 0;
}

/* fill_channel() for four channels of a layer of codes. */
static void fill_codes(const struct results_context *c, int64_t job) {
    const struct results *r = c->run->results;
    const int64_t *output = c->run->output, extent = c->run->extent;
    const int64_t channels = r->by->channels, fours = divide_up(channels, 4);
    const int64_t image = job / fours, channel = job % fours * 4, count = least(4, channels - channel);
    for (int64_t row = 0; row < output[0] * output[1]; row++) {
        const int64_t first = row * extent;
        if (is_within(&c->spans[0], row / output[1]) || is_within(&c->spans[1], row % output[1])) {
            write_empty_results(r, image, channel, count, first, extent);
            continue;
        }
        for (int64_t i = 0; i < c->spans[2].count; i++) {
            const struct span *span = &c->spans[2].span[i];
            write_empty_results(r, image, channel, count, first + span->begin,
                                span->end - span->begin);
        }
    }
}

static void fill_channel(void *context, int64_t job, void *scratch) {
    static const int32_t no_offsets[AHEAD];
    const struct results_context *c = context;
    if (c->run->results) {
        fill_codes(c, job);
        return;
    }
    const int64_t *output = c->run->output, extent = c->run->extent;
    const int64_t size = element_size((enum element)c->problem->element);
    const int64_t outs = c->problem->channels_out / c->problem->folded;
    const int64_t channel = job % (c->problem->groups * outs);
    const char *bias = c->k->bias;
    if (bias)
        bias += (channel / outs * c->problem->channels_out + channel % outs) * c->kernels->size;
    /* A sum without taps is the bias, activated. */
    const int columns = c->kernels->columns[1];
    const int64_t at_once = columns * c->kernels->lanes;
    c->kernels->table[1][columns](0, no_offsets, scratch, scratch, scratch, 0, 1, 1, bias,
                                  &c->k->epilogue, scratch);
    char *row = c->out + job * output[0] * output[1] * extent * size;
    for (int64_t z = 0; z < output[0]; z++) {
        const int plane_within = is_within(&c->spans[0], z);
        for (int64_t y = 0; y < output[1]; y++, row += extent * size) {
            if (plane_within || is_within(&c->spans[1], y)) {
                fill(c, scratch, at_once, row, extent);
                continue;
            }
            const struct spans *spans = &c->spans[2];
            for (int64_t i = 0; i < spans->count; i++)
                fill(c, scratch, at_once, row + spans->span[i].begin * size,
                     spans->span[i].end - spans->span[i].begin);
        }
    }
}

/* For fewer results than this, waking other threads takes longer than filling. */
#define FEW_RESULTS ((int64_t)1 << 15)

static int fill_spans(const struct kernel *k, const struct run *run, void *out,
                      const struct spans spans[AXES]) {
    const int64_t extents[AXES] = {run->output[0], run->output[1], run->extent};
    int64_t all = 1, others = 1;
    for (int a = 0; a < AXES; a++) {
        int64_t within = 0;
        for (int64_t i = 0; i < spans[a].count; i++)
            within += spans[a].span[i].end - spans[a].span[i].begin;
        all *= extents[a];
        others *= extents[a] - within;
    }
    int64_t channels = run->batch * k->problem.groups * k->problem.channels_out / k->problem.folded;
    if (run->results) channels = run->batch * divide_up(run->results->by->channels, 4);
    if (all == others || channels == 0) return 0;
    struct results_context context = {k, &k->problem, k->kernels, run, out, spans};
    const int64_t threads = (all - others) * channels < FEW_RESULTS ? 1 : run->threads;
    return parallel_run(fill_channel, &context, channels, threads,
                        MAX_COLUMNS * k->kernels->lanes * k->kernels->size);
}

int fill_outside(const struct kernel *k, const struct run *run, void *out,
                 const int64_t low[AXES], const int64_t high[AXES]) {
    const int64_t extents[AXES] = {run->output[0], run->output[1], run->extent};
    struct span ends[AXES][2];
    struct spans spans[AXES];
    for (int a = 0; a < AXES; a++) {
        ends[a][0] = (struct span){0, low[a]};
        ends[a][1] = (struct span){high[a], extents[a]};
        spans[a] = (struct spans){2, ends[a]};
    }
    return fill_spans(k, run, out, spans);
}

/* Whether a tap reads data for a result of an axis. */
static int is_reached(const struct problem *problem, const struct run *run, int axis, int64_t at) {
    const int64_t stride = problem->forward ? 1 : problem->strides[axis];
    const int64_t dilation = problem->dilations[axis], pad = run->pads_begin[axis];
    for (int64_t k = 0; k < problem->kernel[axis]; k++) {
        const int64_t to = problem->forward ? at + dilation * k - pad : at + pad - dilation * k;
        if (to >= 0 && to % stride == 0 && to / stride < run->data[axis]) return 1;
    }
    return 0;
}

static int add_span(struct spans *spans, int64_t *capacity, int64_t begin, int64_t end) {
    if (begin >= end) return 0;
    if (spans->count > 0 && spans->span[spans->count - 1].end == begin) {
        spans->span[spans->count - 1].end = end;
        return 0;
    }
    if (spans->count == *capacity) {
        *capacity = 2 * *capacity + 4;
        struct span *more = realloc(spans->span, (size_t)*capacity * sizeof *more);
        if (!more) return OUT_OF_MEMORY;
        spans->span = more;
    }
    spans->span[spans->count++] = (struct span){begin, end};
    return 0;
}

/* The results of an axis that no tap reaches: all outside of `natural`, and some that only some
 * taps may reach. */
static int spans_make(const struct problem *problem, const struct run *run, int axis,
                      struct spans *spans) {
    const int64_t last = run->output[axis], pad = run->pads_begin[axis];
    const int64_t reach = problem->dilations[axis] * (problem->kernel[axis] - 1);
    const int64_t data = (run->data[axis] - 1) * (problem->forward ? 1 : problem->strides[axis]);
    const int64_t first = problem->forward ? pad - reach : -pad;
    const int64_t natural[2] = {most(0, least(first, last)),
                                most(0, least(first + data + reach + 1, last))};
    /* All taps of the results between these two reach data. */
    const int64_t inner = least(most(first + reach, natural[0]), natural[1]);
    const int64_t outer = least(most(first + data + 1, inner), natural[1]);
    int64_t capacity = 0;
    if (add_span(spans, &capacity, 0, natural[0])) return OUT_OF_MEMORY;
    for (int64_t at = natural[0]; at < natural[1]; at++) {
        if (at == inner) at = outer;
        if (at < natural[1] && !is_reached(problem, run, axis, at) &&
            add_span(spans, &capacity, at, at + 1))
            return OUT_OF_MEMORY;
    }
    return add_span(spans, &capacity, natural[1], last);
}

int fill_unreached(const struct kernel *k, const struct run *run, void *out) {
    struct spans spans[AXES] = {{0, NULL}};
    int failed = 0;
    for (int a = 0; a < AXES && !failed; a++) failed = spans_make(&k->problem, run, a, &spans[a]);
    if (!failed) failed = fill_spans(k, run, out, spans);
    for (int a = 0; a < AXES; a++) free(spans[a].span);
    return failed;
}
