/* The choice of a run's algorithm, and the plans and transformed weights that runs share. */
#include "layer/layer.h"

#include <stdlib.h>
#include <string.h>

void form_release(struct shared_weights *form) {
    if (form && --form->references == 0) {
        wino_packing_free(&form->packing);
        free(form);
    }
}

void plan_release(struct shared_plan *shared) {
    if (shared && --shared->references == 0) {
        plan_free(&shared->plan);
        wino_plan_free(&shared->winograd);
        form_release(shared->form);
        free(shared);
    }
}

/* The batch for which an algorithm is chosen; that of codes, which each run unpacks, is chosen for one image. */
#define JUDGED_BATCH 4

static int may_use_winograd(const Kernel *self) {
    return self->k.problem.winograd != WINOGRAD_NEVER && self->finite && self->k.packing.group_size &&
           wino_supports(&self->k);
}

int weights_are_asked(const Kernel *self) {
    return self->takes_weights < 0 && may_use_winograd(self);
}

/* Choose between Winograd and direct sums for one run.  Returns 0 for Winograd, 1 for direct sums,
 * or OUT_OF_MEMORY. */
static int judge(Kernel *self, const struct run *judged, struct wino_choice *choice) {
    const struct problem *problem = &self->k.problem;
    const int forced = problem->winograd > WINOGRAD_BY_COST;
    const int64_t rows = problem->channels_out * self->k.packing.subs[0].count *
                         self->k.packing.subs[1].count * self->k.packing.subs[2].count;
    if (!may_use_winograd(self)) return 1;
    /* With few channels, the transforms are never faster. */
    if (!forced && least(problem->channels_in, rows) < WINO_FEWEST_CHANNELS) return 1;
    /* With one position of data, Winograd saves no products. */
    if (!forced && judged->data[0] * judged->data[1] * judged->data[2] < 2) return 1;
    double cycles;
    const int is_integer = problem_has_codes(problem);
    if (is_integer && self->takes_weights < 0) self->takes_weights = wino_takes_weights(&self->k);
    int failed = wino_choose(&self->k, judged, self->takes_weights, choice, &cycles);
    if (failed) return failed;
    struct plan direct;
    failed = plan_make(&self->k, judged, &direct);
    const int faster = forced || cycles < direct.tiling.cycles;
    plan_free(&direct);
    if (failed) return OUT_OF_MEMORY;
    if (!faster) return 1;
    if (self->pending) return 0;
    if (self->takes_weights < 0) self->takes_weights = wino_takes_weights(&self->k);
    return self->takes_weights < 0 ? OUT_OF_MEMORY : !self->takes_weights;
}

/* Choose the algorithm of a run.  Since results depend on the choice, it depends only on the
 * extents of the whole layer: not on the batch, but for integers, whose results are exact, nor on the
 * threads, the strides of the data or the scratch of the run.  Returns the same values as judge(). */
static int choose_algorithm(Kernel *self, const struct run *run, struct wino_choice *choice) {
    struct run image;
    memset(&image, 0, sizeof image); /* it is compared byte by byte */
    image.batch = problem_has_codes(&self->k.problem) ? run->batch : self->k.codes ? 1 : JUDGED_BATCH;
    for (int a = 0; a < AXES; a++) {
        image.data[a] = run->whole.data[a];
        image.output[a] = run->whole.output[a];
        image.pads_begin[a] = run->whole.pads_begin[a];
    }
    image.threads = 1;
    image.thread_bytes = run->thread_bytes;
    image.scratch_bytes = run->thread_bytes;
    image.extent = image.output[AXES - 1]; /* folded layers do not use Winograd */
    if (!self->cached || memcmp(&self->cached->image, &image, sizeof image)) {
        struct cached_choice *cached = calloc(1, sizeof *cached);
        const int failed = cached ? judge(self, &image, &cached->choice) : OUT_OF_MEMORY;
        if (failed < 0) {
            free(cached);
            return failed;
        }
        cached->image = image;
        cached->uses_winograd = !failed;
        free(self->cached);
        self->cached = cached;
    }
    *choice = self->cached->choice;
    wino_place(&self->k, run, choice);
    for (int a = 0; a < AXES; a++)
        if (run->output[a] < self->k.packing.subs[a].count) return 1;
    return !self->cached->uses_winograd;
}

/* The index of a choice's weights in `forms`, or -1.  Scratchpads have chunks of the weights of codes, and must
 * not depend on what ran before: the chunks have to agree as well. */
static int find_form(const Kernel *self, const struct wino_choice *choice) {
    for (int i = 0; i < KEPT_FORMS; i++) {
        const struct wino_choice *kept = self->forms[i] ? &self->forms[i]->packing.choice : NULL;
        if (kept && wino_choices_agree(kept, choice) && (!self->k.codes || kept->threads == choice->threads))
            return i;
    }
    return -1;
}

/* Lay out the weights of a choice, without computing them.  Returns NULL when out of memory. */
static struct shared_weights *form_make(const Kernel *self, const struct run *run,
                              struct wino_choice choice) {
    struct shared_weights *form = calloc(1, sizeof *form);
    if (!form) return NULL;
    form->references = 1;
    if (wino_arrange(&self->k, run, &choice) ||
        wino_packing_make(&self->k, &choice, &form->packing)) {
        form_release(form);
        return NULL;
    }
    return form;
}

static int form_is_packed(const struct shared_weights *form) {
    return form->packing.scales != NULL;
}

int weights_are_kept(const Kernel *self, const struct shared_weights *form) {
    const int place = find_form(self, &form->packing.choice);
    return place >= 0 && form_is_packed(self->forms[place]);
}

int plan_needs_filter(const struct shared_plan *shared) {
    return !shared->form || !shared->form->packing.weights;
}

/* Compute a form's weights.  Returns OUT_OF_MEMORY or 0. */
static int form_pack(Kernel *self, int64_t threads, struct shared_weights *form) {
    const int frees = self->frees && !self->freed && !self->users;
    /* The interpreter lock is held: other threads that need these weights wait. */
    const int failed = wino_pack(&self->k, threads, frees, &form->packing);
    if (frees) {
        free(self->k.packed);
        self->k.packed = NULL;
        self->filled = 0;
        self->freed = 1;
    }
    return failed ? OUT_OF_MEMORY : 0;
}

int plan_pack(Kernel *self, const struct shared_plan *shared) {
    struct shared_weights *form = shared->form;
    int place = 0;
    if (!form) return 0;
    if (!form_is_packed(form) && form_pack(self, shared->run.threads, form)) {
        plan_release(self->last);
        self->last = NULL;
        return OUT_OF_MEMORY;
    }
    while (place < KEPT_FORMS - 1 && self->forms[place] != form) place++;
    if (self->forms[place] != form) {
        form_release(self->forms[place]);
        form->references++;
    }
    for (int i = place; i > 0; i--) self->forms[i] = self->forms[i - 1];
    self->forms[0] = form;
    return 0;
}

/* Choose the algorithm, and plan for Winograd if it is chosen.  Returns OUT_OF_MEMORY or 0. */
static int choose_and_plan(Kernel *self, const struct run *run, struct shared_plan *shared) {
    struct wino_choice choice;
    if (!run->winograd || run->batch < 1) return 0;
    const int failed = choose_algorithm(self, run, &choice);
    if (failed) return failed < 0 ? failed : 0;
    if (self->k.codes && wino_arrange(&self->k, run, &choice)) return OUT_OF_MEMORY;
    const int place = run->winograd == WINOGRAD_JUDGED ? -1 : find_form(self, &choice);
    shared->form = place < 0 ? form_make(self, run, choice) : self->forms[place];
    if (!shared->form) return OUT_OF_MEMORY;
    if (place >= 0) shared->form->references++;
    /* A tile was found for one image, so a tile exists for any run. */
    return wino_plan_make(&self->k, run, &shared->form->packing, &shared->winograd) ? OUT_OF_MEMORY
                                                                                    : 0;
}

struct shared_plan *plan_acquire(Kernel *self, const struct run *run) {
    if (!self->last || memcmp(&self->last->run, run, sizeof *run)) {
        struct shared_plan *made = calloc(1, sizeof *made);
        if (!made) goto no_memory;
        made->references = 1;
        made->run = *run;
        if (plan_make(&self->k, run, &made->plan) || choose_and_plan(self, run, made)) {
            plan_release(made);
            goto no_memory;
        }
        plan_release(self->last);
        self->last = made;
    }
    self->last->references++;
    return self->last;
no_memory:
    PyErr_NoMemory();
    return NULL;
}
