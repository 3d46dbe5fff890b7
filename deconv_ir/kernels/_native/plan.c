/* From a layer and its extents to tables of offsets and a tiling.
 *
 * Nothing here touches data.  The filter's packing knows no extents and no
 * pads; this is where they come in, and it takes microseconds.
 */
#include "native.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- an axis -- */

static int64_t tap_count(const struct phases *p, int64_t phase) {
    return p->first[phase + 1] - p->first[phase];
}

/* Where tap `t` of output phase q finds its data: data[in_stride*(v + offset) + in_phase]. */
static void tap_offset(const struct layer *layer, const struct run *run, int index,
                       const struct tap *t, int64_t q, int64_t *offset, int64_t *in_phase) {
    const int64_t stride = layer->strides[index], pad = run->pads_begin[index];
    if (layer->forward) {
        const int64_t at = layer->dilations[index] * t->kernel - pad;
        *offset = floor_divide(at, stride);
        *in_phase = at - *offset * stride;
    } else {
        *offset = floor_divide(q + pad, stride) - t->shift;
        *in_phase = 0;
    }
}

static int axis_make(const struct layer *layer, const struct run *run, int index,
                     const struct phases *phases, struct axis *axis) {
    const int64_t stride = layer->strides[index];
    axis->data = run->data[index];
    axis->output = run->output[index];
    axis->out_stride = layer->forward ? 1 : stride;
    axis->in_stride = layer->forward ? stride : 1;
    /* Phases beyond the output's extent do not exist. */
    const int64_t existing = least(axis->out_stride, most(axis->output, 1));
    axis->pattern_of = calloc((size_t)existing, sizeof *axis->pattern_of);
    axis->phase_of = calloc((size_t)existing, sizeof *axis->phase_of);
    if (!axis->pattern_of || !axis->phase_of) return -1;
    /* Two output phases share a list when they share the packed phase's tap
     * count and all offsets, which neighbours mostly do. */
    int64_t lists = 0, used = 0, room = 0;
    axis->pattern_first = calloc((size_t)existing + 1, sizeof *axis->pattern_first);
    if (!axis->pattern_first) return -1;
    int any = 0;
    for (int64_t q = 0; q < existing; q++) {
        const int64_t pad = run->pads_begin[index];
        const int64_t phase =
            layer->forward ? 0 : q + pad - floor_divide(q + pad, stride) * stride;
        const int64_t taps = tap_count(phases, phase);
        axis->phase_of[q] = phase;
        if (used + taps > room) {
            room = 2 * room + taps;
            int64_t *offset = realloc(axis->offset, (size_t)room * sizeof *offset);
            if (offset) axis->offset = offset;
            int64_t *in_phase = realloc(axis->in_phase, (size_t)room * sizeof *in_phase);
            if (in_phase) axis->in_phase = in_phase;
            if (!offset || !in_phase) return -1;
        }
        for (int64_t t = 0; t < taps; t++) {
            tap_offset(layer, run, index, &phases->taps[phases->first[phase] + t], q,
                       &axis->offset[used + t], &axis->in_phase[used + t]);
            const int64_t offset = axis->offset[used + t];
            axis->low = any ? least(axis->low, offset) : offset;
            axis->high = any ? most(axis->high, offset) : offset;
            any = 1;
        }
        int64_t list = 0;
        for (; list < lists; list++) {
            const int64_t at = axis->pattern_first[list];
            if (axis->pattern_first[list + 1] - at != taps) continue;
            if (taps == 0) break;
            if (!memcmp(axis->offset + at, axis->offset + used, (size_t)taps * sizeof(int64_t)) &&
                !memcmp(axis->in_phase + at, axis->in_phase + used,
                        (size_t)taps * sizeof(int64_t)))
                break;
        }
        axis->pattern_of[q] = list;
        if (list == lists) {
            used += taps;
            axis->pattern_first[++lists] = used;
        }
    }
    axis->patterns = lists;
    /* Outside of these no tap meets data; Python has filled the output there. */
    const int64_t all = divide_up(axis->output, axis->out_stride);
    const int64_t extent = divide_up(axis->data, axis->in_stride);
    axis->first = least(most(0, -axis->high), all);
    axis->last = most(axis->first, least(all, extent - axis->low));
    return 0;
}

/* -------------------------------------------------------------- tiling -- */

/* How far the data of a box reach along an axis, and how many zeros that
 * takes at worst before and after. */
static void reach(const struct axis *a, int64_t box, int64_t *valid, int64_t *before,
                  int64_t *after) {
    const int64_t extent = divide_up(a->data, a->in_stride);
    const int64_t span = box + a->high - a->low;
    if (box >= a->last - a->first) {
        const int64_t begin = a->first + a->low, end = a->last + a->high;
        *before = least(most(0, -begin), span);
        /* The last input phases may be one shorter than the first. */
        *after = least(most(0, end - a->data / a->in_stride), span);
        *valid = most(0, least(end, extent) - most(begin, 0));
    } else {
        *before = *after = 0;
        *valid = span;
    }
}

/* The layout of the data block for a box, and the scratch that it needs. */
static void lay_out(const struct layer *layer, const struct kernels *kernels,
                    const struct packing *packing, const struct plan *plan, struct tiling *t) {
    const struct axis *axes = plan->axes;
    const int64_t size = kernels->size, line_elements = LINE / size;
    int64_t valid, before, after;
    for (int a = 0; a < AXES; a++) t->extent[a] = t->box[a] + axes[a].high - axes[a].low;
    reach(&axes[2], t->box[2], &valid, &before, &after);
    /* The zeros after a row are the zeros before the next. */
    t->pitch = most(t->box[2], valid + most(before, after));
    t->plane = t->extent[1] * t->pitch;
    t->image_stride = t->extent[0] * t->plane + t->extent[2];
    t->phase_stride = t->images * t->image_stride;
    const int64_t widest = (int64_t)MAX_COLUMNS * kernels->lanes;
    /* An odd number of cache lines between channels: they would all fall into
     * the same few sets of the cache otherwise. */
    const int64_t lines =
        divide_up(plan->in_phases * t->phase_stride + widest, line_elements) | 1;
    t->channel_stride = lines * line_elements;
    const int64_t rows = t->images * t->box[0] * t->box[1];
    t->line = round_up((t->box[1] - 1) * t->pitch + t->box[2], kernels->lanes) + kernels->lanes;
    t->panel = round_up(rows * t->box[2], line_elements) + widest;
    t->data_bytes = round_up(t->channels * t->channel_stride * size, LINE);
    const int64_t lines_of_phases = least(axes[2].out_stride, most(axes[2].output, 1));
    t->panel_bytes = t->compact ? round_up(t->channels * plan->depth * t->panel * size, LINE) : 0;
    const int64_t positions = t->compact ? t->panel : t->images * t->box[0] * t->line + widest;
    /* With the channels in several goes, the sums of all phases must wait. */
    int64_t kept = 1;
    if (t->channels < layer->channels_in) {
        kept = t->blocks * least(axes[0].out_stride, most(axes[0].output, 1)) *
               least(axes[1].out_stride, most(axes[1].output, 1));
    }
    t->sums_bytes = round_up(kept * lines_of_phases * packing->rows * positions * size, LINE);
    t->row_bytes = round_up((axes[2].out_stride * (t->box[2] + 1)) * size, LINE);
    t->bytes = t->data_bytes + t->panel_bytes + t->sums_bytes + t->row_bytes;
}

/* Useful over computed positions, vectors rounded up. */
static double efficiency(const struct kernels *kernels, const struct tiling *t, int rows) {
    const double useful = (double)(t->box[1] * t->box[2]);
    const int64_t block = (int64_t)kernels->columns[rows] * kernels->lanes;
    const int64_t computed = (t->box[1] - 1) * t->pitch + t->box[2];
    /* A last block that is not whole still takes nearly as long. */
    return useful / (double)(round_up(computed, kernels->lanes) + block / 4);
}

static int64_t count_jobs(const struct layer *layer, const struct run *run,
                          const struct packing *packing, const struct plan *plan,
                          struct tiling *t) {
    t->image_groups = divide_up(run->batch, t->images);
    t->row_groups = divide_up(packing->blocks, t->blocks);
    t->jobs = layer->groups * t->image_groups * t->row_groups;
    for (int a = 0; a < AXES; a++) {
        t->grid[a] = divide_up(plan->axes[a].last - plan->axes[a].first, t->box[a]);
        t->jobs *= t->grid[a];
    }
    return t->jobs;
}

/* Make the parts of an axis equal: 5 rows of a box of 4 are 3 + 2. */
static int64_t even(int64_t whole, int64_t part) {
    return whole ? divide_up(whole, divide_up(whole, part)) : 1;
}

static void choose_tiling(const struct layer *layer, const struct run *run,
                          const struct kernels *kernels, const struct packing *packing,
                          struct plan *plan) {
    const struct axis *axes = plan->axes;
    struct tiling *t = &plan->tiling;
    /* Half of the cache for the data; weights and sums pass through the rest. */
    const int64_t limit = most(run->scratch_bytes / most(run->threads, 1), 1);
    const int64_t budget = least(second_level_cache() / 2, limit);
    int64_t whole[AXES];
    for (int a = 0; a < AXES; a++) whole[a] = most(axes[a].last - axes[a].first, 1);
    t->images = 1;
    t->channels = most(layer->channels_in, 1);
    t->blocks = most(packing->blocks, 1);
    for (int a = 0; a < AXES; a++) t->box[a] = whole[a];
    t->box[0] = 1;
    const int64_t block = (int64_t)kernels->columns[packing->rows] * kernels->lanes;

#define TOO_LARGE(what) (lay_out(layer, kernels, packing, plan, t), (what) > budget)
    /* Rows first: a box of whole rows is copied in long stretches. */
    while (t->box[1] > 1 && TOO_LARGE(t->data_bytes)) t->box[1] = divide_up(t->box[1], 2);
    if (t->box[1] > 1 && t->box[1] < whole[1]) {
        /* Halving may have cut too deep: take what fits. */
        const int64_t half = t->box[1];
        while (t->box[1] < 2 * half && !TOO_LARGE(t->data_bytes)) t->box[1]++;
        while (t->box[1] > half && TOO_LARGE(t->data_bytes)) t->box[1]--;
    }
    t->box[1] = even(whole[1], t->box[1]);
    /* Then positions of a row, while there are enough for the micro-kernel. */
    while (t->box[2] > 4 * block && TOO_LARGE(t->data_bytes + t->sums_bytes))
        t->box[2] = round_up(divide_up(t->box[2], 2), block);
    /* Then channels, in several goes. */
    while (t->channels > 64 && TOO_LARGE(t->data_bytes)) t->channels = divide_up(t->channels, 2);

    /* Planes too small to fill the micro-kernel: several rows, planes and
     * images go into a panel without gaps. */
    lay_out(layer, kernels, packing, plan, t);
    if (t->box[2] == whole[2] && t->box[1] == whole[1] && packing->rows > 1 &&
        layer->channels_out >= 16 && efficiency(kernels, t, packing->rows) < 0.75) {
        t->compact = 1;
        while (t->images < run->batch || t->box[0] < whole[0]) {
            const struct tiling before = *t;
            if (t->box[0] < whole[0]) t->box[0] = least(2 * t->box[0], whole[0]);
            else t->images = least(2 * t->images, run->batch);
            lay_out(layer, kernels, packing, plan, t);
            if (t->box[0] * t->box[1] * t->box[2] * t->images > 8 * block) {
                *t = before;
                break;
            }
        }
        t->images = even(run->batch, t->images);
        t->box[0] = even(whole[0], t->box[0]);
        while (t->channels > 16 && TOO_LARGE(t->data_bytes / 2 + t->panel_bytes / 2))
            t->channels = divide_up(t->channels, 2);
    }
    t->channels = even(layer->channels_in, t->channels);
    lay_out(layer, kernels, packing, plan, t);

    /* Sums that must wait should not take more than the data do. */
    while (t->channels < layer->channels_in && t->blocks > 4 && TOO_LARGE(t->sums_bytes / 4))
        t->blocks = divide_up(t->blocks, 2);

    /* Enough jobs for all threads to finish together. */
    const int64_t threads = most(run->threads, 1);
    while (threads > 1) {
        const int64_t jobs = count_jobs(layer, run, packing, plan, t);
        const int64_t rounds = divide_up(jobs, threads);
        if ((double)(rounds * threads) / (double)most(jobs, 1) < 1.08) break;
        if (!t->compact && t->box[1] > 1) t->box[1] = even(whole[1], t->box[1] - 1);
        else if (!t->compact && t->box[2] > 4 * block)
            t->box[2] = round_up(divide_up(t->box[2], 2), block);
        else if (t->blocks > 4) t->blocks = divide_up(t->blocks, 2);
        else if (t->compact && t->images > 1) t->images = divide_up(t->images, 2);
        else break;
    }
    t->blocks = even(packing->blocks, t->blocks);

    /* The bound holds whatever the cost. */
    while (TOO_LARGE(t->bytes - budget + budget) && t->bytes > limit) {
        if (t->images > 1) t->images = divide_up(t->images, 2);
        else if (t->blocks > 1 && t->channels < layer->channels_in)
            t->blocks = divide_up(t->blocks, 2);
        else if (t->box[0] > 1) t->box[0] = divide_up(t->box[0], 2);
        else if (t->box[1] > 1) t->box[1] = divide_up(t->box[1], 2);
        else if (t->box[2] > 1) t->box[2] = divide_up(t->box[2], 2);
        else if (t->channels > 1) t->channels = divide_up(t->channels, 2);
        else break;
    }
#undef TOO_LARGE
    lay_out(layer, kernels, packing, plan, t);
    count_jobs(layer, run, packing, plan, t);
}

/* ------------------------------------------------------------- offsets -- */

/* One list of offsets for every combination of the axes' patterns. */
static int make_offsets(struct plan *plan) {
    const struct axis *a = plan->axes;
    const struct tiling *t = &plan->tiling;
    const int64_t count = a[0].patterns * a[1].patterns * a[2].patterns;
    plan->offsets = calloc((size_t)most(count, 1), sizeof *plan->offsets);
    if (!plan->offsets) return -1;
    if (t->compact) {
        const int64_t rows = plan->depth * t->channels;
        plan->panel_offsets = malloc((size_t)most(rows, 1) * sizeof *plan->panel_offsets);
        if (!plan->panel_offsets) return -1;
        for (int64_t k = 0; k < rows; k++) plan->panel_offsets[k] = (int32_t)(k * t->panel);
    }
    int64_t at = 0;
    for (int64_t p = 0; p < a[0].patterns; p++)
        for (int64_t q = 0; q < a[1].patterns; q++)
            for (int64_t r = 0; r < a[2].patterns; r++, at++) {
                const int64_t taps = (a[0].pattern_first[p + 1] - a[0].pattern_first[p]) *
                                     (a[1].pattern_first[q + 1] - a[1].pattern_first[q]) *
                                     (a[2].pattern_first[r + 1] - a[2].pattern_first[r]);
                int32_t *out = malloc((size_t)most(taps * t->channels, 1) * sizeof *out);
                plan->offsets[at] = out;
                if (!out) return -1;
                for (int64_t channel = 0; channel < t->channels; channel++)
                    for (int64_t i = a[0].pattern_first[p]; i < a[0].pattern_first[p + 1]; i++)
                        for (int64_t j = a[1].pattern_first[q]; j < a[1].pattern_first[q + 1]; j++)
                            for (int64_t k = a[2].pattern_first[r]; k < a[2].pattern_first[r + 1];
                                 k++) {
                                const int64_t in_phase =
                                    (a[0].in_phase[i] * a[1].in_stride + a[1].in_phase[j]) *
                                        a[2].in_stride + a[2].in_phase[k];
                                *out++ = (int32_t)(channel * t->channel_stride +
                                                   in_phase * t->phase_stride +
                                                   (a[0].offset[i] - a[0].low) * t->plane +
                                                   (a[1].offset[j] - a[1].low) * t->pitch +
                                                   (a[2].offset[k] - a[2].low));
                            }
            }
    return 0;
}

int plan_make(const struct layer *layer, const struct run *run, const struct kernels *kernels,
              const struct packing *packing, struct plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->in_phases = 1;
    plan->depth = 1;
    for (int a = 0; a < AXES; a++) {
        if (axis_make(layer, run, a, &packing->phases[a], &plan->axes[a])) return -1;
        plan->in_phases *= plan->axes[a].in_stride;
        int64_t deepest = 0;
        for (int64_t i = 0; i < plan->axes[a].patterns; i++)
            deepest = most(deepest, plan->axes[a].pattern_first[i + 1] -
                                        plan->axes[a].pattern_first[i]);
        plan->depth *= deepest;
    }
    choose_tiling(layer, run, kernels, packing, plan);
    return make_offsets(plan);
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
        free(plan->axes[a].phase_of);
        free(plan->axes[a].pattern_first);
        free(plan->axes[a].offset);
        free(plan->axes[a].in_phase);
    }
    memset(plan, 0, sizeof *plan);
}
