/* Layers with one position of data, such as the first layer of many generators, and
 * squeeze-and-excite: each tap reaches at most one result, which has one term per channel.
 *
 *   for each image and sub-convolution, and each block of rows of a job:
 *     sum the input channels of all taps, in the order of the weights, or of all blocks if
 *     there is one tap, then bias and activation
 *     copy each tap's rows to its position
 *
 * The GEMM of a sub-convolution of one image, a product of a matrix and a vector:
 *   M  output channels of a group x taps of the sub-convolution, in blocks of rows
 *   K  input channels
 *   N  1: the position
 *
 * The sums are bitwise equal to those of tiles.
 */
#include "convolution/costs.h"
#include "direct/cost.h"
#include "direct/direct.h"

#include <string.h>

#define ONE_POSITION_JOB_CYCLES 5000.0     /* of a job; smaller ones do not pay off */
#define ONE_POSITION_THREAD_CYCLES 10000.0 /* of all jobs, for each further thread */
/* With one tap and more images than this, tiles are faster: images are positions of a panel. */
#define ONE_POSITION_IMAGES 4

/* The position of the output that a tap of an axis reaches, or -1. */
static int64_t landing(const struct axis *a, int64_t q, int64_t tap) {
    const struct tap_place *place = &a->places[a->pattern_first[a->pattern_of[q]] + tap];
    const int64_t at = q - place->offset * a->out_stride;
    return place->residue + a->residue == 0 && at >= q && at < a->output ? at : -1;
}

static int64_t taps_along(const struct axis *a, int64_t q) {
    const int64_t list = a->pattern_of[q];
    return a->pattern_first[list + 1] - a->pattern_first[list];
}

int one_position_reaches_all(const struct plan *plan) {
    for (int i = 0; i < AXES; i++) {
        const struct axis *a = &plan->axes[i];
        int64_t reached = 0;
        for (int64_t q = 0; q < subs_along(a); q++)
            for (int64_t tap = 0; tap < taps_along(a, q); tap++) reached += landing(a, q, tap) >= 0;
        if (reached != a->output) return 0;
    }
    return 1;
}

/* The positions in a plane of results that the taps of a sub-convolution reach, or -1. */
static void find_places(const struct direct_context *c, const struct sub *sub, int64_t *places) {
    const struct axis *a = c->plan->axes;
    for (int64_t z = 0; z < taps_along(&a[0], sub->q[0]); z++)
        for (int64_t y = 0; y < taps_along(&a[1], sub->q[1]); y++)
            for (int64_t x = 0; x < taps_along(&a[2], sub->q[2]); x++) {
                const int64_t to[AXES] = {landing(&a[0], sub->q[0], z),
                                          landing(&a[1], sub->q[1], y),
                                          landing(&a[2], sub->q[2], x)};
                *places++ = to[0] < 0 || to[1] < 0 || to[2] < 0
                                ? -1
                                : (to[0] * a[1].output + to[1]) * a[2].output + to[2];
            }
}

/* Copies the rows of some taps, [tap][row], to the planes of a block's channels. */
static inline __attribute__((always_inline)) void
scatter(const size_t size, const char *values, int rows, const int64_t *places, int64_t taps,
        int64_t plane, char *out) {
    for (int64_t tap = 0; tap < taps; tap++)
        for (int row = 0; row < rows && places[tap] >= 0; row++)
            memcpy(out + (size_t)(row * plane + places[tap]) * size,
                   values + (size_t)(tap * rows + row) * size, size);
}

#define TURNED 256 /* taps whose rows are turned at once */

/* Write the rows of some taps, [tap][row], as results of codes. */
static void write_codes_of_taps(const struct direct_context *c, const struct direct_tile *tile,
                                int64_t channel, int64_t rows, const int64_t *places,
                                int64_t taps) {
    const struct results *r = c->run->results;
    const int64_t image = tile->first_image, width = TURNED + CACHE_LINE / 4;
    channel += tile->group * c->problem->channels_out;
    if (taps == 1) { /* of several blocks */
        write_results(r, image, channel, rows, places[0], 1, 1, tile->sums, 1);
        activate_results(r, image, channel, rows, places[0], 1);
        return;
    }
    uint32_t turned[MAX_ROWS][TURNED + CACHE_LINE / 4];
    memset(turned, 0, sizeof turned);
    for (int64_t from = 0; from < taps; from += TURNED) {
        const int64_t some = least(TURNED, taps - from);
        for (int64_t tap = 0; tap < some; tap++)
            for (int64_t row = 0; row < rows; row++)
                memcpy(&turned[row][tap], tile->sums + ((from + tap) * rows + row) * 4, 4);
        for (int64_t tap = 0, count; tap < some; tap += count) {
            const int64_t first = places[from + tap];
            for (count = 1; tap + count < some && places[from + tap + count] == first + count;)
                count++;
            if (first < 0) {
                count = 1;
                continue;
            }
            write_results(r, image, channel, rows, first, 1, count,
                          (const char *)&turned[0][tap], width);
            activate_results(r, image, channel, rows, first, count);
        }
    }
}

static void write_taps(const struct direct_context *c, const struct direct_tile *tile,
                       int64_t channel, int rows, const int64_t *places, int64_t taps) {
    if (c->run->results) {
        write_codes_of_taps(c, tile, channel, rows, places, taps);
        return;
    }
    char *out = out_row(c, tile, 0, channel, 0, 0);
    const enum element element = (enum element)c->problem->element;
    const int64_t plane = c->run->output[0] * c->run->output[1] * c->run->output[2];
    const int size = element_size(element);
    const char *values = tile->sums;
    if (size != c->kernels->size) {
        c->kernels->store(element, tile->sums, taps * rows, tile->row);
        values = tile->row;
    }
    switch (size) {
    case 1: scatter(1, values, rows, places, taps, plane, out); break;
    case 2: scatter(2, values, rows, places, taps, plane, out); break;
    case 4: scatter(4, values, rows, places, taps, plane, out); break;
    default: scatter(8, values, rows, places, taps, plane, out);
    }
    for (int64_t i = 0; c->run->addition && i < taps * rows; i++) {
        char *to = out + (i % rows * plane + places[i / rows]) * size;
        if (places[i / rows] >= 0) add_to(c->run->addition, to, to, 1);
    }
}

/* Input channels whose weights of a block, of all taps, are unpacked at once: they stay in the first-level cache.  An
 * even number: terms of four bits begin with whole bytes. */
static int64_t unpacked_channels(const struct kernel *k, int64_t taps) {
    const int64_t fit = FIRST_LEVEL_SHARE / (taps * k->packing.rows * k->kernels->size);
    return least(k->problem.channels_in, most(fit / 2 * 2, 2));
}

/* Sum `taps` taps, from `first` on, of a block of rows. */
static void sum_taps(const struct direct_context *c, const struct direct_tile *tile, const struct sub *sub,
                     int64_t block, int64_t packed, int64_t first, int64_t taps, const void *bias) {
    const int64_t size = c->kernels->size, ins = c->problem->channels_in;
    const int rows = packing_rows(c->packing, block);
    const int64_t some = c->k->codes ? unpacked_channels(c->k, c->plan->depth) : ins;
    for (int64_t from = 0; from < ins; from += some) {
        const int64_t count = least(some, ins - from), ends = from + count == ins;
        const char *weights = (const char *)c->k->packed + packed * size;
        if (c->k->codes) {
            unpack_codes(c->k, packed, tile->group, block, sub->taps, from * sub->taps, (from + count) * sub->taps,
                         (float *)(void *)tile->weights);
            weights = tile->weights;
        }
        c->kernels->sum_taps(rows, taps, count, tile->data + from * size, weights + first * rows * size,
                             sub->taps * rows, from == 0, ends ? bias : NULL, ends ? &c->k->epilogue : NULL,
                             tile->sums);
    }
}

/* Sum the taps from the first to the last that reach a result. */
static void sum_sub(const struct direct_context *c, const struct direct_tile *tile,
                    const struct sub *sub, const int64_t *places) {
    const int64_t size = c->kernels->size;
    const struct packing *p = c->packing;
    int64_t first = 0, last = sub->taps;
    while (first < last && places[first] < 0) first++;
    while (last > first && places[last - 1] < 0) last--;
    if (first == last) return;
    const int64_t end = tile->first_block + tile->blocks;
    for (int64_t b = tile->first_block, count; b < end; b += count) {
        count = sub->taps > 1 ? 1 : (b < p->larger ? least(end, p->larger) : end) - b;
        const int rows = packing_rows(p, b);
        const int64_t channel = packing_channel(p, b);
        const int64_t ins = c->problem->channels_in, packed = sub->packed + sub->taps * ins * channel;
        const char *weights = (const char *)c->k->packed + packed * size;
        const char *bias = c->k->bias;
        if (bias) bias += (tile->group * c->problem->channels_out + channel) * size;
        if (sub->taps > 1) {
            sum_taps(c, tile, sub, b, packed, first, last - first, bias);
        } else {
            if (c->k->codes) weights = tile->weights;
            for (int64_t i = 0; c->k->codes && i < count; i++)
                unpack_codes(c->k, packed + i * ins * rows, tile->group, b + i, 1, 0, ins,
                             (float *)(void *)tile->weights + i * ins * rows);
            c->kernels->sum_row_blocks(rows, count, ins, tile->data, weights, ins * rows, bias, &c->k->epilogue,
                                       tile->sums);
        }
        write_taps(c, tile, channel, (int)count * rows, places + first, last - first);
    }
}

/* Spread the bytes of all channels of data at one position. */
static void spread_position(uint32_t *data, int64_t channels) {
    for (int64_t i = channels - 1; i >= 0; i--) {
        const uint32_t bytes = data[i];
        data[2 * i] = (bytes & 0xff) | (bytes & 0xff00) << 8;
        data[2 * i + 1] = (bytes >> 16 & 0xff) | (bytes >> 8 & 0xff0000);
    }
}

void run_one_position(void *context, int64_t job, void *scratch) {
    const struct direct_context *c = context;
    const struct tiling *t = &c->plan->tiling;
    const struct axis *a = c->plan->axes;
    const enum element element = (enum element)c->problem->element;
    const int64_t given = data_channels(c->problem);
    struct direct_tile tile = {.group = job / t->row_groups, .images = 1,
                        .first_block = job % t->row_groups * t->blocks, .data = scratch};
    tile.blocks = least(t->blocks, c->packing->blocks - tile.first_block);
    tile.sums = tile.data + t->data_bytes;
    tile.row = tile.sums + t->sums_bytes;
    int64_t *const places = (int64_t *)(tile.row + t->row_bytes);
    tile.weights = (char *)places + t->panel_bytes;
    for (; tile.first_image < c->run->batch; tile.first_image++) {
        const char *from = c->data + (tile.first_image * c->run->image_step +
                                      tile.group * given * c->run->channel_step) *
                                         element_size(element);
        c->kernels->load(element, from, c->run->channel_step, given, tile.data);
        if (spread_of(c->problem) > 1) spread_position((uint32_t *)(void *)tile.data, given);
        for (int64_t qz = 0; qz < subs_along(&a[0]); qz++)
            for (int64_t qy = 0; qy < subs_along(&a[1]); qy++)
                for (int64_t qx = 0; qx < subs_along(&a[2]); qx++) {
                    const struct sub sub = sub_of(c, &tile, qz, qy, qx);
                    find_places(c, &sub, places);
                    sum_sub(c, &tile, &sub, places);
                }
    }
}

int plan_one_position(const struct kernel *k, const struct run *run, struct plan *plan) {
    const struct problem *problem = &k->problem;
    const int64_t lanes = k->kernels->lanes, size = k->kernels->size, depth = plan->depth;
    if (run->data[0] * run->data[1] * run->data[2] != 1 || problem->folded > 1 || run->batch < 1 ||
        problem->channels_in < 1 || problem->channels_out < 2 || depth < 1 ||
        (depth == 1 && run->batch > ONE_POSITION_IMAGES))
        return 0;
    struct tiling t = {.one_position = 1, .images = 1, .shape = {1, 1, 1}, .vectors = 1,
                       .groups = 1, .channels = problem->channels_in, .image_groups = 1};
    const double block = (double)run->batch * one_position_cycles(k);
    const int64_t blocks = most(k->packing.blocks, 1);
    t.blocks = most(1, (int64_t)(ONE_POSITION_JOB_CYCLES / block));
    if (depth == 1) t.blocks = round_up(t.blocks, MAX_ROWS);
    t.blocks = least(t.blocks, blocks);
    const int64_t sums = k->packing.rows * (depth == 1 ? t.blocks : depth);
    t.data_bytes = round_up(data_channels(problem) * spread_of(problem) * size, CACHE_LINE);
    t.sums_bytes = t.row_bytes = round_up((sums + most(lanes, MAX_ROWS)) * size, CACHE_LINE);
    t.panel_bytes = round_up(depth * (int64_t)sizeof(int64_t), CACHE_LINE);
    if (k->codes)
        t.weights_bytes = round_up((sums * (depth == 1 ? problem->channels_in : unpacked_channels(k, depth)) +
                                    most(lanes, MAX_ROWS)) * size, CACHE_LINE);
    t.bytes = t.data_bytes + t.sums_bytes + t.row_bytes + t.panel_bytes + t.weights_bytes;
    if (t.bytes > least(run->scratch_bytes, run->thread_bytes)) return 0;
    t.row_groups = divide_up(blocks, t.blocks);
    t.jobs = t.row_groups * problem->groups;
    const double all = block * (double)(blocks * problem->groups);
    t.threads = least(run->threads, 1 + (int64_t)(all / ONE_POSITION_THREAD_CYCLES));
    t.threads = most(1, least(t.threads, run->scratch_bytes / t.bytes));
    t.cycles = scheduled_cycles(block * (double)t.blocks, t.jobs, t.threads);
    plan->tiling = t;
    return 1;
}
