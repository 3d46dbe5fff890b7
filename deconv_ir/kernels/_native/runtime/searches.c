/* The tilings of the last searches: process-wide state, guarded by the interpreter lock. */
#include "runtime/searches.h"

#include <string.h>

/* Networks repeat layers, and a run needs the tiling that its plan has found. */
#define KEPT_SEARCHES 24

static struct {
    struct search_key key;
    union {
        struct tiling direct;
        struct wino_tiling winograd;
    } tiling;
} searches[KEPT_SEARCHES];
static int next_search;

void search_key_make(const struct kernel *k, const struct run *run,
                     const struct wino_choice *choice, struct search_key *key) {
    memset(key, 0, sizeof *key); /* it is compared byte by byte */
    key->layer = k->layer;
    key->run = *run;
    /* Tilings do not depend on these fields. */
    key->run.image_step = key->run.channel_step = 0;
    memset(key->run.step, 0, sizeof key->run.step);
    memset(&key->run.whole, 0, sizeof key->run.whole);
    key->run.winograd = 0;
    key->uses_winograd = choice != NULL;
    if (choice) memcpy(&key->choice, choice, sizeof *choice);
}

static size_t tiling_size(const struct search_key *key) {
    return key->uses_winograd ? sizeof(struct wino_tiling) : sizeof(struct tiling);
}

int search_find(const struct search_key *key, void *tiling) {
    for (int i = 0; i < KEPT_SEARCHES; i++)
        if (!memcmp(&searches[i].key, key, sizeof *key)) {
            memcpy(tiling, &searches[i].tiling, tiling_size(key));
            return 1;
        }
    return 0;
}

void search_keep(const struct search_key *key, const void *tiling) {
    searches[next_search].key = *key;
    memcpy(&searches[next_search].tiling, tiling, tiling_size(key));
    next_search = (next_search + 1) % KEPT_SEARCHES;
}
