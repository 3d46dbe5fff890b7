/* TopK of few elements, in f32: rows, or vectors of positions if the axis is not the last. */
#include "selection/selection.h"

#include "simd/ranks.h"

/* Elements of a job, and minimum number of elements per thread. */
#define JOB_ELEMENTS 16384
#define LEAST_SHARED 32768

struct selection_run {
    struct selection selection;
    const struct selection_functions *functions;
    const float *data;
    float *values;
    char *indices;
    int64_t size; /* bytes of an index */
    int64_t groups, groups_of_plane, groups_of_job; /* of positions that are selected together */
};

static void sort_places(int32_t *places, int64_t count, int64_t step) {
    for (int64_t i = 1; i < count; i++) {
        const int32_t place = places[i * step];
        int64_t at = i;
        for (; at > 0 && places[(at - 1) * step] > place; at--)
            places[at * step] = places[(at - 1) * step];
        places[at * step] = place;
    }
}

/* Write the selected elements of one position, which lie `step` apart in `places`. */
static void write_selected(const struct selection_run *s, int64_t from, int64_t to, int32_t *places,
                           int64_t step) {
    const struct selection *p = &s->selection;
    if (p->by_index) sort_places(places, p->count, step);
    for (int64_t i = 0; i < p->count; i++, to += p->inner) {
        const int32_t place = places[i * step];
        s->values[to] = s->data[from + place * p->inner];
        if (s->size == 4) ((int32_t *)(void *)s->indices)[to] = place;
        else ((int64_t *)(void *)s->indices)[to] = place;
    }
}

static void do_job(void *context, int64_t job, void *scratch) {
    const struct selection_run *s = context;
    const struct selection *p = &s->selection;
    const int64_t lanes = p->inner == 1 ? 1 : s->functions->lanes;
    const int64_t first = job * s->groups_of_job;
    int32_t *places = scratch;
    for (int64_t group = first; group < least(s->groups, first + s->groups_of_job); group++) {
        const int64_t plane = group / s->groups_of_plane;
        const int64_t begin = group % s->groups_of_plane * lanes;
        const int64_t positions = least(lanes, p->inner - begin);
        const int64_t from = plane * p->extent * p->inner + begin;
        const int64_t to = plane * p->count * p->inner + begin;
        if (p->inner == 1) s->functions->of_row(p, s->data + from, places);
        else s->functions->of_positions(p, s->data + from, positions, places);
        for (int64_t i = 0; i < positions; i++)
            write_selected(s, from + i, to + i, places + i, lanes);
    }
}

static int take(struct selection_run *s, const Py_buffer *buffers) {
    const Py_buffer *data = buffers, *values = buffers + 1, *indices = buffers + 2;
    for (int i = 0; i < 3; i++)
        if (buffers[i].ndim != 3 || buffers[i].len == 0 || buffers[i].shape[0] != data->shape[0] ||
            buffers[i].shape[2] != data->shape[2])
            return 0;
    s->selection.extent = data->shape[1], s->selection.inner = data->shape[2];
    s->selection.count = values->shape[1];
    s->size = indices->itemsize;
    s->data = data->buf, s->values = values->buf, s->indices = indices->buf;
    return data->itemsize == 4 && values->itemsize == 4 && (s->size == 4 || s->size == 8) &&
           indices->shape[1] == values->shape[1] && s->selection.count <= MOST_SELECTED &&
           s->selection.count <= s->selection.extent && s->selection.extent <= INT32_MAX;
}

/* data and values in f32, indices in i32 or i64 */
PyObject *module_select(PyObject *module, PyObject *arguments) {
    (void)module;
    int failed = -1;
    PyObject *given[3];
    struct select_fields f;
    if (take_call(arguments, 3, given, &f, sizeof f)) return NULL;
    struct selection_run s = {
        .selection = {.flip = f.smallest ? -1 : 0, .by_index = f.by_index != 0}};
    Py_buffer buffers[3] = {0};
    if (take_arrays(given, 3, 1 << 1 | 1 << 2, buffers) && isa_available(f.isa) &&
        take(&s, buffers)) {
        s.functions = BY_ISA(f.isa, &functions_selection);
        const int64_t elements = buffers[0].len / 4;
        const int64_t lanes = s.selection.inner == 1 ? 1 : s.functions->lanes;
        s.groups_of_plane = divide_up(s.selection.inner, lanes);
        s.groups = buffers[0].shape[0] * s.groups_of_plane;
        s.groups_of_job = most(1, JOB_ELEMENTS / lanes / s.selection.extent);
        failed = run_unlocked(do_job, &s, divide_up(s.groups, s.groups_of_job),
                              least(f.threads, elements / LEAST_SHARED),
                              MOST_SELECTED * MOST_SELECTION_LANES * (int64_t)sizeof(int32_t));
    }
    return release_all(failed, buffers, 3);
}
