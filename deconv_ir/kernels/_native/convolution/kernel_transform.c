/* Packs the filter in the order in which the micro-kernel reads it: the GEMM's A,
 *   M  output channels of a group, in blocks of rows
 *   K  input channels x taps of a sub-convolution
 * as [group][sub-convolution][block of rows][K][row].
 */
#include "convolution/convolution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int subs_make(const struct problem *problem, int axis, struct subs *subs) {
    const int64_t stride = problem->strides[axis], dilation = problem->dilations[axis];
    const int64_t kernel = problem->kernel[axis];
    subs->count = problem->forward ? 1 : stride;
    subs->first = calloc((size_t)subs->count + 1, sizeof *subs->first);
    subs->taps = calloc((size_t)kernel, sizeof *subs->taps);
    if (!subs->first || !subs->taps) return -1;
    int64_t used = 0;
    for (int64_t r = 0; r < subs->count; r++) {
        subs->first[r] = used;
        for (int64_t k = 0; k < kernel; k++)
            if (problem->forward || dilation * k % stride == r)
                subs->taps[used++] = (struct tap){k, dilation * k / stride};
    }
    subs->first[subs->count] = used;
    return 0;
}

/* Minimum number of terms of a sum, so that loading and storing sums takes little time. */
#define SHORTEST_SUM 160

/* The number of channels whose data at the positions of one micro-kernel fit the first-level cache:
 * in rows, if taps overlap, or half of it for a panel without gaps. */
static int64_t channels_at_once(const struct problem *problem, const struct microkernels *kernels,
                                const struct packing *packing) {
    int64_t taps = 1, row_taps = 1;
    for (int axis = 0; axis < AXES; axis++) {
        const struct subs *p = &packing->subs[axis];
        int64_t deepest = 1;
        for (int64_t q = 0; q < p->count; q++)
            deepest = most(deepest, p->first[q + 1] - p->first[q]);
        taps *= deepest;
        if (axis < AXES - 1) row_taps *= deepest;
    }
    const int64_t block = (int64_t)kernels->columns[packing->rows] * kernels->lanes * kernels->size;
    const int64_t bytes = most(row_taps * (block + CACHE_LINE), taps * block / 2);
    const int64_t fit = most(FIRST_LEVEL_SHARE / bytes, divide_up(SHORTEST_SUM, taps));
    const int64_t channels = most(problem->channels_in, 1);
    return round_up(divide_up(channels, divide_up(channels, fit)), spread_of(problem));
}

/* Divide channels into blocks of rows. */
static void pack_blocks(struct packing *p, int64_t channels, int most_rows, int in_fours) {
    if (in_fours && channels > most_rows) {
        /* Four codes of results are in an element: 20 channels are 8 + 8 + 4. */
        p->rows = most_rows / 4 * 4;
        p->larger = channels / p->rows;
        p->fewer = (int)(channels % p->rows);
        p->blocks = p->larger + (p->fewer > 0);
        return;
    }
    /* Nearly equal: 10 channels are 5 + 5, not 6 + 4. */
    p->blocks = divide_up(channels, most_rows);
    p->rows = p->blocks ? (int)divide_up(channels, p->blocks) : 1;
    p->fewer = p->rows - 1;
    p->larger = channels - p->blocks * p->fewer;
}

int packing_make(const struct problem *problem, const struct microkernels *kernels,
                 struct packing *packing) {
    memset(packing, 0, sizeof *packing);
    for (int axis = 0; axis < AXES; axis++)
        if (subs_make(problem, axis, &packing->subs[axis])) return -1;
    const int64_t channels = problem->channels_out;
    pack_blocks(packing, channels, kernels->rows, problem_has_codes(problem));
    packing->channel_block = problem->channel_block
                                 ? least(problem->channel_block, most(problem->channels_in, 1))
                                : channels_at_once(problem, kernels, packing);
    const struct subs *p = packing->subs;
    const int64_t count = p[0].count * p[1].count * p[2].count;
    packing->sub_start = calloc((size_t)count + 1, sizeof *packing->sub_start);
    if (!packing->sub_start) return -1;
    int64_t at = 0, r = 0;
    for (int64_t a = 0; a < p[0].count; a++)
        for (int64_t b = 0; b < p[1].count; b++)
            for (int64_t c = 0; c < p[2].count; c++, r++) {
                packing->sub_start[r] = at;
                at += (p[0].first[a + 1] - p[0].first[a]) * (p[1].first[b + 1] - p[1].first[b]) *
                      (p[2].first[c + 1] - p[2].first[c]) * problem->channels_in * channels;
            }
    packing->sub_start[r] = at;
    packing->group_size = at;
    return 0;
}

void packing_free(struct packing *packing) {
    for (int axis = 0; axis < AXES; axis++) {
        free(packing->subs[axis].first);
        free(packing->subs[axis].taps);
    }
    free(packing->sub_start);
    memset(packing, 0, sizeof *packing);
}

/* The place of a tap in a packed block of rows, in elements: the weight of the first channel, and
 * the distance from channel to channel. */
struct weight_place {
    int64_t first, step;
    int64_t block, tap, taps; /* the first weight of its block of rows; the tap's index and the number of taps */
};
/* Maximum number of taps whose places are found at once. */
#define MOST_PLACES 64

/* Some taps of some input channels of one block of rows. */
struct weights {
    int64_t rows, channels;
    int64_t row_step, channel_step; /* elements, in the caller's filter */
    int64_t first_tap, taps;
    struct weight_place places[MOST_PLACES];
};

static void find_places(const struct kernel *k, int64_t block, struct weights *w) {
    const struct packing *p = &k->packing;
    const struct problem *problem = &k->problem;
    for (int64_t i = 0; i < w->taps; i++) {
        int64_t rest = w->first_tap + i, tap[AXES], sub = 0, before = 0, count = 1;
        for (int a = AXES - 1; a >= 0; rest /= problem->kernel[a--])
            tap[a] = rest % problem->kernel[a];
        for (int a = 0; a < AXES; a++) {
            const struct subs *subs = &p->subs[a];
            const int64_t q = problem->dilations[a] * tap[a] % subs->count;
            const struct tap *first = subs->taps + subs->first[q];
            const int64_t taps = subs->first[q + 1] - subs->first[q];
            /* The taps of a sub-convolution are equally far apart. */
            const int64_t at =
                taps > 1 ? (tap[a] - first->kernel) / (first[1].kernel - first->kernel) : 0;
            sub = sub * subs->count + q;
            before = before * taps + at;
            count *= taps;
        }
        const int64_t of_channel =
            (p->sub_start[sub + 1] - p->sub_start[sub]) / problem->channels_out;
        const int64_t rows = packing_rows(p, block);
        const int64_t start = p->sub_start[sub] + of_channel * packing_channel(p, block);
        w->places[i] =
            (struct weight_place){start + before * rows, count * rows, start, before, count};
    }
}

/* The transpose of 4 x 4 elements of 4 bytes, from rows `step` elements apart to some columns. */
static inline void transpose(const uint32_t *from, int64_t step, uint32_t *const *to) {
    typedef uint32_t four __attribute__((vector_size(16)));
    four a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + step, sizeof b);
    memcpy(&c, from + 2 * step, sizeof c);
    memcpy(&d, from + 3 * step, sizeof d);
    const four ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const four bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const four ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const four bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5);
    b = __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7);
    c = __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5);
    d = __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7);
    memcpy(to[0], &a, sizeof a);
    memcpy(to[1], &b, sizeof b);
    memcpy(to[2], &c, sizeof c);
    memcpy(to[3], &d, sizeof d);
}

/* Pack weights of 4 bytes.  Channels with contiguous taps are columns of the same rows. */
static void pack_words(const struct weights *w, const uint32_t *filter, uint32_t *packed) {
    const int joined = w->channel_step == w->taps;
    const int64_t columns = joined ? w->channels * w->taps : w->taps;
    int64_t channel = 0, tap = 0;
    for (int64_t run = 0; run < (joined ? 1 : w->channels); run++, filter += w->channel_step) {
        for (int64_t column = 0, count; column < columns; column += count) {
            uint32_t *to[4];
            count = least(columns - column, 4);
            for (int64_t i = 0; i < count; i++) {
                to[i] = packed + w->places[tap].first + channel * w->places[tap].step;
                if (++tap == w->taps) tap = 0, channel++;
            }
            const uint32_t *from = filter + column;
            int64_t row = 0;
            for (; count == 4 && row + 4 <= w->rows; row += 4, from += 4 * w->row_step) {
                transpose(from, w->row_step, to);
                for (int i = 0; i < 4; i++) to[i] += 4;
            }
            for (; row < w->rows; row++, from += w->row_step)
                for (int64_t i = 0; i < count; i++) *to[i]++ = from[i];
        }
    }
}

/* Copy weights of `size` bytes to their packed places, or back. */
static inline void copy_elements(const struct weights *w, int64_t size, char *filter, char *packed,
                                 int unpack) {
    for (int64_t i = 0; i < w->channels; i++)
        for (int64_t tap = 0; tap < w->taps; tap++) {
            char *given = filter + (i * w->channel_step + tap) * size;
            char *to = packed + (w->places[tap].first + i * w->places[tap].step) * size;
            for (int64_t row = 0; row < w->rows; row++, to += size, given += w->row_step * size)
                if (unpack) memcpy(given, to, (size_t)size);
                else memcpy(to, given, (size_t)size);
        }
}

/* Copy a code of each row; calls of memcpy() would take longer. */
static inline void copy_code(const uint8_t *from, int64_t step, int64_t rows, int64_t size, uint8_t *to) {
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * size, from + r * step * size, (size_t)size);
}

/* Copy codes of a block of `rows` rows to their packed places, which begin at row `row` of input channel
 * `first`; `packed` is that of a group. */
static void copy_codes(const struct kernel *k, const struct weights *w, int64_t rows, int64_t row,
                       int64_t first, const uint8_t *filter, uint8_t *packed) {
    const int64_t size = given_size(k);
    for (int64_t i = 0; i < w->channels; i++)
        for (int64_t tap = 0; tap < w->taps; tap++) {
            const struct weight_place *p = &w->places[tap];
            const uint8_t *from = filter + (i * w->channel_step + tap) * size;
            const int64_t term = (first + i) * p->taps + p->tap;
            if (k->problem.form != COMPRESSED_4) {
                uint8_t *to = packed + (p->block + term * rows + row) * size;
                if (size == 2) copy_code(from, w->row_step, w->rows, 2, to);
                else copy_code(from, w->row_step, w->rows, 1, to);
                continue;
            }
            uint8_t *to = packed + p->block / 2 + term / 2 * rows + row;
            const int shift = term % 2 * 4;
            for (int64_t r = 0; r < w->rows; r++, from += w->row_step)
                to[r] = (uint8_t)((to[r] & 0xf0 >> shift) | (*from & 15) << shift);
        }
}

int has_whole_pairs(const struct problem *problem, const struct packing *packing) {
    const struct subs *s = packing->subs;
    const int64_t part =
        packing->channel_block < problem->channels_in ? packing->channel_block : 0;
    for (int64_t a = 0; a < s[0].count; a++)
        for (int64_t b = 0; b < s[1].count; b++)
            for (int64_t c = 0; c < s[2].count; c++) {
                const int64_t taps = (s[0].first[a + 1] - s[0].first[a]) *
                                     (s[1].first[b + 1] - s[1].first[b]) *
                                     (s[2].first[c + 1] - s[2].first[c]);
                if (taps * problem->channels_in % 2 || taps * part % 2) return 0;
            }
    return 1;
}

void unpack_codes(const struct kernel *k, int64_t packed, int64_t group, int64_t block, int64_t taps,
                  int64_t begin, int64_t end, float *out) {
    const struct compressed_functions *functions =
        BY_ISA((enum isa)k->problem.isa, &functions_compressed);
    const struct filter_codes *codes = k->codes;
    const int64_t rows = packing_rows(&k->packing, block), lanes = k->kernels->lanes;
    const int64_t channel =
        group * k->problem.channels_out + packing_channel(&k->packing, block);
    struct compressed_matrix m = {
        .form = (enum compressed_form)k->problem.form,
        .k = k->problem.channels_in * taps,
        .n = rows,
        .group = k->problem.channels_in * taps,
        .width = rows,
        .codes = (const uint8_t *)k->packed + packed_size(k, packed),
        .table = codes->numbers,
        .scales = codes->scales ? codes->scales + channel : NULL,
        .zeros = codes->zeros ? codes->zeros + channel : NULL,
        .halves = codes->halves,
    };
    if (begin == end) return;
    const int alike = !m.scales && !m.zeros;
    if ((alike || (lanes % rows == 0 && lanes <= 2 * MAX_ROWS)) && m.form != COMPRESSED_4) {
        /* The rows need not be told apart, or a vector has those of whole terms. */
        float scales[2 * MAX_ROWS], zeros[2 * MAX_ROWS];
        for (int64_t i = 0; !alike && i < lanes; i++) {
            if (m.scales) scales[i] = codes->scales[channel + i % rows];
            if (m.zeros) zeros[i] = codes->zeros[channel + i % rows];
        }
        if (m.scales) m.scales = scales;
        if (m.zeros) m.zeros = zeros;
        m.codes += packed_size(k, begin * rows);
        m.width = lanes;
        m.k = m.group = divide_up((end - begin) * rows, lanes);
        functions->unpack(&m, 0, 1, 0, m.k, out, lanes);
        return;
    }
    if (m.form == COMPRESSED_4 && rows == MAX_ROWS && functions->unpack_pairs) {
        functions->unpack_pairs(&m, begin, end, out);
        return;
    }
    for (int64_t row = 0; row < rows; row += lanes) {
        /* The last vector overlaps the one before. */
        const int64_t at = most(least(row, rows - lanes), 0);
        functions->unpack(&m, at, 1, begin, end, out + at, rows);
    }
}

static int64_t taps_of(const struct kernel *k) {
    return k->problem.kernel[0] * k->problem.kernel[1] * k->problem.kernel[2];
}

/* Whether `count` f32 or f64 are finite. */
static int all_finite(const void *values, int64_t count, int size) {
    uint64_t bad = 0;
    if (size == 4) {
        const uint32_t *v = values, mask = UINT32_C(0x7f800000);
        for (int64_t i = 0; i < count; i++) bad |= (v[i] & mask) == mask;
    } else {
        const uint64_t *v = values, mask = UINT64_C(0x7ff0000000000000);
        for (int64_t i = 0; i < count; i++) bad |= (v[i] & mask) == mask;
    }
    return !bad;
}

/* A copy of some rows of the filter, along its first axis and counted over all groups, to their
 * packed places or back. */
struct filter_copy {
    const struct kernel *k;
    int64_t first, count;
    char *rows;
    int64_t steps[2]; /* elements along the first two axes of the caller's filter */
    int unpack;
    int64_t jobs;
    atomic_int not_finite; /* whether a weight is infinite or NaN */
};

/* Copy the part of these rows that is in one block of rows of one group. */
static void copy_block(const struct filter_copy *c, int64_t group, int64_t block) {
    const struct kernel *k = c->k;
    const int forward = (int)k->problem.forward;
    const int64_t size = k->kernels->size, of_group = filter_rows(&k->problem);
    const int64_t channel = packing_channel(&k->packing, block);
    const int64_t taps = taps_of(k);
    const int64_t begin = most(c->first - group * of_group, 0);
    const int64_t end = least(c->first + c->count - group * of_group, of_group);
    /* The part of the block and of the input channels that is among the rows. */
    const int64_t row = forward ? most(begin - channel, 0) : 0, in = forward ? 0 : begin;
    struct weights w = {.rows = packing_rows(&k->packing, block) - row,
                        .channels = forward ? k->problem.channels_in : end - begin,
                        .row_step = c->steps[!forward],
                        .channel_step = c->steps[forward]};
    if (forward) w.rows = least(w.rows, end - channel - row);
    if (w.rows <= 0) return;
    const int64_t given = k->codes ? given_size(k) : size;
    char *filter = c->rows + ((group * of_group - c->first) * c->steps[0] +
                              (channel + row) * w.row_step + in * w.channel_step) * given;
    char *packed = (char *)k->packed + packed_size(k, group * k->packing.group_size);
    if (!k->codes) packed += row * size;
    for (; w.first_tap < taps; w.first_tap += w.taps) {
        w.taps = least(taps - w.first_tap, MOST_PLACES);
        find_places(k, block, &w);
        if (k->codes) {
            copy_codes(k, &w, packing_rows(&k->packing, block), row, in,
                       (uint8_t *)filter + w.first_tap * given, (uint8_t *)packed);
            continue;
        }
        for (int64_t i = 0; i < w.taps; i++) w.places[i].first += in * w.places[i].step;
        char *from = filter + w.first_tap * size;
        if (size == 8) copy_elements(&w, 8, from, packed, c->unpack);
        else if (c->unpack) copy_elements(&w, 4, from, packed, 1);
        else pack_words(&w, (const uint32_t *)from, (uint32_t *)packed);
    }
}

static int may_be_infinite(const struct kernel *k) {
    const enum accumulator accumulator = accumulator_of((enum element)k->problem.element);
    return !k->codes && (accumulator == ACC_F32 || accumulator == ACC_F64);
}

static void copy_job(void *context, int64_t job, void *scratch) {
    (void)scratch;
    struct filter_copy *c = context;
    const struct packing *p = &c->k->packing;
    const int64_t of_group = filter_rows(&c->k->problem), size = c->k->kernels->size;
    copy_block(c, c->first / of_group + job / p->blocks, job % p->blocks);
    if (c->unpack || !may_be_infinite(c->k)) return;
    /* Each job checks its part of all weights, which are contiguous. */
    const int64_t total = c->count * (p->group_size / of_group), part = divide_up(total, c->jobs);
    const int64_t first = least(job * part, total);
    if (!all_finite(c->rows + first * size, least(part, total - first), (int)size))
        c->not_finite = 1;
}

/* Minimum number of weights for packing with several threads. */
#define FEWEST_SHARED (1 << 16)

/* Groups to which the rows belong. */
static int64_t groups_of(const struct filter_copy *c) {
    const int64_t of_group = filter_rows(&c->k->problem);
    return (c->first + c->count - 1) / of_group - c->first / of_group + 1;
}

static int copy_rows(struct filter_copy *c, int64_t threads) {
    const struct packing *p = &c->k->packing;
    const int64_t of_group = filter_rows(&c->k->problem);
    if (!p->group_size || c->count < 1) return 0;
    c->jobs = groups_of(c) * p->blocks;
    if (c->count * (p->group_size / of_group) < FEWEST_SHARED) threads = 1;
    return parallel_run(copy_job, c, c->jobs, threads, 0);
}

/* Elements from row to row along the first axis. */
static int64_t row_size(const struct kernel *k) {
    return k->packing.group_size / most(filter_rows(&k->problem), 1);
}

int pack_rows(const struct kernel *k, int64_t first, int64_t count, const void *rows, int swapped,
              int64_t threads) {
    const int64_t taps = taps_of(k);
    struct filter_copy copy = {.k = k, .first = first, .count = count, .rows = (char *)rows,
                        .steps = {swapped ? taps : row_size(k), swapped ? count * taps : taps}};
    const int failed = copy_rows(&copy, threads);
    return failed ? failed : copy.not_finite;
}

void unpack_filter(const struct kernel *k, void *filter) {
    const int64_t taps = taps_of(k);
    struct filter_copy copy = {.k = k, .count = k->problem.groups * filter_rows(&k->problem),
                               .rows = filter,
                        .steps = {row_size(k), taps}, .unpack = 1};
    copy_rows(&copy, 1); /* does not allocate; not interrupted under the interpreter lock */
}

/* Maximum bytes of the filter that a thread reads at once, and number of parts of the filter: small
 * compared with the filter, so that peak memory hardly grows.  Whole blocks of rows may take twice
 * as many bytes. */
#define READ_BYTES ((int64_t)512 << 10)
#define FILTER_PARTS 32

struct filter_reader {
    const struct kernel *k;
    int descriptor;
    int64_t offset, rows, at_once;
    atomic_int not_finite, failed;
    const atomic_int *stopped; /* or NULL */
};

static int read_bytes(int descriptor, char *to, int64_t bytes, int64_t offset) {
    while (bytes > 0) {
        const ssize_t count = pread(descriptor, to, (size_t)bytes, (off_t)offset);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return -1;
        to += count;
        offset += count;
        bytes -= count;
    }
    return 0;
}

static void read_job(void *context, int64_t job, void *scratch) {
    struct filter_reader *r = context;
    const struct kernel *k = r->k;
    const enum element element = (enum element)k->problem.element;
    const int64_t size = element_size(element), row = row_size(k), first = job * r->at_once;
    const int64_t count = least(r->at_once, r->rows - first), weights = count * row;
    const int is_wide = size == k->kernels->size;
    char *wide = scratch, *given = is_wide ? wide : wide + r->at_once * row * k->kernels->size;
    if (r->failed || (r->stopped && *r->stopped) ||
        read_bytes(r->descriptor, given, weights * size, r->offset + first * row * size)) {
        r->failed = 1;
        return;
    }
    if (!is_wide) k->kernels->load(element, given, 1, weights, wide);
    if (may_be_infinite(k) && !all_finite(wide, weights, (int)k->kernels->size)) r->not_finite = 1;
    const struct filter_copy copy = {.k = k, .first = first, .count = count, .rows = wide,
                              .steps = {row, taps_of(k)}};
    const int64_t groups = groups_of(&copy), group = first / filter_rows(&k->problem);
    for (int64_t i = 0; i < groups; i++)
        for (int64_t block = 0; block < k->packing.blocks; block++)
            copy_block(&copy, group + i, block);
}

int read_rows(const struct kernel *k, int descriptor, int64_t offset, int64_t threads,
              const atomic_int *stopped) {
    const int64_t row = row_size(k);
    struct filter_reader reading = {.k = k, .descriptor = descriptor, .offset = offset,
                              .rows = k->problem.groups * filter_rows(&k->problem),
                              .stopped = stopped};
    if (!k->packing.group_size) return 0;
    const int64_t part = least(READ_BYTES / (row * k->kernels->size), reading.rows / FILTER_PARTS);
    reading.at_once = most(part, 1);
    /* Whole blocks of rows are packed in vectors. */
    const int64_t whole = round_up(reading.at_once, k->problem.forward ? k->packing.rows : 1);
    if (whole <= 2 * reading.at_once) reading.at_once = whole;
    const int size = element_size((enum element)k->problem.element), wide = k->kernels->size;
    const int failed = parallel_run(read_job, &reading, divide_up(reading.rows, reading.at_once),
                                    threads,
                                     reading.at_once * row * (wide + (size < wide ? size : 0)));
    if (failed) return failed;
    return reading.failed ? CANNOT_READ : reading.not_finite;
}
