/* Plans runs with Winograd F(m, r): windows, form of the weights, tiles.
 *
 * Like direct/plan.c, this touches no data.
 */
#include "convolution/search.h"
#include "winograd/winograd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- windows -- */

static void windows_make(const struct problem *problem, const struct run *run,
                         struct wino_plan *plan) {
    for (int a = 0; a < AXES; a++) {
        const struct wino_axis *axis = &plan->packing->axes[a];
        const int64_t pad = run->pads_begin[a];
        int64_t windows = 0;
        for (int64_t q = 0; q < axis->stride; q++) {
            const int64_t last = (run->output[a] - 1 - q) / axis->stride;
            windows = most(windows, floor_divide(last - axis->sub[q].shift, axis->step) + 1);
        }
        plan->windows[a] = windows;
        int64_t low = axis->origin[0], high = low;
        for (int64_t i = 1; i < axis->origins; i++) {
            low = least(low, axis->origin[i]);
            high = most(high, axis->origin[i]);
        }
        for (int64_t i = 0; i < axis->origins; i++) plan->origin[a][i] = axis->origin[i] - low;
        plan->low[a] = low + (problem->forward ? -pad : floor_divide(pad, axis->stride));
        plan->reach[a] = high - low + axis->dilation * axis->points;
    }
}

/* Finds the order of the lines of the last axis in a row. */
static int interleaved_make(struct wino_plan *plan) {
    const struct wino_axis *a = &plan->packing->axes[AXES - 1];
    plan->interleaved_lines = a->stride * a->step;
    plan->interleaved = calloc((size_t)plan->interleaved_lines, sizeof *plan->interleaved);
    if (!plan->interleaved) return -1;
    plan->interleaved_base = 0;
    for (int64_t q = 0; q < a->stride; q++)
        plan->interleaved_base = least(plan->interleaved_base, a->stride * a->sub[q].shift + q);
    plan->interleaved_high = 0;
    for (int64_t q = 0; q < a->stride; q++)
        for (int64_t i = 0; i < a->step; i++) {
            const int64_t at = a->stride * (i + a->sub[q].shift) + q - plan->interleaved_base;
            const int64_t shift = at / plan->interleaved_lines;
            plan->interleaved[at % plan->interleaved_lines] = (struct wino_line){
                (int32_t)q, (int32_t)(i % a->dilation), (int32_t)(i / a->dilation), (int32_t)shift};
            plan->interleaved_high = most(plan->interleaved_high, shift);
        }
    return 0;
}

/* Leave out the windows at the end that read no data, as with kernels equal to their stride and
 * output padding. */
static void windows_cut(const struct run *run, struct wino_plan *plan) {
    for (int a = 0; a < AXES; a++) {
        const struct wino_axis *axis = &plan->packing->axes[a];
        /* Lines of different windows can only form whole rows. */
        if (a == AXES - 1 && plan->interleaved_high > 0) continue;
        const int64_t seeing = floor_divide(run->data[a] - 1 - plan->low[a], axis->step) + 1;
        plan->windows[a] = most(1, least(seeing, plan->windows[a]));
    }
}

/* -------------------------------------------------------------- tiling -- */

/* Floats that are interleaved at once: they stay in the first-level cache. */
#define MOST_ELEMENTS 4096

/* Positions of a tile that is not at an edge. */
static int64_t count_positions(const struct wino_plan *plan, const struct wino_tiling *t) {
    int64_t positions = t->images;
    for (int i = 0; i < AXES; i++) positions *= t->shape[i] * plan->packing->axes[i].dilation;
    return positions;
}

static void size_tile(const struct kernel *k, const struct wino_plan *plan,
                      struct wino_tiling *t) {
    const struct wino_packing *p = plan->packing;
    const struct wino_axis *a = p->axes;
    const int64_t slack = MAX_COLUMNS * k->kernels->lanes; /* for whole vectors and lines */
    const int64_t width = t->width, lanes = k->kernels->lanes;
    t->positions = count_positions(plan, t);
    t->padded = round_up(t->positions, width);
    t->blocks = t->padded / width;
    const int64_t line = CACHE_LINE / (int64_t)sizeof(float);
    t->line = (divide_up(t->padded + lanes, line) | 1) * line;
    t->panel_block = (divide_up(p->parts * p->channels * width, line) | 1) * line;
    for (int i = 0; i < AXES; i++)
        t->extent[i] = a[i].step * (t->shape[i] - 1) + plan->reach[i];
    t->pitch = divide_up(t->extent[2], a[2].dilation);
    t->row = a[2].dilation * t->pitch * lanes;
    t->plane = t->extent[1] * t->row;
    t->block_size = t->z_size = t->y_size = t->ready_size = t->loaded_size = t->flat_size = 0;
    if (p->points > 1) {
        const int64_t some = most(1, lanes / t->shape[2]);
        t->block_size = round_up(t->extent[0] * t->plane, line);
        if (a[0].points > 1)
            t->z_size = round_up(a[0].origins * a[0].points * t->plane, line);
        t->y_size = round_up(a[1].points * t->pitch * lanes, line);
        t->ready_step = (some * t->shape[2] + 2 * lanes) * lanes;
        t->ready_size = round_up(p->origins * p->points * t->ready_step, line);
        t->loaded_step = round_up(t->extent[2] + slack, line);
        t->loaded_size = (lanes + 1) * t->loaded_step;
    } else {
        t->flat_size = p->origins * t->line;
    }
    t->panel_size = p->alignments * p->points * t->blocks * t->panel_block;
    int64_t lines = 0;
    for (int64_t i = 0; i < p->layout_count; i++) lines = most(lines, p->layouts[i].lines);
    t->level_size = t->uneven_size = 0;
    if (p->points > 1 && !problem_has_codes(&k->problem)) {
        t->level_size =
            round_up(t->images * t->extent[0] * t->extent[1] * t->extent[2], line);
        t->uneven_size = wino_search_size(t);
    }
    t->sums_size = (lines + 1) * t->line; /* and a line of zeros */
    if (t->level_size > 0)
        t->sums_size = most(t->sums_size, wino_direct_size(k, p, t->width));
    const int64_t outputs = a[0].outputs * a[1].outputs * a[2].outputs;
    t->out_step = outputs * a[2].stride * t->line;
    t->out_size = a[0].points * a[2].outputs * (a[1].points + a[1].outputs) * t->line +
                  wino_together(k) * t->out_step;
    /* Rows are contiguous, unless their lines belong to different windows. */
    const int64_t row_lines = plan->interleaved_lines * t->shape[2];
    t->rows_together =
        plan->interleaved_high ? 1
                               : most(1, least(t->shape[1], MOST_ELEMENTS / most(row_lines, 1)));
    t->row_step = round_up(t->rows_together * row_lines +
                               plan->interleaved_lines * (plan->interleaved_high + lanes),
                           line);
    t->row_size = wino_together(k) * t->row_step;
    t->work_size = round_up(
        most(t->block_size + t->z_size + t->y_size + t->ready_size + t->loaded_size + t->flat_size,
             t->sums_size + t->out_size + t->row_size), line);
    t->weights_size = k->codes ? round_up(wino_chunk_size(k, p), line) : 0;
    t->bytes = (t->work_size + t->panel_size + t->level_size + t->uneven_size + t->weights_size) *
               (int64_t)sizeof(float);
}

static void count_jobs(const struct kernel *k, const struct run *run,
                       const struct wino_plan *plan, struct wino_tiling *t) {
    t->image_groups = divide_up(run->batch, t->images);
    t->row_groups = divide_up(plan->packing->chunks, t->chunks);
    t->places = k->problem.groups * t->image_groups;
    for (int a = 0; a < AXES; a++) {
        t->grid[a] = divide_up(plan->windows[a], t->shape[a]);
        t->places *= t->grid[a];
    }
    t->jobs = t->places * t->row_groups;
}

/* Number of blocks of positions of all rows of tiles along the second axis. */
static int64_t blocks_along(const struct wino_plan *plan, const struct wino_tiling *t) {
    const int64_t row = t->positions / t->shape[1];
    int64_t blocks = 0, end;
    for (int64_t at = 0, first = 0; at < t->grid[1]; at++, first = end) {
        end = wino_tile_begin(plan, t, 1, at + 1);
        blocks += divide_up((end - first) * row, t->width);
    }
    return blocks;
}

/* Divide windows evenly, so that threads end together, unless that takes more blocks. */
static void deal_evenly(const struct wino_plan *plan, struct wino_tiling *t) {
    struct wino_tiling even = *t;
    even.even = 1;
    if (t->cycles >= 0 && blocks_along(plan, &even) <= blocks_along(plan, t)) *t = even;
}

_Static_assert(sizeof(struct wino_tiling) <= MOST_TILING_BYTES, "no room for a tiling");
_Static_assert(sizeof(struct wino_choice) <= MOST_FORM_BYTES, "no room for a choice");

struct wino_search {
    struct search search;
    const struct wino_plan *plan;
    int64_t threads, scratch_bytes; /* of all threads together */
};

/* Jobs per thread that keep all threads busy. */
#define FEW_PLACES 4

/* Keep a tiling if it is the best that fits. */
static void rate(struct wino_search *s, struct wino_tiling t) {
    if (t.bytes * s->threads + t.shared_bytes > s->scratch_bytes) return;
    search_rate(&s->search, &t, &t.cycles);
}

/* Consider panels that all threads share. */
static void consider_shared(struct wino_search *s, struct wino_tiling t) {
    t.fills = least(divide_up(FEW_PLACES * s->threads, t.places),
                    divide_up(s->plan->packing->channels, s->search.k->kernels->lanes));
    t.shared_size = t.panel_size + t.fills * t.level_size;
    t.shared_bytes = t.places * t.shared_size * (int64_t)sizeof(float);
    t.bytes -= t.panel_size * (int64_t)sizeof(float);
    rate(s, t);
}

static void consider(struct wino_search *s, struct wino_tiling t) {
    size_tile(s->search.k, s->plan, &t);
    const int64_t chunks = s->plan->packing->chunks, threads = s->threads;
    t.threads = threads;
    for (int64_t groups = 1; groups <= 16 && groups <= chunks; groups *= 2) {
        t.chunks = divide_up(chunks, groups);
        count_jobs(s->search.k, s->search.run, s->plan, &t);
        rate(s, t);
        if (groups == 1 || threads == 1) continue;
        /* If all threads have jobs at different positions, panels cannot be shared. */
        if (t.places < FEW_PLACES * threads) consider_shared(s, t);
    }
}

/* Consider a tiling with panels of the usual width, and of widths that leave fewer positions of the
 * last block empty. */
static void consider_widths(struct wino_search *s, struct wino_tiling t) {
    const struct microkernels *kernels = s->search.k->kernels;
    const int64_t positions = count_positions(s->plan, &t), lanes = kernels->lanes;
    const int64_t padded = round_up(positions, PANEL_COLUMNS * lanes);
    for (int columns = 1; columns <= WIDEST_PANEL; columns++) {
        t.width = columns * lanes;
        if (columns != PANEL_COLUMNS &&
            (t.width < NARROWEST_PANEL || round_up(positions, t.width) >= padded ||
             !kernels->table[kernels->rows][columns]))
            continue;
        consider(s, t);
    }
}

/* Maximum positions of a tile: larger ones are not faster. */
#define MOST_POSITIONS 2048

/* Consider tiles of a shape; tiles of whole images may have several images. */
static void consider_shape(struct wino_search *s, struct wino_tiling t) {
    const int64_t *w = s->plan->windows;
    const int whole = t.shape[0] == w[0] && t.shape[1] == w[1] && t.shape[2] == w[2];
    for (t.images = 1; t.images <= s->search.run->batch; t.images *= 2) {
        if (t.images > 1 && (!whole || count_positions(s->plan, &t) > MOST_POSITIONS)) break;
        consider_widths(s, t);
    }
}

static void consider_all(struct search *search, int64_t threads, int64_t scratch_bytes) {
    struct wino_search *s = (struct wino_search *)search;
    struct wino_tiling t = {.images = 1};
    const int64_t *w = s->plan->windows;
    s->threads = threads;
    s->scratch_bytes = scratch_bytes;
    for (t.shape[0] = w[0]; t.shape[0] > 0; t.shape[0] = next_part(w[0], t.shape[0], 4))
        for (int64_t height = w[1]; height > 0; height = next_part(w[1], height, 4))
            for (t.shape[2] = w[2]; t.shape[2] > 0; t.shape[2] = next_part(w[2], t.shape[2], 4)) {
                /* Lines that belong to different positions can only form whole rows. */
                if (t.shape[2] < w[2] &&
                    (s->plan->interleaved_high > 0 || t.shape[2] < s->search.k->kernels->lanes))
                    break;
                t.shape[1] = height;
                if (count_positions(s->plan, &t) <= MOST_POSITIONS) consider_shape(s, t);
            }
}

static void choose_tiling(const struct kernel *k, const struct run *run, struct wino_plan *plan) {
    struct search_key key;
    const struct wino_choice *choice = &plan->packing->choice;
    struct wino_tiling *best = &plan->tiling;
    search_key_make(k, run, choice, sizeof *choice, &key);
    if (search_find(&key, best, sizeof *best)) return;
    *best = (struct wino_tiling){.cycles = -1};
    struct wino_search s = {
        .search = {k, run, plan, wino_cycles, consider_all, best, sizeof *best, -1, -1},
        .plan = plan};
    search_threads(&s.search);
    /* No tile fits: use nearly the smallest one, since the choice of Winograd must not depend on
     * it. */
    for (int64_t scratch = run->scratch_bytes; best->cycles < 0 && scratch < run->thread_bytes;) {
        scratch = least(2 * most(scratch, CACHE_LINE), run->thread_bytes);
        search_some(&s.search, 1, scratch);
    }
    deal_evenly(plan, best);
    search_keep(&key, best, sizeof *best);
}

/* ---------------------------------------------------------------- plan -- */

static int plan_for(const struct kernel *k, const struct run *run,
                    const struct wino_packing *packing, struct wino_plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->packing = packing;
    windows_make(&k->problem, run, plan);
    if (interleaved_make(plan)) return -1;
    windows_cut(run, plan);
    choose_tiling(k, run, plan);
    return plan->tiling.cycles < 0;
}

static int panel_starts_make(struct wino_plan *plan) {
    const struct wino_packing *p = plan->packing;
    const struct wino_tiling *t = &plan->tiling;
    const int64_t width = t->width;
    const int64_t point_step = t->blocks * t->panel_block;
    int64_t *start = malloc((size_t)(p->origins * p->points) * sizeof *start);
    if (!start) return -1;
    plan->panel_start = start;
    for (int64_t origin = 0; origin < p->origins; origin++) {
        int64_t of[AXES], rest = origin, alignment = 0, part = 0;
        for (int i = AXES - 1; i >= 0; i--) {
            of[i] = rest % p->axes[i].origins;
            rest /= p->axes[i].origins;
        }
        for (int i = 0; i < AXES; i++) {
            const struct wino_axis *a = &p->axes[i];
            alignment = alignment * a->alignments + (a->parts > 1 ? 0 : of[i]);
            part = part * a->parts + (a->parts > 1 ? of[i] : 0);
        }
        for (int64_t point = 0; point < p->points; point++) {
            const int64_t before = p->at_depth[part][point];
            *start++ = before < 0 ? -1
                                  : (alignment * p->points + point) * point_step +
                                        before * p->channels * width;
        }
    }
    return 0;
}

/* Predict the cycles of a run with the weights of a choice; returns -1 when out of memory. */
static int choice_cycles(const struct kernel *k, const struct run *run,
                         const struct wino_choice *choice, double *cycles) {
    struct wino_packing trial;
    struct wino_plan plan = {0};
    const int failed = wino_packing_make(k, choice, &trial)
                           ? -1
                           : plan_for(k, run, &trial, &plan);
    *cycles = failed ? HUGE_VAL : plan.tiling.cycles;
    wino_plan_free(&plan);
    wino_packing_free(&trial);
    return failed < 0 ? -1 : 0;
}

/* F(m, r) for an axis with this number of taps, and others that save more products: the largest are of integers. */
enum { USUAL, LARGER, LARGEST, FORMS };
static int size_of(int64_t taps, int form, enum wino_size *size) {
    if (taps < 2) return form == USUAL;
    const int in_twos = taps == 2 || taps == 4;
    *size = form == LARGEST ? (in_twos ? F_4_2 : F_4_3)
            : form == LARGER ? F_3_2
                             : in_twos ? F_2_2 : F_2_3;
    return form != LARGER || (taps != 3 && taps <= 2 * MOST_AXIS_PARTS);
}

/* Whether integers of a form are exact: results have 32 bits, data at the points 16, and so have weights, which grow
 * less.  Data are 255 where factors have one sign, else 0: half of the sum of the factors' magnitudes, and half of
 * their sum, which are products of those of the axes. */
static int is_exact(const struct wino_choice *choice, int takes) {
    static const signed char magnitudes[WINO_SIZES] = {1, 2, 2, 2, 6, 10};
    static const signed char sums[WINO_SIZES] = {1, 1, 2, 2, 2, 6}; /* the largest of any point, without signs */
    int64_t magnitude = 1, sum = 1;
    for (int a = 0; a < AXES; a++) {
        magnitude *= magnitudes[choice->size[a]];
        sum *= sums[choice->size[a]];
    }
    return 255 * (magnitude + sum) / 2 <= INT16_MAX && wino_divisor_of(choice->size).shift < takes;
}

/* Change a choice, one axis after the other, as long as it improves: axes are nearly independent,
 * and the last one, whose lines are interleaved, matters most.  Returns -1 when out of memory. */
static int improve(const struct kernel *k, const struct run *run, int takes,
                   struct wino_choice *choice, double *cycles) {
    if (choice_cycles(k, run, choice, cycles)) return -1;
    const int is_integer = problem_has_codes(&k->problem);
    const int WAYS = 2 * (is_integer ? FORMS : LARGEST);
    double now;
    for (int tried = 0, at = 0; tried < WAYS * AXES; tried++, at = (at + 1) % (WAYS * AXES)) {
        struct wino_choice other = *choice;
        const int a = AXES - 1 - at / WAYS, merged = at & 1, form = at % WAYS >> 1;
        if (!size_of(wino_taps(&k->packing, a), form, &other.size[a])) continue;
        if (is_integer && !is_exact(&other, takes)) continue;
        other.merged[a] = merged;
        if ((k->packing.subs[a].count == 1 && merged) || !memcmp(&other, choice, sizeof other))
            continue;
        if (choice_cycles(k, run, &other, &now)) return -1;
        if (now < *cycles) {
            *choice = other;
            *cycles = now;
            tried = -1;
        }
    }
    return 0;
}

/* Positions of a layer that is computed as one tile. */
#define FEW_POSITIONS 1024

/* Positions of all images at which a sub-convolution is computed. */
static int64_t positions_of(const struct problem *problem, const struct run *run) {
    int64_t positions = run->batch;
    for (int a = 0; a < AXES; a++)
        positions *= divide_up(run->output[a], problem->forward ? 1 : problem->strides[a]);
    return positions;
}

void wino_place(const struct kernel *k, const struct run *run, struct wino_choice *choice) {
    for (int a = 0; a < AXES; a++) {
        const int64_t pad = run->pads_begin[a], stride = k->packing.subs[a].count;
        choice->residue[a] = k->problem.forward ? 0 : pad - floor_divide(pad, stride) * stride;
    }
}

int wino_choose(const struct kernel *k, const struct run *run, int takes,
                struct wino_choice *choice, double *cycles) {
    memset(choice, 0, sizeof *choice); /* it is compared byte by byte */
    choice->threads = 1;
    wino_place(k, run, choice);
    for (int a = 0; a < AXES; a++) {
        const int64_t taps = wino_taps(&k->packing, a);
        const int64_t stride = k->packing.subs[a].count;
        size_of(taps, USUAL, &choice->size[a]);
        choice->merged[a] = stride > 1;
        if (run->output[a] < stride) return 1;
    }
    if (run->batch < 1) return 1;
    if (problem_has_codes(&k->problem) && !is_exact(choice, takes)) return 1;
    const struct wino_choice start = *choice;
    if (improve(k, run, takes, choice, cycles)) return OUT_OF_MEMORY;
    if (k->codes && !k->problem.forward) {
        /* Whether axes share windows is not independent where transforms of weights take long. */
        struct wino_choice apart = start;
        double now;
        for (int a = 0; a < AXES; a++) apart.merged[a] = 0;
        if (improve(k, run, takes, &apart, &now)) return OUT_OF_MEMORY;
        if (now < *cycles) {
            *choice = apart;
            *cycles = now;
        }
    }
    return *cycles == HUGE_VAL;
}

int wino_arrange(const struct kernel *k, const struct run *given, struct wino_choice *choice) {
    /* Scratchpads have chunks of the weights of codes, so these are chosen whatever fits: a plan has to be the
     * same within its own scratchpad. */
    struct run roomy = *given;
    if (k->codes) roomy.scratch_bytes = given->thread_bytes * given->threads;
    const struct run *run = &roomy;
    /* Few positions are one tile, whose chunks are divided among threads, unless the work is
     * small. */
    if (run->threads < 2 || positions_of(&k->problem, run) > FEW_POSITIONS) return 0;
    double cycles, now;
    struct wino_choice even = *choice;
    even.threads = run->threads;
    if (choice_cycles(k, run, choice, &cycles)) return OUT_OF_MEMORY;
    if (cycles <= 20 * BARRIER_CYCLES) return 0;
    if (choice_cycles(k, run, &even, &now)) return OUT_OF_MEMORY;
    if (now < cycles) *choice = even;
    return 0;
}

int wino_choices_agree(const struct wino_choice *a, const struct wino_choice *b) {
    return !memcmp(a->size, b->size, sizeof a->size) &&
           !memcmp(a->merged, b->merged, sizeof a->merged) &&
           !memcmp(a->residue, b->residue, sizeof a->residue);
}

int wino_plan_make(const struct kernel *k, const struct run *run,
                   const struct wino_packing *packing, struct wino_plan *plan) {
    const int failed = plan_for(k, run, packing, plan);
    if (failed) return failed;
    const int64_t width = plan->tiling.width, count = wino_go(k->kernels) + AHEAD;
    plan->offsets = calloc((size_t)count, sizeof *plan->offsets);
    if (!plan->offsets || panel_starts_make(plan)) return -1;
    for (int64_t i = 0; i < count; i++) plan->offsets[i] = (int32_t)(i * width);
    return 0;
}

void wino_plan_free(struct wino_plan *plan) {
    free(plan->interleaved);
    free(plan->offsets);
    free(plan->panel_start);
    memset(plan, 0, sizeof *plan);
}
