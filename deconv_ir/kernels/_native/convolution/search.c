/* The search for tilings, and those of the last searches: process-wide state, guarded by the
 * interpreter lock. */
#include "convolution/search.h"

#include <string.h>

void search_rate(struct search *s, const void *tiling, double *cycles) {
    *cycles = s->cost(s->k, s->run, s->plan, tiling);
    if (s->cycles < 0 || *cycles < s->cycles) s->cycles = *cycles;
    if (s->best_cycles >= 0 && *cycles >= s->best_cycles) return;
    s->best_cycles = *cycles;
    memcpy(s->best, tiling, s->tiling_bytes);
}

double search_some(struct search *s, int64_t threads, int64_t scratch_bytes) {
    s->cycles = -1;
    s->consider_all(s, threads, scratch_bytes);
    return s->cycles;
}

double search_threads(struct search *s) {
    const struct run *run = s->run;
    double best = -1;
    /* If scratch is short, fewer threads with larger tiles may be faster. */
    for (int64_t threads = run->threads; threads > 0; threads /= 2) {
        const int64_t enough = run->thread_bytes * threads;
        const double cycles = search_some(s, threads, least(run->scratch_bytes, enough));
        if (cycles < 0) continue;
        if (best >= 0 && cycles >= best) break;
        best = cycles;
        if (run->scratch_bytes >= enough) break;
    }
    return best >= 0 ? best : search_some(s, 1, run->scratch_bytes);
}

int64_t next_part(int64_t whole, int64_t part, int64_t fine) {
    const int64_t parts = divide_up(whole, part);
    const int64_t next = divide_up(whole, parts + 1 + parts / fine);
    return next < part ? next : part - 1;
}

/* Networks repeat layers, and a run needs the tiling that its plan has found. */
#define KEPT_SEARCHES 24

static struct {
    struct search_key key;
    unsigned char tiling[MOST_TILING_BYTES];
} searches[KEPT_SEARCHES];
static int next_search;

void search_key_make(const struct kernel *k, const struct run *run, const void *form,
                     size_t form_bytes, struct search_key *key) {
    memset(key, 0, sizeof *key); /* it is compared byte by byte */
    key->problem = k->problem;
    key->run = *run;
    /* Tilings do not depend on these fields. */
    key->run.image_step = key->run.channel_step = 0;
    memset(key->run.step, 0, sizeof key->run.step);
    memset(&key->run.whole, 0, sizeof key->run.whole);
    key->run.winograd = 0;
    key->form_bytes = form_bytes;
    if (form) memcpy(key->form, form, form_bytes);
}

int search_find(const struct search_key *key, void *tiling, size_t tiling_bytes) {
    for (int i = 0; i < KEPT_SEARCHES; i++)
        if (!memcmp(&searches[i].key, key, sizeof *key)) {
            memcpy(tiling, searches[i].tiling, tiling_bytes);
            return 1;
        }
    return 0;
}

void search_keep(const struct search_key *key, const void *tiling, size_t tiling_bytes) {
    searches[next_search].key = *key;
    memcpy(searches[next_search].tiling, tiling, tiling_bytes);
    next_search = (next_search + 1) % KEPT_SEARCHES;
}
