/* Runs elementwise programs: blocks of elements, on several threads. */
#include "pointwise/pointwise.h"
#include "simd/half.h"

#include <string.h>

/* Blocks of a job: constants are broadcast to their registers once per job. */
#define JOB_BLOCKS 16
/* Minimum number of elements per thread. */
#define LEAST_SHARED 16384

typedef float reg[POINTWISE_BLOCK];

struct pointwise_run {
    const struct pointwise_program *program;
    const struct pointwise_arrays *arrays;
    int alike[MOST_INPUTS]; /* whether elements have the layout of the output */
};

static float element_at(enum pointwise_element element, const char *at) {
    float value;
    uint16_t narrow;
    if (element == PW_BOOLEAN) return *at != 0;
    if (element == PW_F32) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&narrow, at, sizeof narrow);
    return element == PW_F16 ? half_to_float(narrow) : bfloat_to_float(narrow);
}

/* Read `count` elements that are `step` elements apart; neither is 0. */
static void load(const struct microkernels *kernels, enum pointwise_element element, const char *in,
                 int64_t step, int64_t count, float *out) {
    static const enum element stored[] = {F32, F16, BF16};
    if (element == PW_BOOLEAN)
        for (int64_t i = 0; i < count; i++) out[i] = in[i * step] != 0;
    else kernels->load(stored[element], in, step, count, out);
}

static void store(const struct microkernels *kernels, enum pointwise_element element,
                  const float *in, int64_t count, char *out) {
    if (element == PW_F32) memcpy(out, in, (size_t)count * sizeof *in);
    else if (element == PW_BOOLEAN)
        for (int64_t i = 0; i < count; i++) out[i] = in[i] != 0;
    else kernels->store(element == PW_F16 ? F16 : BF16, in, count, out);
}

/* An iterator over the elements of an input for a block of the output, by runs of the last axis. */
struct cursor {
    int64_t index[MOST_DIMS];
    int64_t offset; /* of the current element */
};

static struct cursor cursor_at(const struct pointwise_arrays *a, int input, int64_t position) {
    struct cursor c = {.offset = 0};
    for (int d = a->dims - 1; d >= 0; d--) {
        c.index[d] = position % a->shape[d];
        position /= a->shape[d];
        c.offset += c.index[d] * a->steps[input][d];
    }
    return c;
}

/* Advance to the beginning of the next run. */
static inline void next_run(struct cursor *c, const struct pointwise_arrays *a, int input) {
    int d = a->dims - 1;
    c->offset -= c->index[d] * a->steps[input][d];
    c->index[d] = 0;
    for (d--; d >= 0; d--) {
        c->offset += a->steps[input][d];
        if (++c->index[d] < a->shape[d]) return;
        c->offset -= c->index[d] * a->steps[input][d];
        c->index[d] = 0;
    }
}

/* Elements of a run to which a value is broadcast at once. */
#define SHORT_RUN 16

/* Broadcast f32 to the short runs of a block: a whole vector each, whose excess the next run
 * overwrites.  Return the number of elements written: all but those of the last runs. */
static int64_t broadcast_short(const struct pointwise_arrays *a, int input, int64_t count,
                            struct cursor *c, float *out) {
    const int64_t extent = a->shape[a->dims - 1];
    int64_t done = 0;
    for (int64_t length = extent - c->index[a->dims - 1]; done + SHORT_RUN + length <= count;
         length = extent) {
        const float value = element_at(PW_F32, a->inputs[input] + c->offset * 4);
        for (int i = 0; i < SHORT_RUN; i++) out[done + i] = value;
        done += length;
        next_run(c, a, input);
    }
    return done;
}

/* Return the elements of a block of an input: in place, or copied to `into`.  `broadcast_from` is
 * the element that fills the register, or NULL. */
static const float *fetch(const struct pointwise_run *run, int input, int64_t begin,
                          int64_t count, int whole, float *into, const char **broadcast_from) {
    const struct pointwise_arrays *a = run->arrays;
    const enum pointwise_element element = run->program->input_elements[input];
    const int64_t size = pointwise_size(element), last = a->dims - 1;
    const int64_t extent = a->shape[last], step = a->steps[input][last];
    if (run->alike[input]) {
        const char *in = a->inputs[input] + begin * size;
        if (element == PW_F32 && whole) return (const float *)(const void *)in;
        load(run->program->kernels, element, in, 1, count, into);
        return into;
    }
    const struct pointwise_functions *functions = run->program->functions;
    struct cursor c = cursor_at(a, input, begin);
    if (c.index[last] + count <= extent) {
        const char *in = a->inputs[input] + c.offset * size;
        if (step == 1 && element == PW_F32 && whole) return (const float *)(const void *)in;
        if (step != 0) load(run->program->kernels, element, in, step, count, into);
        else if (*broadcast_from != in) {
            functions->broadcast(element_at(element, in), POINTWISE_BLOCK, into);
            *broadcast_from = in;
        }
        return into;
    }
    *broadcast_from = NULL;
    int64_t done = 0;
    if (step == 0 && element == PW_F32 && extent <= SHORT_RUN)
        done = broadcast_short(a, input, count, &c, into);
    while (done < count) {
        const int64_t length = least(count - done, extent - c.index[last]);
        const char *in = a->inputs[input] + c.offset * size;
        if (step == 0) functions->broadcast(element_at(element, in), length, into + done);
        else load(run->program->kernels, element, in, step, length, into + done);
        done += length;
        if (done < count) {
            c.offset += (length - 1) * step;
            c.index[last] += length - 1;
            next_run(&c, a, input);
        }
    }
    return into;
}

static void do_block(const struct pointwise_run *run, int64_t begin, int64_t count, reg *registers,
                     const char **broadcast_from) {
    const struct pointwise_program *p = run->program;
    const int64_t lanes = p->functions->lanes, padded = round_up(count, lanes);
    const int whole = padded == count;
    const float *values[MOST_REGISTERS];
    for (int i = 0; i < p->inputs; i++)
        values[i] = fetch(run, i, begin, count, whole, registers[i], &broadcast_from[i]);
    for (int i = p->inputs; i < p->registers; i++) values[i] = registers[i];
    char *const out = run->arrays->out + begin * pointwise_size(p->output_element);
    const int direct = whole && p->output_element == PW_F32;
    for (int i = 0; i < p->instructions; i++) {
        const struct pointwise_instruction *in = &p->code[i];
        const float *operands[MOST_OPERANDS];
        for (int k = 0; k < MOST_OPERANDS; k++) operands[k] = values[in->operands[k]];
        float *to = registers[in->out];
        if (direct && i == p->instructions - 1) to = (float *)(void *)out;
        p->functions->table[in->operation](operands, in->immediates, padded, to);
    }
    if (!direct)
        store(p->kernels, p->output_element, registers[p->code[p->instructions - 1].out], count,
              out);
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct pointwise_run *run = context;
    const struct pointwise_program *p = run->program;
    reg *registers = scratch;
    const char *broadcast_from[MOST_INPUTS] = {NULL};
    for (int i = 0; i < p->constants; i++)
        p->functions->broadcast(p->constant_values[i], POINTWISE_BLOCK, registers[p->inputs + i]);
    const int64_t all = run->arrays->count, first = job * JOB_BLOCKS * POINTWISE_BLOCK;
    const int64_t end = least(all, first + JOB_BLOCKS * POINTWISE_BLOCK);
    for (int64_t at = first; at < end; at += POINTWISE_BLOCK)
        do_block(run, at, least(POINTWISE_BLOCK, end - at), registers, broadcast_from);
}

static int lies_alike(const struct pointwise_arrays *a, int input) {
    int64_t step = 1;
    for (int d = a->dims - 1; d >= 0; d--) {
        if (a->steps[input][d] != step) return 0;
        step *= a->shape[d];
    }
    return 1;
}

int pointwise_execute(const struct pointwise_program *program,
                      const struct pointwise_arrays *arrays, int64_t threads) {
    struct pointwise_run run = {program, arrays, {0}};
    for (int i = 0; i < program->inputs; i++) run.alike[i] = lies_alike(arrays, i);
    const int64_t jobs = divide_up(arrays->count, JOB_BLOCKS * POINTWISE_BLOCK);
    const int64_t shared = most(1, arrays->count * program->instructions / LEAST_SHARED);
    return parallel_run(do_job, &run, jobs, least(threads, shared),
                        program->registers * (int64_t)sizeof(reg));
}
