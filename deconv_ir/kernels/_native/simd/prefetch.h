/* Prefetches of rows. */
#ifndef DECONV_PREFETCH_H
#define DECONV_PREFETCH_H

#include <stdint.h>

#include "runtime/memory.h"

/* Prefetch the row `ahead` bytes after a row, such as that of the next channel, which the hardware
 * prefetchers do not predict. */
static inline void fetch_row(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t at = (uintptr_t)row + (uintptr_t)ahead;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)i));
}

/* Rows of results between the one that is written and the one that is prefetched for writing. */
#define ROWS_AHEAD 4

/* Prefetch the ends of the row of results `ahead` bytes after a row: cache lines that rows share
 * are stored as usual, and each store would wait for its line. */
static inline void fetch_ends(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t begin = (uintptr_t)row + (uintptr_t)ahead, end = begin + (uintptr_t)bytes;
    if (begin % CACHE_LINE) __builtin_prefetch((const void *)begin, 1);
    if (end % CACHE_LINE) __builtin_prefetch((const void *)end, 1);
}

/* Prefetch the whole row of results `ahead` bytes after a row, for ordinary stores. */
static inline void fetch_results(const char *row, int64_t ahead, int64_t bytes) {
    const uintptr_t begin = (uintptr_t)row + (uintptr_t)ahead;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch((const char *)begin + i, 1);
}

#endif
