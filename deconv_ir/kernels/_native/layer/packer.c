/* Reads and packs the filters of layers on background threads, while Python plans.
 *
 * These threads take filters from a list, as does the caller at the end.  The interpreter lock
 * guards the layers, so findings about their weights are kept in the list until then.
 */
#include "layer/layer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* More threads would wait for memory. */
#define MOST_PACKERS 3
#define LOOK_NANOSECONDS 20000000

/* The next step of Python when all filters are packed. */

struct filter {
    Kernel *kernel;
    int descriptor;
    int64_t offset;
    int found; /* result of read_rows() */
    int takes; /* see `takes_weights`; -1: not judged */
};

typedef struct {
    PyObject_HEAD
    pthread_mutex_t mutex; /* of the fields below */
    pthread_cond_t changed;
    struct filter *filters;
    int64_t count, capacity, next, busy; /* the next to be taken; those being packed */
    int closed;                      /* whether no more filters come */
    atomic_int stopped;              /* whether the remaining filters are skipped */
    int64_t most_threads;
    int threads;
    pthread_t thread[MOST_PACKERS];
    pid_t process; /* a forked child has no such threads */
} Packer;

/* Take filters and pack them.  Without `waits`, return when the list is empty. */
static void take_filters(Packer *self, int waits) {
    pthread_mutex_lock(&self->mutex);
    while (!self->stopped) {
        if (self->next == self->count) {
            if (!waits || self->closed) break;
            pthread_cond_wait(&self->changed, &self->mutex);
            continue;
        }
        const int64_t at = self->next++;
        struct filter f = self->filters[at];
        self->busy++;
        pthread_mutex_unlock(&self->mutex);
        f.found = read_rows(&f.kernel->k, f.descriptor, f.offset, 1, &self->stopped);
        pthread_mutex_lock(&self->mutex);
        self->filters[at] = f;
        self->busy--;
        if (f.found == INTERRUPTED) self->stopped = 1;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->mutex);
}

static void *work(void *packer) {
    take_filters(packer, 1);
    return NULL;
}

/* Wait until no filter is being packed, or a signal comes. */
static void wait_for_others(Packer *self) {
    pthread_mutex_lock(&self->mutex);
    while (self->busy && !self->stopped) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NANOSECONDS;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        if (!pthread_cond_timedwait(&self->changed, &self->mutex, &until)) continue;
        pthread_mutex_unlock(&self->mutex);
        if (run_is_interrupted()) self->stopped = 1;
        pthread_mutex_lock(&self->mutex);
    }
    pthread_mutex_unlock(&self->mutex);
}

/* End the threads, whose work is done. */
static void end_threads(Packer *self) {
    pthread_mutex_lock(&self->mutex);
    self->closed = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    for (int i = 0; i < self->threads; i++) pthread_join(self->thread[i], NULL);
    self->threads = 0;
}

/* Whether runs are planned with Winograd, if the weights are fit for it. */
static int needs_judgement(const struct filter *f) {
    const struct cached_choice *chosen = f->kernel->cached;
    return !f->found && chosen && chosen->uses_winograd && weights_are_asked(f->kernel);
}

/* Called with the interpreter lock, after planning: to judge all weights takes as long as packing
 * them. */
static void judge_weights(void *filters, int64_t job, void *scratch) {
    struct filter *f = (struct filter *)filters + job;
    (void)scratch;
    if (needs_judgement(f)) f->takes = wino_takes_weights(&f->kernel->k);
}

/* Store in the layer what was found about its weights. */
static enum outcome settle(const struct filter *f) {
    Kernel *kernel = f->kernel;
    const int judged = needs_judgement(f);
    if (f->found || (judged && f->takes < 0)) return PACK_AGAIN;
    kernel->filled = kernel_rows(kernel);
    kernel->takes_weights = f->takes;
    if (!judged || f->takes) return AS_PLANNED;
    plan_release(kernel->last);
    kernel->last = NULL;
    free(kernel->cached);
    kernel->cached = NULL;
    return PLAN_AGAIN;
}

/* Release all layers. */
static void release_filters(Packer *self) {
    for (int64_t i = 0; i < self->count; i++) {
        self->filters[i].kernel->pending = 0;
        self->filters[i].kernel->users--;
        Py_DECREF((PyObject *)self->filters[i].kernel);
    }
    free(self->filters);
    self->filters = NULL;
    self->count = self->capacity = self->next = 0;
}

static PyObject *packer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    long long threads;
    if (!PyArg_ParseTuple(arguments, "L", &threads)) return NULL;
    Packer *self = (Packer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, NULL);
    self->most_threads = least(threads - 1, MOST_PACKERS);
    self->process = getpid();
    return (PyObject *)self;
}

static void packer_dealloc(PyObject *object) {
    Packer *self = (Packer *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->process == getpid()) {
        self->stopped = 1;
        end_threads(self);
        release_filters(self);
        pthread_cond_destroy(&self->changed);
        pthread_mutex_destroy(&self->mutex);
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int append(Packer *self, struct filter filter) {
    pthread_mutex_lock(&self->mutex);
    if (self->count == self->capacity) {
        const int64_t capacity = 2 * self->capacity + 16;
        struct filter *filters = realloc(self->filters, (size_t)capacity * sizeof *filters);
        if (filters) self->filters = filters, self->capacity = capacity;
    }
    const int fits = self->count < self->capacity;
    if (fits) self->filters[self->count++] = filter;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    return fits ? 0 : OUT_OF_MEMORY;
}

/* add(kernel, descriptor, offset): add a filter to be read from a file and packed; False if that is
 * not possible, as without threads. */
static PyObject *packer_add(PyObject *object, PyObject *arguments) {
    Packer *self = (Packer *)object;
    PyObject *problem;
    int descriptor;
    long long offset;
    if (!PyArg_ParseTuple(arguments, "OiL", &problem, &descriptor, &offset)) return NULL;
    Kernel *kernel = kernel_of(problem);
    if (!kernel) return NULL;
    if (self->closed || self->process != getpid() || !kernel_is_empty(kernel) || offset < 0 ||
        offset > INT64_MAX / 2)
        Py_RETURN_FALSE;
    if (self->threads < self->most_threads && self->count >= self->threads &&
        !pthread_create(&self->thread[self->threads], NULL, work, self))
        self->threads++;
    if (!self->threads) Py_RETURN_FALSE;
    const struct filter filter = {kernel, descriptor, offset, 0, -1};
    if (kernel_allocate(kernel)) return PyErr_NoMemory();
    kernel->pending = 1;
    kernel->users++;
    Py_INCREF(problem);
    if (append(self, filter)) {
        kernel->pending = 0;
        kernel->users--;
        Py_DECREF(problem);
        return PyErr_NoMemory();
    }
    Py_RETURN_TRUE;
}

/* finish() -> 0: all filters are packed; 1: some layers cannot use Winograd as was assumed; 2: some
 * filters are not packed, or not finite. */
static PyObject *packer_finish(PyObject *object, PyObject *unused) {
    (void)unused;
    Packer *self = (Packer *)object;
    enum outcome outcome = AS_PLANNED;
    if (self->process != getpid()) return PyLong_FromLong(PACK_AGAIN);
    begin_unlocked();
    take_filters(self, 0);
    wait_for_others(self);
    end_threads(self);
    end_unlocked();
    if (!self->stopped)
        parallel_run(judge_weights, self->filters, self->count, self->most_threads + 1, 0);
    for (int64_t i = 0; i < self->count && !self->stopped; i++) {
        const enum outcome found = settle(&self->filters[i]);
        outcome = found > outcome ? found : outcome;
    }
    release_filters(self);
    if (self->stopped) return NULL;
    return PyLong_FromLong(outcome);
}

static PyMethodDef packer_methods[] = {
    {"add", packer_add, METH_VARARGS,
     "add(kernel, descriptor, offset) -> bool: have a filter read from a file and packed, unless "
     "there is no thread for it"},
    {"finish", packer_finish, METH_NOARGS,
     "finish() -> int: wait until all are packed.  1: layers cannot use Winograd where that was "
     "assumed; 2: filters could not be read, or are not finite"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot packer_slots[] = {
    {Py_tp_doc, "Packer(threads): packs filters while other work goes on."},
    {Py_tp_new, packer_new},
    {Py_tp_dealloc, packer_dealloc},
    {Py_tp_methods, packer_methods},
    {0, NULL},
};

PyType_Spec packer_spec = {
    .name = "deconv_ir.kernels._compiled.Packer",
    .basicsize = sizeof(Packer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = packer_slots,
};
