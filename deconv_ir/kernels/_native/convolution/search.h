/* The search for the tiling of the fewest cycles, and a cache of the last ones.  Callers hold the
 * interpreter lock. */
#ifndef DECONV_SEARCH_H
#define DECONV_SEARCH_H

#include "convolution/convolution.h"

#include <stddef.h>

/* The cost function of an algorithm: the predicted cycles of a run with a plan and a tiling of this
 * algorithm.  Those of two algorithms can be compared. */
typedef double (*cost_function)(const struct kernel *k, const struct run *run, const void *plan,
                                const void *tiling);

/* A search: the first field of a struct that `consider_all` needs. */
struct search {
    const struct kernel *k;
    const struct run *run;
    const void *plan;
    cost_function cost;
    /* Call search_rate() for tilings of threads that together have `scratch_bytes`. */
    void (*consider_all)(struct search *search, int64_t threads, int64_t scratch_bytes);
    void *best; /* the best tiling of all */
    size_t tiling_bytes;
    double best_cycles; /* of it; negative: none fits so far */
    double cycles;      /* of the best for the current threads; negative: none fits so far */
};

/* Predict the `cycles` of a tiling, a field of it, and keep the tiling if it is the best. */
void search_rate(struct search *search, const void *tiling, double *cycles);
/* Search with some threads.  Returns the cycles of the best tiling for them, or a negative number
 * if none fits. */
double search_some(struct search *search, int64_t threads, int64_t scratch_bytes);
/* Search with the threads of the run, and with fewer threads if scratch is short. */
double search_threads(struct search *search);

/* The next smaller extent of a tile for a search: one more part at first, several beyond `fine`
 * parts. */
int64_t next_part(int64_t whole, int64_t part, int64_t fine);

/* Bytes that the cache has for a tiling, and for the form of an algorithm's weights. */
#define MOST_TILING_BYTES 512
#define MOST_FORM_BYTES 96

/* The inputs of a search; the form is all zeros for direct sums, which have one. */
struct search_key {
    struct problem problem;
    struct run run;
    unsigned char form[MOST_FORM_BYTES];
    size_t form_bytes;
};

void search_key_make(const struct kernel *k, const struct run *run, const void *form,
                     size_t form_bytes, struct search_key *key);
/* Copy the cached tiling of a key; returns whether it was found. */
int search_find(const struct search_key *key, void *tiling, size_t tiling_bytes);
void search_keep(const struct search_key *key, const void *tiling, size_t tiling_bytes);

#endif
