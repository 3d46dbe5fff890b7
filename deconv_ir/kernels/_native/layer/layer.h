/* The Python type of a layer with its weights, and the plans and weights that its runs share.
 *
 * The interpreter lock guards all of it.
 */
#ifndef DECONV_LAYER_H
#define DECONV_LAYER_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "native.h"
#include "winograd/winograd.h"

/* Weights for Winograd; like a plan, shared by those who use it under the interpreter
 * lock. */
struct form {
    struct wino_packing packing;
    int references;
};

/* A plan is shared by the runs that use it; the interpreter lock guards it. */
struct shared_plan {
    struct run run;
    struct plan plan;
    struct wino_plan winograd;
    struct form *form; /* the weights of the latter, or NULL: the run goes the direct way */
    int references;
};

/* What was chosen for images of some extents. */
struct verdict {
    struct run image;
    struct wino_choice choice;
    int filtered;
};

/* Forms that are kept: which one a run takes depends on its extents. */
#define KEPT_FORMS 2

typedef struct {
    PyObject_HEAD
    struct kernel k;
    int finite;
    int64_t filled; /* rows of the filter that are packed, from the first on */
    int users;      /* calls that use the packed weights without the interpreter lock */
    /* Weights for Winograd, made when a run first needs them: the last used first. */
    struct form *forms[KEPT_FORMS];
    int takes_weights; /* whether these can be transformed; -1: not known yet */
    struct verdict *verdict; /* the last one */
    struct shared_plan *last; /* extents mostly stay the same */
} Kernel;

void form_release(struct form *form);
void plan_release(struct shared_plan *shared);
/* Whether all that runs need of a form is there. */
int form_is_packed(const struct form *form);
/* Whether a plan may have to look at packed weights. */
int weights_are_asked(const Kernel *self);
/* The plan of a run: the last one if it was for the same.  With `pack`, its weights are there.
 * Returns NULL with an exception set. */
struct shared_plan *plan_acquire(Kernel *self, const struct run *run, int pack);

#endif
