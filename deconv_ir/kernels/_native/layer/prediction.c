/* Predictions of the cost model with other constants, for tools/fit_costs.py. */
#include "layer/layer.h"

#include "cost_model.h"

#include <string.h>

PyObject *cost_constants_table(void) {
    PyObject *table = PyTuple_New(COST_CONSTANTS);
    for (int i = 0; table && i < COST_CONSTANTS; i++) {
        double value;
        const char *name = cost_constant(i, &value);
        PyObject *entry = Py_BuildValue("(sd)", name, value);
        if (!entry || PyTuple_SetItem(table, i, entry)) Py_CLEAR(table);
    }
    return table;
}

static double plan_cycles(const struct kernel *k, const struct shared_plan *shared) {
    const struct wino_plan *winograd = &shared->winograd;
    if (shared->form) return wino_cycles(k, &shared->run, winograd, &winograd->tiling);
    const struct run run = join_axes(k, &shared->run);
    const struct tiling *t = &shared->plan.tiling;
    if (!t->one_position) return direct_cycles(k, &run, &shared->plan, t);
    return scheduled_cycles((double)run.batch * one_position_cycles(k) * (double)t->blocks,
                            t->jobs, t->threads);
}

PyObject *kernel_predict(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    struct run run;
    Py_buffer packed, given;
    long long shape[1 + AXES], level2, level3;
    double multiply_adds, costs[COST_CONSTANTS];
    if (!PyArg_ParseTuple(arguments, "(LLLL)y*LLdy*", &shape[0], &shape[1], &shape[2], &shape[3],
                          &packed, &level2, &level3, &multiply_adds, &given))
        return NULL;
    int good = given.len == (Py_ssize_t)sizeof costs;
    if (good) memcpy(costs, given.buf, sizeof costs);
    PyBuffer_Release(&given);
    for (int i = 0; good && i < COST_CONSTANTS; i++) good = costs[i] > 0;
    if (!good || level2 < 1 || level3 < 1 || !(multiply_adds > 0)) {
        PyBuffer_Release(&packed);
        PyErr_SetString(PyExc_ValueError, "no such machine or constants");
        return NULL;
    }
    if (run_of_shape(self, shape, &packed, &run)) return NULL;
    if (run.winograd && !self->pending && self->filled < kernel_rows(self) &&
        weights_are_asked(self)) {
        PyErr_SetString(PyExc_ValueError, "the filter is not packed");
        return NULL;
    }
    struct shared_plan *shared = plan_acquire(self, &run, 0);
    if (!shared) return NULL;
    struct kernel k = self->k;
    k.layer.machine = (struct machine){level2, level3, multiply_adds};
    exchange_cost_constants(costs);
    const double cycles = plan_cycles(&k, shared);
    exchange_cost_constants(costs);
    plan_release(shared);
    return PyFloat_FromDouble(cycles);
}
