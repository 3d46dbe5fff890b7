/* The Python type of a layer with packed weights, and the plans and weights that its runs share.
 *
 * The interpreter lock guards all these structures.
 */
#ifndef DECONV_LAYER_H
#define DECONV_LAYER_H

#include "convolution/convolution.h"
#include "direct/plan.h"
#include "python/call.h"
#include "quantized/quantized.h"
#include "winograd/winograd.h"

/* Weights transformed for Winograd, shared by plans. */
struct shared_weights {
    struct wino_packing packing;
    int references;
};

/* A plan, shared by the runs that use it. */
struct shared_plan {
    struct run run;
    struct plan plan;
    struct wino_plan winograd;
    struct shared_weights *form; /* the weights for Winograd; NULL: the run uses direct sums */
    int references;
};

/* The algorithm that was chosen for images of some extents. */
struct cached_choice {
    struct run image;
    struct wino_choice choice;
    int uses_winograd; /* whether Winograd is used, with `choice` */
};

/* Number of kept forms of transformed weights; the extents of a run determine the form it uses. */
#define KEPT_FORMS 2

typedef struct {
    PyObject_HEAD
    struct kernel k;
    int finite;
    int64_t filled; /* rows of the filter that are packed, from the first on */
    int users;      /* calls that use the packed filter without the interpreter lock */
    int frees;      /* whether the packed filter is freed when it is transformed for the first time */
    int freed;      /* whether it was */
    int pending;    /* whether a Packer has it: its weights are assumed to be fit for Winograd */
    /* Created when a run first needs them; most recently used first. */
    struct shared_weights *forms[KEPT_FORMS];
    int takes_weights; /* whether the weights can be transformed; -1: not known yet */
    struct cached_choice *cached; /* of the last extents */
    struct shared_plan *last; /* of the last run: extents mostly stay the same */
} Kernel;

/* The layer of a Python object, or NULL with an exception set. */
Kernel *kernel_of(PyObject *object);
/* The sum of two numbers below this does not overflow. */
#define MOST_SUM (INT64_C(1) << 62)
/* The product of extents, or -1 if it exceeds the size of any buffer. */
int64_t product_of(const int64_t *factors, int count);
/* Whether a buffer has this size; else an exception is set. */
int buffer_has(const Py_buffer *buffer, int64_t bytes);
/* Whether all figures of a machine, and of a problem, are possible. */
int machine_is_sane(const struct machine *machine);
int problem_is_sane(const struct problem *problem);
#define WINDOWS_BEYOND 16 /* elements of windows that vectors may read after the last */
/* Read (data, out, addend or None, dequantizer or None, windows or None, fields); without a dequantizer, `results` is
 * zero.  Returns 0, or -1 with an exception set. */
int run_of_arguments(const Kernel *self, PyObject *arguments, struct run *run, Py_buffer *in,
                     Py_buffer *result, Py_buffer *added, Py_buffer *windows,
                     struct results *results);
/* Read the fields of a run with contiguous data of this shape, [batch, Z, Y, X]; the buffer is
 * released.  Returns 0, or -1 with an exception set. */
int run_of_shape(const Kernel *self, PyObject *shape, const struct run_fields *fields,
                 struct run *run);
extern PyType_Spec kernel_spec, packer_spec;
/* The constants of the cost model, as ((name, value), ...). */
PyObject *cost_constants_table(void);
/* The method `predict`: layer/prediction.c. */
PyObject *kernel_predict(PyObject *object, PyObject *arguments);
/* Whether its weights are neither packed nor being packed. */
int kernel_is_empty(const Kernel *self);
/* Allocate memory for the packed filter, if needed.  Returns 0 or -1. */
int kernel_allocate(Kernel *self);
/* Number of rows of the filter, over all groups. */
int64_t kernel_rows(const Kernel *self);

void form_release(struct shared_weights *form);
void plan_release(struct shared_plan *shared);
/* Whether the weights of a form, or of one that differs only in its chunks, are packed. */
int weights_are_kept(const Kernel *self, const struct shared_weights *form);
/* Whether choosing an algorithm may have to read the packed weights. */
int weights_are_asked(const Kernel *self);
/* Return the plan of a run: the last one if it was for an equal run; NULL with an exception set. */
struct shared_plan *plan_acquire(Kernel *self, const struct run *run);
/* Whether runs of a plan need the packed filter, or weights that are computed from it. */
int plan_needs_filter(const struct shared_plan *shared);
/* Transform a plan's weights, and keep them.  Returns OUT_OF_MEMORY or 0. */
int plan_pack(Kernel *self, const struct shared_plan *shared);

#endif
