/* Predictions of the cost model with other constants, for tools/fit_costs.py. */
#include "layer/layer.h"

#include "convolution/costs.h"

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
    return direct_cycles(k, &run, &shared->plan, &shared->plan.tiling);
}

PyObject *kernel_predict(PyObject *object, PyObject *arguments) {
    Kernel *self = (Kernel *)object;
    struct run run;
    PyObject *given[3];
    struct predict_fields f;
    struct run_fields fields;
    double costs[COST_CONSTANTS];
    if (take_call(arguments, 3, given, &f, sizeof f) ||
        take_fields(given[1], &fields, sizeof fields) ||
        take_fields(given[2], costs, sizeof costs))
        return NULL;
    const struct machine machine = {f.level2_bytes, f.sure_level2_bytes, f.level3_bytes,
                                    f.multiply_adds};
    int good = machine_is_sane(&machine);
    for (int i = 0; good && i < COST_CONSTANTS; i++) good = costs[i] > 0;
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "no such machine or constants");
        return NULL;
    }
    if (run_of_shape(self, given[0], &fields, &run)) return NULL;
    if (run.winograd && !self->pending && self->filled < kernel_rows(self) &&
        weights_are_asked(self)) {
        PyErr_SetString(PyExc_ValueError, "the filter is not packed");
        return NULL;
    }
    struct shared_plan *shared = plan_acquire(self, &run);
    if (!shared) return NULL;
    struct kernel k = self->k;
    k.problem.machine = machine;
    exchange_cost_constants(costs);
    const double cycles = plan_cycles(&k, shared);
    exchange_cost_constants(costs);
    plan_release(shared);
    return PyFloat_FromDouble(cycles);
}
