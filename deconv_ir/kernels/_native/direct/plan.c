/* Plans direct sums: from a layer and its extents to tables of offsets and a tiling.
 *
 * These functions do not touch data.  The packing of the filter depends on neither extents nor
 * pads; a plan does, and takes microseconds to make.
 */
#include "convolution/search.h"
#include "direct/channel_vectors.h"
#include "direct/cost.h"
#include "direct/direct.h"
#include "direct/output_vectors.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- tiling -- */

/* The number of elements of the data that `positions` of a tile read along an axis, and the maximum
 * numbers of zeros before and after them. */
static void reach(const struct axis *a, int64_t positions, int64_t *valid, int64_t *before,
                  int64_t *after) {
    const int64_t extent = divide_up(a->data, a->in_stride);
    const int64_t span = positions + a->high - a->low;
    if (positions >= a->last - a->first) {
        const int64_t begin = a->first + a->low, end = a->last + a->high;
        *before = least(most(0, -begin), span);
        /* The last residues may be one shorter than the first. */
        *after = least(most(0, end - a->data / a->in_stride), span);
        *valid = most(0, least(end, extent) - most(begin, 0));
    } else {
        *before = *after = 0;
        *valid = span;
    }
}

#define FEWEST_PIECES 4 /* of a tile with enough blocks of rows */

/* The layout of the data block of a tile, and its scratch. */
static void size_tile(const struct kernel *k, const struct plan *plan, struct tiling *t) {
    const struct axis *axes = plan->axes;
    const int64_t size = k->kernels->size, lanes = k->kernels->lanes;
    const int64_t line_elements = CACHE_LINE / size;
    int64_t valid, before, after;
    for (int a = 0; a < AXES; a++) t->extent[a] = t->shape[a] + axes[a].high - axes[a].low;
    reach(&axes[2], t->shape[2], &valid, &before, &after);
    /* The zeros after a row are also those before the next row. */
    t->pitch = most(t->shape[2], valid + most(before, after));
    /* Channel by channel, vectors of long rows are aligned with cache lines: see run_depthwise().
     * Rows that are interleaved are summed as one row, with the gaps between them. */
    const int by_channel = sums_by_channel(k) && !t->compact;
    const int by_rows = by_channel && axes[2].out_stride == 1;
    const int64_t unit = by_rows && t->vectors == 1 && t->shape[2] >= lanes ? lanes : 1;
    t->pitch = round_up(t->pitch, unit);
    t->plane = t->extent[1] * t->pitch;
    t->image_stride = round_up(t->extent[0] * t->plane + t->extent[2], unit);
    t->residue_stride = t->images * t->image_stride;
    /* The last vector of a row, or a copy, may reach this far beyond the end. */
    const int64_t slack = most(lanes, COPY_STEP / size) + (by_channel ? lanes : 0);
    /* An odd number of cache lines between channels, which would otherwise share a few sets of the
     * cache. */
    const int64_t lines =
        divide_up(plan->residues * t->residue_stride + slack, line_elements) | 1;
    t->channel_stride = lines * line_elements;
    const int64_t rows = t->images * t->shape[0] * t->shape[1];
    t->line = round_up((t->shape[1] - 1) * t->pitch + t->shape[2] + lanes, lanes);
    t->panel = (divide_up(rows * t->shape[2] + slack, line_elements) | 1) * line_elements;
    t->data_bytes = round_up(round_up(t->channels, spread_of(&k->problem)) * t->channel_stride * size, CACHE_LINE);
    const int64_t lines_of_subs = least(axes[2].out_stride, most(axes[2].output, 1));
    t->panel_bytes =
        t->compact ? round_up(t->channels * plan->depth * t->panel * size, CACHE_LINE) : 0;
    const int64_t positions = t->compact ? t->panel : t->images * t->shape[0] * t->line;
    const int64_t block_bytes =
        (t->compact ? 1 : lines_of_subs) * k->packing.rows * positions * size;
    t->together = least(t->blocks, most(k->problem.machine.sure_level2 / block_bytes, 1));
    /* Idle threads steal pieces of the last tiles. */
    if (t->threads > 1) t->together = least(t->together, divide_up(t->blocks, FEWEST_PIECES));
    if (k->problem.folded > 1) t->together = t->blocks;
    if (t->outputs) t->together = OUT_BLOCKS;
    int64_t kept = t->together;
    if (t->channels < k->problem.channels_in) {
        /* With several blocks of channels, all sub-convolutions keep their sums between them. */
        kept = t->blocks * (t->compact ? lines_of_subs : 1) *
               least(axes[0].out_stride, most(axes[0].output, 1)) *
               least(axes[1].out_stride, most(axes[1].output, 1));
    }
    t->sums_bytes = round_up(kept * block_bytes, CACHE_LINE);
    t->row_bytes =
        round_up(axes[2].out_stride * k->problem.folded * (t->shape[2] + 1) * size, CACHE_LINE);
    if (t->vectors > 1) {
        t->data_bytes *= t->vectors;
        t->panel_bytes = round_up(channel_vectors_bytes(k, plan, t), CACHE_LINE);
        t->sums_bytes = round_up((t->shape[2] + 2 * lanes) * t->vectors * size, CACHE_LINE);
    }
    taken_sizes(k, plan, t);
    t->bytes = t->data_bytes + t->panel_bytes + t->sums_bytes + t->row_bytes + t->weights_bytes +
               t->offsets_bytes;
}

static void count_jobs(const struct kernel *k, const struct run *run, const struct plan *plan,
                       struct tiling *t) {
    t->image_groups = divide_up(run->batch, t->images);
    t->row_groups = divide_up(k->packing.blocks, t->blocks);
    t->jobs = t->image_groups * t->row_groups;
    for (int a = 0; a < AXES; a++) {
        t->grid[a] = divide_up(plan->axes[a].last - plan->axes[a].first, t->shape[a]);
        t->jobs *= t->grid[a];
    }
    t->groups = t->depthwise ? depthwise_groups(k, run, plan, t, t->jobs * k->problem.groups) : 1;
    t->jobs *= divide_up(k->problem.groups, t->groups);
}

/* Bytes of a tile: its offsets are of 32 bits. */
#define MOST_TILE (INT64_C(1) << 30)

_Static_assert(sizeof(struct tiling) <= MOST_TILING_BYTES, "the cache has no room for a tiling");

struct direct_search {
    struct search search;
    struct plan *plan;
    int64_t budget, limit;
};

/* Maximum positions of a plane for sums channel by channel if rows are not plain. */
#define SMALL_PLANE 1024

/* Choose how a tile is summed: channel by channel; in the output itself, if the positions of a
 * plane are those of the output without gaps (with one tap or one row); or in scratch. */
static void choose_way(const struct direct_search *s, struct tiling *t) {
    const struct problem *problem = &s->search.k->problem;
    const struct axis *a = s->plan->axes;
    const int plain = !t->compact && rows_are_plain(s->search.k, s->search.run, s->plan);
    const int64_t plane = (a[1].last - a[1].first) * (a[2].last - a[2].first);
    t->depthwise = !t->compact && sums_by_channel(s->search.k) &&
                   (plain || plane <= SMALL_PLANE || problem_has_codes(problem));
    t->straight = plain && !t->depthwise && a[1].out_stride == 1 &&
                  (a[1].output == 1 ||
                   (t->shape[2] == a[2].output && t->pitch == a[2].output));
}

/* Keep a tiling if it is the best that fits. */
static void keep_best(struct direct_search *s, struct tiling t) {
    const struct kernel *k = s->search.k;
    const struct run *run = s->search.run;
    t.vectors = takes_channel_vectors(k, run, s->plan, &t) ? k->kernels->lanes : 1;
    size_tile(k, s->plan, &t);
    if (t.vectors > 1 && t.bytes > s->limit) {
        t.vectors = 1;
        size_tile(k, s->plan, &t);
    }
    if (t.bytes > s->limit) return;
    if (!t.outputs) choose_way(s, &t);
    count_jobs(k, run, s->plan, &t);
    search_rate(&s->search, &t, &t.cycles);
}

/* Consider a tiling with vectors of positions, and of output channels. */
static void consider(struct direct_search *s, struct tiling t) {
    /* Only panels and vectors of output channels join the positions of several images. */
    if (t.compact || t.images == 1) keep_best(s, t);
    t.outputs = takes_output_vectors(s->search.k, s->search.run, s->plan, &t);
    if (t.outputs) keep_best(s, t);
}

/* Consider tiles of a shape with the number of input channels that fits the cache, and with all or
 * some blocks of rows per job. */
static void consider_shape(struct direct_search *s, struct tiling t) {
    const struct kernel *k = s->search.k;
    const int64_t channels = most(k->problem.channels_in, 1), step = k->packing.channel_block;
    t.channels = channels;
    t.blocks = most(k->packing.blocks, 1);
    size_tile(k, s->plan, &t);
    const int64_t used = (t.compact ? t.panel_bytes : t.data_bytes) / channels;
    const int64_t steps = divide_up(channels, step);
    const int64_t fit = least(steps, most(1, s->budget / most(used, 1) / step));
    const int64_t goes = divide_up(steps, fit);
    for (int64_t more = 0; more < 2; more++) {
        t.channels = least(channels, divide_up(steps, goes + more) * step);
        for (int64_t groups = 1; groups <= 16; groups *= 2) {
            t.blocks = divide_up(most(k->packing.blocks, 1), groups);
            consider(s, t);
            if (t.blocks == 1 || k->problem.folded > 1) break;
        }
        if (goes == 1) break;
    }
}

/* Like next_part(), for a row: whole vectors, in small steps first, then by a quarter, so that rows
 * of any length soon shrink to a few positions. */
static int64_t next_row_part(int64_t whole, int64_t part, int64_t lanes) {
    const int64_t parts = divide_up(whole, part);
    const int64_t more = parts + 1 + (parts >= 8 ? parts / 4 : 0);
    const int64_t next = round_up(divide_up(whole, more), lanes);
    return next < part ? next : part > lanes ? round_up(part, lanes) - lanes : 0;
}

/* Consider tiles of a shape, and compact panels if rows are whole and short. */
static void consider_layouts(struct direct_search *s, struct tiling t, int64_t whole,
                             int64_t block) {
    const int panels =
        t.shape[2] == whole && whole <= 2 * block && s->search.k->problem.folded == 1;
    for (t.images = 1; t.images <= (panels ? s->search.run->batch : 1); t.images *= 2) {
        const int64_t positions = t.images * t.shape[0] * t.shape[1] * t.shape[2];
        if (t.images > 1 && positions > 32 * block) break;
        t.compact = 0;
        /* A few long rows, or many short ones. */
        if (t.shape[2] == whole || t.shape[1] <= 8) consider_shape(s, t);
        t.compact = 1;
        if (panels) consider_shape(s, t);
    }
}

static void consider_all(struct search *search, int64_t threads, int64_t scratch_bytes) {
    struct direct_search *s = (struct direct_search *)search;
    const struct kernel *k = search->k;
    struct tiling t = {.threads = threads};
    s->limit = most(least(scratch_bytes / threads, MOST_TILE), 1);
    s->budget = least(data_cache(&k->problem.machine), s->limit);
    const struct axis *axes = s->plan->axes;
    const int64_t lanes = k->kernels->lanes;
    const int64_t block = (int64_t)k->kernels->columns[k->packing.rows] * lanes;
    int64_t whole[AXES];
    for (int a = 0; a < AXES; a++) whole[a] = most(axes[a].last - axes[a].first, 1);
    for (t.shape[0] = whole[0]; t.shape[0] > 0; t.shape[0] /= 2)
        for (t.shape[1] = whole[1]; t.shape[1] > 0; t.shape[1] = next_part(whole[1], t.shape[1], 8))
            for (t.shape[2] = whole[2]; t.shape[2] > 0;
                 t.shape[2] = next_row_part(whole[2], t.shape[2], lanes)) {
                consider_layouts(s, t, whole[2], block);
                /* Narrower tiles are needed only if scratch is short. */
                if (t.shape[2] <= 2 * block && search->cycles >= 0) break;
            }
}

/* A small tile that exceeds the run's scratch, which the caller can raise, unlike the layer's.  It
 * has a block of channels at a time, like larger tiles, so that sums have the same order. */
static void smallest_tile(const struct kernel *k, const struct run *run, const struct plan *plan,
                          struct tiling *t) {
    const struct axis *row = &plan->axes[2];
    const int64_t width = least(k->kernels->lanes, most(row->last - row->first, 1));
    const int64_t channels = least(k->packing.channel_block, most(k->problem.channels_in, 1));
    const int64_t most_bytes = most(run->scratch_bytes, run->thread_bytes);
    const int64_t tried[][2] = {{width, channels}, {1, channels}, {1, least(spread_of(&k->problem), channels)}};
    for (int i = 0; i < 3; i++) {
        *t = (struct tiling){.images = 1, .shape = {1, 1, tried[i][0]}, .threads = 1,
                             .channels = tried[i][1], .blocks = 1};
        if (k->problem.folded > 1) t->blocks = k->packing.blocks;
        size_tile(k, plan, t);
        if (t->bytes <= most_bytes) return;
    }
}

static void choose_tiling(const struct kernel *k, const struct run *run, struct plan *plan) {
    if (plan_one_position(k, run, plan)) return;
    struct search_key key;
    struct tiling *best = &plan->tiling;
    search_key_make(k, run, NULL, 0, &key);
    if (search_find(&key, best, sizeof *best)) return;
    struct direct_search s = {
        .search = {k, run, plan, direct_cycles, consider_all, best, sizeof *best, -1, -1},
        .plan = plan};
    if (search_threads(&s.search) < 0) {
        smallest_tile(k, run, plan, best);
        count_jobs(k, run, plan, best);
        best->cycles = direct_cycles(k, run, plan, best);
    }
    search_keep(&key, best, sizeof *best);
}

/* ------------------------------------------------------------- offsets -- */

/* One list of offsets for every combination of the axes' patterns. */
static int make_offsets(const struct problem *problem, struct plan *plan) {
    const struct axis *a = plan->axes;
    const struct tiling *t = &plan->tiling;
    const int64_t count = a[0].patterns * a[1].patterns * a[2].patterns;
    plan->offsets = calloc((size_t)most(count, 1), sizeof *plan->offsets);
    if (!plan->offsets) return -1;
    if (t->compact) {
        const int64_t rows = plan->depth * t->channels;
        plan->panel_offsets = calloc((size_t)rows + AHEAD, sizeof *plan->panel_offsets);
        if (!plan->panel_offsets) return -1;
        for (int64_t k = 0; k < rows; k++) plan->panel_offsets[k] = (int32_t)(k * t->panel);
    }
    for (int64_t at = 0; at < count; at++) {
        /* The three lists, and their numbers of taps. */
        const int64_t of[AXES] = {at / a[2].patterns / a[1].patterns,
                                  at / a[2].patterns % a[1].patterns, at % a[2].patterns};
        const struct tap_place *begin[AXES], *end[AXES];
        int64_t taps = 1;
        for (int i = 0; i < AXES; i++) {
            begin[i] = a[i].places + a[i].pattern_first[of[i]];
            end[i] = a[i].places + a[i].pattern_first[of[i] + 1];
            taps *= end[i] - begin[i];
        }
        int32_t *out = calloc((size_t)(taps * t->channels) + AHEAD, sizeof *out);
        plan->offsets[at] = out;
        if (!out) return -1;
        for (int64_t i = 0; i < (problem->longer ? 2 : 1) * t->channels; i++)
            for (const struct tap_place *z = begin[0]; z < end[0]; z++)
                for (const struct tap_place *y = begin[1]; y < end[1]; y++)
                    for (const struct tap_place *x = begin[2]; x < end[2]; x++) {
                        const int64_t channel = i % t->channels;
                        if (!is_in_part(problem, x - begin[2], end[2] - begin[2], i >= t->channels)) continue;
                        const int64_t residue =
                            (z->residue * a[1].residues + y->residue) * a[2].residues +
                            x->residue;
                        *out++ = (int32_t)(channel * t->channel_stride +
                                           residue * t->residue_stride +
                                           (z->offset - a[0].low) * t->plane +
                                           (y->offset - a[1].low) * t->pitch +
                                           (x->offset - a[2].low));
                    }
    }
    return 0;
}

int plan_make(const struct kernel *k, const struct run *given, struct plan *plan) {
    const struct run joined = join_axes(k, given), *run = &joined;
    memset(plan, 0, sizeof *plan);
    plan->residues = 1;
    plan->depth = 1;
    for (int a = 0; a < AXES; a++) {
        if (axis_make(&k->problem, run, a, &k->packing.subs[a], &plan->axes[a])) return -1;
        plan->residues *= plan->axes[a].residues;
        int64_t deepest = 0;
        for (int64_t i = 0; i < plan->axes[a].patterns; i++)
            deepest = most(deepest, plan->axes[a].pattern_first[i + 1] -
                                        plan->axes[a].pattern_first[i]);
        plan->depth *= deepest;
    }
    plan->leaves_out = plan_leaves_out(k, plan);
    choose_tiling(k, run, plan);
    return make_offsets(&k->problem, plan);
}

void plan_free(struct plan *plan) {
    const int64_t count =
        plan->axes[0].patterns * plan->axes[1].patterns * plan->axes[2].patterns;
    if (plan->offsets)
        for (int64_t i = 0; i < count; i++) free(plan->offsets[i]);
    free(plan->offsets);
    free(plan->panel_offsets);
    for (int a = 0; a < AXES; a++) {
        free(plan->axes[a].pattern_of);
        free(plan->axes[a].sub_of);
        free(plan->axes[a].pattern_first);
        free(plan->axes[a].places);
    }
    memset(plan, 0, sizeof *plan);
}
