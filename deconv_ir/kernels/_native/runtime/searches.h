/* A cache of the tilings of the last searches.  Callers hold the interpreter lock. */
#ifndef DECONV_SEARCHES_H
#define DECONV_SEARCHES_H

#include "native.h"
#include "winograd/winograd.h"

/* The inputs of a search; `choice` is all zeros in a search for direct sums. */
struct search_key {
    struct layer layer;
    struct run run;
    struct wino_choice choice;
    int64_t uses_winograd;
};

void search_key_make(const struct kernel *k, const struct run *run,
                     const struct wino_choice *choice, struct search_key *key);
/* Copy the cached tiling of a key, struct tiling or struct wino_tiling; returns whether it was
 * found. */
int search_find(const struct search_key *key, void *tiling);
void search_keep(const struct search_key *key, const void *tiling);

#endif
