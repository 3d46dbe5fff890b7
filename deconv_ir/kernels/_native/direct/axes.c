/* The axes of a plan: taps and offsets of sub-convolutions, and axes that are joined. */
#include "direct/direct.h"

#include <stdlib.h>
#include <string.h>

static int64_t tap_count(const struct subs *p, int64_t sub) {
    return p->first[sub + 1] - p->first[sub];
}

/* The data of tap `t` of sub-convolution q: data[in_stride*(v + offset) + residue]. */
static struct tap_place tap_place(const struct problem *problem, const struct run *run, int index,
                              const struct tap *t, int64_t q) {
    const int64_t stride = problem->strides[index], pad = run->pads_begin[index];
    if (!problem->forward) return (struct tap_place){floor_divide(q + pad, stride) - t->shift, 0};
    const int64_t at = problem->dilations[index] * t->kernel - pad;
    const int64_t offset = floor_divide(at, stride);
    return (struct tap_place){offset, at - offset * stride};
}

int axis_make(const struct problem *problem, const struct run *run, int index,
              const struct subs *subs, struct axis *axis) {
    const int64_t stride = problem->strides[index], pad = run->pads_begin[index];
    axis->data = run->data[index];
    axis->output = run->output[index];
    axis->out_stride = problem->forward ? 1 : stride;
    axis->in_stride = problem->forward ? stride : 1;
    /* Sub-convolutions beyond the output's extent do not exist. */
    const int64_t existing = least(axis->out_stride, most(axis->output, 1));
    axis->pattern_of = calloc((size_t)existing, sizeof *axis->pattern_of);
    axis->sub_of = calloc((size_t)existing, sizeof *axis->sub_of);
    axis->pattern_first = calloc((size_t)existing + 1, sizeof *axis->pattern_first);
    axis->places = calloc((size_t)problem->kernel[index], sizeof *axis->places);
    if (!axis->pattern_of || !axis->sub_of || !axis->pattern_first || !axis->places) return -1;
    /* Two sub-convolutions share a list if their packed tap counts and all offsets are equal, as
     * they mostly are for neighbours. */
    int64_t lists = 0, used = 0;
    int any = 0;
    for (int64_t q = 0; q < existing; q++) {
        const int64_t sub =
            problem->forward ? 0 : q + pad - floor_divide(q + pad, stride) * stride;
        const int64_t taps = tap_count(subs, sub);
        struct tap_place *list = axis->places + used;
        axis->sub_of[q] = sub;
        for (int64_t t = 0; t < taps; t++) {
            list[t] = tap_place(problem, run, index, &subs->taps[subs->first[sub] + t], q);
            axis->low = any ? least(axis->low, list[t].offset) : list[t].offset;
            axis->high = any ? most(axis->high, list[t].offset) : list[t].offset;
            any = 1;
        }
        int64_t same = 0;
        while (same < lists &&
               (axis->pattern_first[same + 1] - axis->pattern_first[same] != taps ||
                memcmp(axis->places + axis->pattern_first[same], list,
                       (size_t)taps * sizeof *list)))
            same++;
        axis->pattern_of[q] = same;
        if (same < lists) continue;
        used += taps;
        axis->pattern_first[++lists] = used;
    }
    axis->patterns = lists;
    /* One tap reads one residue; with several taps, the residues in between are copied as well. */
    axis->residues = problem->kernel[index] == 1 ? 1 : axis->in_stride;
    if (problem->kernel[index] == 1 && used > 0) {
        axis->residue = axis->places[0].residue;
        axis->places[0].residue = 0;
    }
    /* Outside of this range no tap reads data: see fill_outside(). */
    const int64_t all = divide_up(axis->output, axis->out_stride);
    const int64_t extent = divide_up(axis->data, axis->in_stride);
    axis->first = least(most(0, -axis->high), all);
    axis->last = most(axis->first, least(all, extent - axis->low));
    return 0;
}

struct run join_axes(const struct kernel *k, const struct run *run) {
    struct run joined = *run;
    if (k->problem.folded > 1 || (k->problem.channels_in == 1 && k->problem.channels_out == 1))
        return joined;
    for (int a = 0; a < AXES; a++)
        if (k->problem.kernel[a] != 1 || k->problem.strides[a] != 1 || run->pads_begin[a] ||
            run->data[a] != run->output[a] ||
            (a < AXES - 1 && run->data[a] > 1 &&
             run->step[a] != run->data[a + 1] * run->step[a + 1]))
            return joined;
    joined.output[2] = joined.extent = run->output[0] * run->output[1] * run->output[2];
    joined.data[2] = joined.output[2];
    joined.data[0] = joined.data[1] = joined.output[0] = joined.output[1] = 1;
    return joined;
}
