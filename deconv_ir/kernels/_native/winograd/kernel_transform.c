/* The weights at the points of Winograd F(m, r), the GEMMs' A:
 *   M  output channels x sub-convolutions that have weights at the point, in blocks of rows
 *   K  input channels x parts of the taps
 * as [group][chunk][alignment][point][block of rows][K][row].
 */
#include "winograd/winograd.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are summed before their outputs are made: enough to use the data
 * of a panel often, few enough for their sums to stay in the second-level cache. */
#define CHUNK_ROWS 64

/* Points 0, 1 and infinity; 0, 1, -1 and infinity; with 2 and -2.  Signs and halves are the
 * weights', so that the data are only added and subtracted, but for F(4, 2) and F(4, 3). */
const struct wino_shape wino_shapes[WINO_SIZES] = {
    [F_1_1] = {1, 1, 1, {{1}}},
    [F_2_2] = {3, 2, 2, {{1, 0}, {1, 1}, {0, 1}}},
    [F_3_2] = {4, 3, 2, {{1, 0}, {.5, .5}, {.5, -.5}, {0, 1}}},
    [F_2_3] = {4, 2, 3, {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}},
    /* Divided by 2, -2, -6, 6 and 1; 4, -6, -6, 24, 24 and 1. */
    [F_4_2] = {5, 4, 2, {{1, 0}, {1, 1}, {1, -1}, {1, 2}, {0, 1}}},
    [F_4_3] = {6, 4, 3, {{1, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}}},
};

static int64_t tap_count(const struct subs *p, int64_t sub) {
    return p->first[sub + 1] - p->first[sub];
}

int64_t wino_taps(const struct packing *direct, int axis) {
    int64_t most_taps = 0;
    for (int64_t r = 0; r < direct->subs[axis].count; r++)
        most_taps = most(most_taps, tap_count(&direct->subs[axis], r));
    return most_taps;
}

int wino_supports(const struct kernel *k) {
    const enum accumulator accumulator = accumulator_of((enum element)k->problem.element);
    if ((accumulator != ACC_F32 && accumulator != ACC_SHORTS) || k->problem.folded > 1 ||
        k->problem.channels_in == 0 || k->problem.channels_out == 0)
        return 0;
    /* Integers have no bias, which is part of the results, and are not copied without transforms. */
    if (accumulator == ACC_SHORTS &&
        (k->bias || (wino_taps(&k->packing, 0) < 2 && wino_taps(&k->packing, 1) < 2 &&
                     wino_taps(&k->packing, 2) < 2)))
        return 0;
    for (int a = 0; a < AXES; a++) {
        const struct subs *p = &k->packing.subs[a];
        const int64_t taps = wino_taps(&k->packing, a);
        if (taps > 3 * (p->count > 1 ? 1 : MOST_AXIS_PARTS) ||
            (k->problem.forward && k->problem.strides[a] > 1) || k->problem.strides[a] > MOST_AXIS_SUBS)
            return 0;
        /* A sub-convolution without taps has no weights. */
        for (int64_t r = 0; r < p->count; r++)
            if (tap_count(p, r) == 0) return 0;
        if (taps > 1 && (k->problem.dilations[a] > MOST_DILATION ||
                         p->count * k->problem.dilations[a] * MOST_OUTPUTS > MOST_INTERLEAVED))
            return 0;
    }
    return 1;
}

/* Divides the taps into nearly equal parts, the longer ones first. */
static void parts_make(const struct wino_shape *shape, struct wino_axis *axis) {
    const int taps = axis->sub[0].taps;
    axis->sub[0].uses = 0;
    for (int part = 0, first = 0; part < axis->parts; part++) {
        const int count = taps / axis->parts + (part < taps % axis->parts);
        axis->part[part].taps = count;
        axis->part[part].first = first;
        for (int point = 0; point < shape->points; point++)
            for (int tap = 0; tap < count; tap++)
                if (shape->weights[point][tap] != 0) axis->part[part].uses |= 1u << point;
        axis->sub[0].uses |= axis->part[part].uses;
        axis->origin[part] = axis->origin[0] + axis->dilation * first;
        first += count;
    }
}

/* Finds the origin of the windows of each sub-convolution, and its taps of F(m, r).  Origins
 * account for pads within a stride; the plan accounts for the rest of the pads. */
static void axis_make(const struct problem *problem, const struct subs *subs, int index,
                     const struct wino_choice *choice, struct wino_axis *axis) {
    const struct wino_shape *shape = &wino_shapes[choice->size[index]];
    const int64_t stride = subs->count;
    memset(axis, 0, sizeof *axis);
    axis->size = choice->size[index];
    axis->points = shape->points;
    axis->outputs = shape->outputs;
    axis->stride = stride;
    axis->dilation = shape->taps > 1 ? problem->dilations[index] : 1;
    axis->step = axis->dilation * axis->outputs;
    axis->parts = stride > 1 ? 1 : (int)divide_up(tap_count(subs, 0), shape->taps);
    int64_t origin[MOST_AXIS_SUBS] = {0};
    /* Sub-convolutions with all taps come first: one with a tap less shares an origin with one of
     * them if possible. */
    for (int fewer = 0; fewer < 2; fewer++)
        for (int64_t q = 0; q < stride; q++) {
            const int64_t at = q + choice->residue[index], packed = at % stride;
            const int taps = (int)tap_count(subs, packed);
            if ((taps < shape->taps) != fewer) continue;
            const int64_t last = subs->first[packed + 1] - 1;
            origin[q] = problem->forward ? 0 : at / stride - subs->taps[last].shift;
            axis->sub[q].packed = packed;
            axis->sub[q].taps = taps;
            int64_t found = axis->alignments;
            const int missing = shape->taps - taps;
            for (int first = 0; first <= missing && found == axis->alignments; first++)
                for (found = 0; found < axis->alignments; found++)
                    if (axis->origin[found] == origin[q] - axis->dilation * first) {
                        axis->sub[q].first = first;
                        break;
                    }
            origin[q] -= axis->dilation * axis->sub[q].first;
            axis->sub[q].alignment = found;
            axis->origin[found] = origin[q];
            axis->alignments = most(axis->alignments, found + 1);
        }
    int64_t low = origin[0];
    for (int64_t q = 1; q < stride; q++) low = least(low, origin[q]);
    for (int64_t q = 0; q < stride; q++) {
        if (choice->merged[index]) {
            axis->sub[q].alignment = 0;
            axis->sub[q].shift = low - origin[q];
        }
        for (int point = 0; point < shape->points; point++)
            for (int tap = 0; tap < axis->sub[q].taps && axis->parts == 1; tap++)
                if (shape->weights[point][axis->sub[q].first + tap] != 0)
                    axis->sub[q].uses |= 1u << point;
    }
    if (choice->merged[index]) {
        axis->alignments = 1;
        axis->origin[0] = low;
    }
    if (axis->parts > 1) parts_make(shape, axis);
    axis->origins = axis->alignments * axis->parts;
}

/* Finds the parts of all axes that have weights at each point of all axes. */
static void depths_make(struct wino_packing *p) {
    const struct wino_axis *a = p->axes;
    for (int64_t part = 0; part < p->parts; part++) {
        const int64_t of[AXES] = {part / a[2].parts / a[1].parts, part / a[2].parts % a[1].parts,
                                  part % a[2].parts};
        for (int64_t point = 0; point < p->points; point++) {
            const int64_t at[AXES] = {point / a[2].points / a[1].points,
                                      point / a[2].points % a[1].points, point % a[2].points};
            int has = 1;
            for (int i = 0; i < AXES; i++)
                has &= a[i].parts == 1 || a[i].part[of[i]].uses >> at[i] & 1;
            p->at_depth[part][point] =
                (int8_t)(has ? p->depth[point] / p->channels : -1);
            if (has) p->depth[point] += p->channels;
        }
    }
}

/* Finds the alignment of one row of a layout, and whether it has weights at each point. */
static int64_t row_make(const struct wino_packing *p, const struct wino_layout *layout,
                        int64_t row, char *used) {
    const struct wino_axis *a = p->axes;
    const int64_t unit = (layout->first + row / a[2].stride) % p->subs;
    const int64_t q[AXES] = {unit / a[1].stride, unit % a[1].stride, row % a[2].stride};
    int64_t alignment = 0;
    for (int i = 0; i < AXES; i++)
        alignment = alignment * a[i].alignments + a[i].sub[q[i]].alignment;
    for (int z = 0; z < a[0].points; z++)
        for (int y = 0; y < a[1].points; y++)
            for (int x = 0; x < a[2].points; x++)
                *used++ = a[0].sub[q[0]].uses >> z & a[1].sub[q[1]].uses >> y &
                          a[2].sub[q[2]].uses >> x & 1;
    return alignment;
}

/* Number the lines of a chunk of units, by alignment, point and row. */
static int layout_make(const struct wino_packing *p, struct wino_layout *layout) {
    const int64_t rows = layout->count * p->axes[2].stride, sums = p->alignments * p->points;
    char used[MOST_VALUES];
    layout->line = malloc((size_t)(rows * p->points) * sizeof *layout->line);
    layout->rows = calloc((size_t)sums, sizeof *layout->rows);
    int32_t *next = calloc((size_t)sums, sizeof *next);
    if (!layout->line || !layout->rows || !next) {
        free(next);
        return -1;
    }
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = row_make(p, layout, row, used) * p->points;
        for (int64_t point = 0; point < p->points; point++)
            layout->rows[first + point] += used[point];
    }
    for (int64_t i = 0; i < sums; i++) {
        next[i] = (int32_t)layout->lines;
        layout->lines += layout->rows[i];
        layout->weights += layout->rows[i] * p->depth[i % p->points];
    }
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = row_make(p, layout, row, used) * p->points;
        for (int64_t point = 0; point < p->points; point++)
            layout->line[row * p->points + point] = used[point] ? next[first + point]++ : -1;
    }
    free(next);
    return 0;
}

/* Rows of a chunk.  Codes are transformed to the second-level cache, in whole blocks of rows of the packed filter. */
static int64_t rows_of_chunk(const struct kernel *k, const struct wino_packing *p) {
    const int64_t whole = k->kernels->rows * p->subs * p->axes[2].stride;
    const int64_t row_bytes = p->parts * p->channels * p->points * (int64_t)sizeof(float);
    if (!k->codes) return CHUNK_ROWS;
    return most(least(k->problem.machine.level2 / 2 / row_bytes, CHUNK_ROWS) / whole, 1) * whole;
}

int wino_packing_make(const struct kernel *k, const struct wino_choice *choice,
                      struct wino_packing *p) {
    memset(p, 0, sizeof *p);
    p->choice = *choice;
    p->points = p->alignments = p->parts = p->origins = 1;
    for (int a = 0; a < AXES; a++) {
        axis_make(&k->problem, &k->packing.subs[a], a, choice, &p->axes[a]);
        p->points *= p->axes[a].points;
        p->alignments *= p->axes[a].alignments;
        p->parts *= p->axes[a].parts;
        p->origins *= p->axes[a].origins;
    }
    p->channels = k->problem.channels_in;
    depths_make(p);
    p->subs = p->axes[0].stride * p->axes[1].stride;
    p->units = k->problem.channels_out * p->subs;
    /* Whole micro-kernels, if the sub-convolutions allow it, and channels that are written together. */
    const int64_t last = p->axes[2].stride, together = wino_together(k);
    p->chunks = least(p->units, round_up(divide_up(p->units * last, most(rows_of_chunk(k, p), last)),
                                         choice->threads));
    p->chunk_units = divide_up(p->units, p->chunks);
    if (together > 1) p->chunk_units = round_up(p->chunk_units, together * p->subs);
    while (together == 1 && p->chunk_units > 1 && p->chunk_units * last % k->kernels->rows &&
           divide_up(p->units, p->chunk_units - 1) == p->chunks)
        p->chunk_units--;
    p->chunks = divide_up(p->units, p->chunk_units);
    p->layouts = calloc((size_t)least(p->chunks, p->subs + 1), sizeof *p->layouts);
    p->chunk_first = calloc((size_t)p->chunks + 1, sizeof *p->chunk_first);
    if (!p->layouts || !p->chunk_first) return -1;
    for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
        const int64_t unit = chunk * p->chunk_units;
        const int64_t first = unit % p->subs, count = least(p->chunk_units, p->units - unit);
        int64_t i = 0;
        while (i < p->layout_count &&
               (p->layouts[i].first != first || p->layouts[i].count != count))
            i++;
        if (i == p->layout_count) {
            p->layouts[i].first = first;
            p->layouts[i].count = count;
            p->layout_count++;
            if (layout_make(p, &p->layouts[i])) return -1;
        }
        p->chunk_first[chunk + 1] = p->chunk_first[chunk] + p->layouts[i].weights;
    }
    return 0;
}

void wino_packing_free(struct wino_packing *p) {
    for (int64_t i = 0; i < p->layout_count; i++) {
        free(p->layouts[i].line);
        free(p->layouts[i].rows);
    }
    free(p->layouts);
    free(p->chunk_first);
    free(p->weights);
    free(p->bias);
    free(p->scales);
    memset(p, 0, sizeof *p);
}

struct pack_job {
    const struct kernel *k;
    struct wino_packing *p;
    int64_t first; /* chunk of the first job, over all groups */
};

/* The taps of a part of a sub-convolution. */
void wino_taps_make(const struct problem *problem, const struct wino_packing *p, const int64_t q[AXES], int64_t part,
                    struct wino_taps *taps) {
    const struct wino_axis *a = p->axes;
    const int64_t of[AXES] = {part / a[2].parts / a[1].parts, part / a[2].parts % a[1].parts,
                              part % a[2].parts};
    int begin[AXES];
    for (int i = 0; i < AXES; i++) {
        taps->size[i] = a[i].size;
        taps->count[i] = a[i].sub[q[i]].taps;
        taps->first[i] = a[i].sub[q[i]].first;
        begin[i] = 0;
        if (a[i].parts > 1) {
            begin[i] = a[i].part[of[i]].first;
            taps->count[i] = a[i].part[of[i]].taps;
        }
    }
    const int count = taps->count[0] * taps->count[1] * taps->count[2];
    for (int tap = 0; tap < count; tap++) {
        const int in_part[AXES] = {tap / taps->count[2] / taps->count[1],
                                   tap / taps->count[2] % taps->count[1], tap % taps->count[2]};
        int at = 0;
        for (int i = 0; i < AXES; i++) {
            /* Taps are packed in the kernel's order, which is the reverse of the data's. */
            const int t = begin[i] + in_part[i], all = a[i].sub[q[i]].taps;
            at = at * all + (problem->forward ? t : all - 1 - t);
        }
        taps->at[tap] = at;
    }
}

/* The first of a row's weights in the direct packing. */
static struct wino_source source_of(const struct kernel *k, const struct wino_packing *p,
                                    int64_t group, int64_t channel, const int64_t q[AXES]) {
    const struct wino_axis *a = p->axes;
    const struct packing *d = &k->packing;
    int64_t packed = 0, count = 1, block = 0;
    for (int i = 0; i < AXES; i++) {
        packed = packed * d->subs[i].count + a[i].sub[q[i]].packed;
        count *= a[i].sub[q[i]].taps;
    }
    while (packing_channel(d, block + 1) <= channel && block + 1 < d->blocks) block++;
    const int64_t first = packing_channel(d, block), step = packing_rows(d, block);
    return (struct wino_source){
        (const float *)k->packed + group * d->group_size + d->sub_start[packed] +
            count * k->problem.channels_in * first + (channel - first),
        step, count * step};
}

/* Finds the place of row `row` of a chunk at each point, and the number of rows of its block there;
 * NULL without weights. */
static void locate_values(const struct kernel *k, const struct wino_packing *p,
                          const struct wino_layout *layout, int64_t row, int64_t alignment,
                          float *out, float **to, int64_t *step) {
    int64_t line = 0;
    for (int64_t i = 0; i < (alignment + 1) * p->points; i++) {
        const int64_t rows = layout->rows[i], point = i - alignment * p->points;
        const int64_t depth = p->depth[i % p->points];
        if (point >= 0) to[point] = NULL;
        if (point >= 0 && layout->line[row * p->points + point] >= 0) {
            const int64_t within = layout->line[row * p->points + point] - line;
            const int64_t blocks = wino_blocks(rows, k->kernels);
            int64_t b = within / divide_up(rows, blocks);
            while (wino_block_first(rows, blocks, b + 1) <= within) b++;
            const int64_t begin = wino_block_first(rows, blocks, b);
            step[point] = wino_block_first(rows, blocks, b + 1) - begin;
            to[point] = out + begin * depth + (within - begin);
        }
        out += rows * depth;
        line += rows;
    }
}

/* Number of rows that are transformed together, from the first row of a block: the whole block if
 * its rows have the same taps and are contiguous at all points. */
static int64_t rows_together(const struct wino_packing *p, const struct wino_layout *layout,
                             float *const *to, const int64_t *step) {
    if (p->alignments > 1 || p->subs * p->axes[2].stride > 1) return 1;
    for (int64_t point = 0; point < p->points; point++)
        if (layout->rows[point] != layout->rows[0] || !to[point]) return 1;
    return step[0];
}

/* Transforms the weights of one row for `count` channels, some at a time. */
static void transform_row(const struct transforms *transforms, const struct wino_packing *p,
                          const struct wino_taps *taps, struct wino_source row, int64_t count,
                          float **to, const int64_t *step) {
    struct wino_source sources[MAX_ROWS];
    for (int64_t i = 0; i < count; i += MAX_ROWS) {
        const int some = (int)least(MAX_ROWS, count - i);
        for (int l = 0; l < some; l++, row.from += row.channel_step) sources[l] = row;
        transforms->weights(taps, sources, some, 1, 1, to, step);
        for (int64_t point = 0; point < p->points; point++)
            if (to[point]) to[point] += some * step[point];
    }
}

/* Transform the weights of a chunk of a group. */
static void make_weights(const struct kernel *k, const struct wino_packing *p, int64_t group,
                         int64_t chunk, float *out) {
    const struct transforms *transforms = wino_transforms(k);
    const struct wino_axis *a = p->axes;
    const struct wino_layout *layout = wino_layout_of(p, chunk);
    const int64_t last = a[2].stride;
    for (int64_t row = 0, together; row < layout->count * last; row += together) {
        const int64_t unit = chunk * p->chunk_units + row / last;
        const int64_t q[AXES] = {unit % p->subs / a[1].stride, unit % a[1].stride, row % last};
        float *first[MOST_VALUES], *to[MOST_VALUES];
        int64_t step[MOST_VALUES], alignment = 0;
        struct wino_source sources[MAX_ROWS];
        for (int i = 0; i < AXES; i++)
            alignment = alignment * a[i].alignments + a[i].sub[q[i]].alignment;
        locate_values(k, p, layout, row, alignment, out, first, step);
        together = rows_together(p, layout, first, step);
        for (int i = 0; i < together; i++)
            sources[i] = source_of(k, p, group, unit / p->subs + i, q);
        for (int64_t part = 0; part < p->parts; part++) {
            struct wino_taps taps;
            wino_taps_make(&k->problem, p, q, part, &taps);
            for (int64_t point = 0; point < p->points; point++) {
                const int64_t before = p->at_depth[part][point];
                to[point] = first[point] && before >= 0
                                ? first[point] + before * p->channels * step[point]
                                : NULL;
            }
            if (together > 1)
                transforms->weights(&taps, sources, (int)together, 0, p->channels, to, step);
            else
                transform_row(transforms, p, &taps, sources[0], p->channels, to, step);
        }
    }
}

static void pack_chunk(void *context, int64_t job, void *scratch) {
    (void)scratch;
    const struct pack_job *c = context;
    const struct wino_packing *p = c->p;
    const int64_t at = c->first + job, group = at / p->chunks, chunk = at % p->chunks;
    make_weights(c->k, p, group, chunk,
                 p->weights + group * p->chunk_first[p->chunks] + p->chunk_first[chunk]);
}

/* With one point, copies the bias of each row to the place of its sums. */
static void place_bias(const struct kernel *k, const struct wino_packing *p) {
    const int64_t last = p->axes[2].stride;
    const float *biases = k->bias;
    for (int64_t job = 0; biases && job < k->problem.groups * p->chunks; job++) {
        const int64_t group = job / p->chunks, chunk = job % p->chunks;
        const struct wino_layout *layout = wino_layout_of(p, chunk);
        float *bias = p->bias + (group * p->units + chunk * p->chunk_units) * last;
        for (int64_t row = 0; row < layout->count * last; row++) {
            const int64_t channel = (chunk * p->chunk_units + row / last) / p->subs;
            if (layout->line[row] >= 0)
                bias[layout->line[row]] = biases[group * k->problem.channels_out + channel];
        }
    }
}

int64_t wino_weight_bytes(const struct kernel *k, const struct wino_packing *p) {
    return k->codes ? 0 : k->problem.groups * p->chunk_first[p->chunks] * (int64_t)sizeof(float);
}

/* Discard the blocks of rows of the packed filter that chunks before this one, over all groups, have read. */
static void discard_before(const struct kernel *k, const struct wino_packing *p, int64_t chunk) {
    const struct packing *d = &k->packing;
    const int64_t subs = d->subs[0].count * d->subs[1].count * d->subs[2].count;
    const int64_t group = chunk / p->chunks, channel = chunk % p->chunks * p->chunk_units / p->subs;
    int64_t blocks = 0;
    while (blocks < d->blocks && packing_channel(d, blocks + 1) <= channel) blocks++;
    float *packed = k->packed;
    discard(packed, group * d->group_size * (int64_t)sizeof *packed);
    for (int64_t sub = 0; sub < subs && blocks > 0; sub++) {
        const int64_t rows = (d->sub_start[sub + 1] - d->sub_start[sub]) / k->problem.channels_out;
        discard(packed + group * d->group_size + d->sub_start[sub],
                rows * packing_channel(d, blocks) * (int64_t)sizeof *packed);
    }
}

/* Number of parts in which a packed filter is discarded. */
#define DISCARDED_PARTS 16

int wino_pack(const struct kernel *k, int64_t threads, int frees, struct wino_packing *p) {
    if (!k->codes) p->weights = allocate_weights(wino_weight_bytes(k, p));
    p->bias = calloc((size_t)(k->problem.groups * p->units * p->axes[2].stride) + MAX_ROWS,
                     sizeof(float));
    if ((!p->weights && !k->codes) || !p->bias || wino_scales_make(k, p)) return -1;
    if (p->points == 1) place_bias(k, p);
    if (k->codes) return 0;
    const int64_t all = k->problem.groups * p->chunks;
    const int64_t step = frees ? round_up(divide_up(all, DISCARDED_PARTS), threads) : all;
    int failed = 0;
    for (int64_t first = 0; first < all && !failed; first += step) {
        struct pack_job context = {k, p, first};
        failed = parallel_run(pack_chunk, &context, least(step, all - first), threads, 0);
        if (frees && first + step < all) discard_before(k, p, first + step);
    }
    return failed;
}
