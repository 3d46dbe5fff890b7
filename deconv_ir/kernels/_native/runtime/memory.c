/* Memory in huge pages, and the pool of blocks for large results: a block is reused after its last
 * owner has freed it.
 *
 * The system finds, clears and maps a fresh page before it is written to.  For results that are
 * too large for the allocator to reuse, that takes as long as computing them.  The interpreter lock
 * guards the pool.
 */
#include "runtime/memory.h"

#include "runtime/arithmetic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_BLOCKS 64
#define SMALL_PAGE 4096
/* Smaller blocks would waste much of their last huge page. */
#define HUGE_BLOCK ((int64_t)8 << 20)

static int64_t kept_bytes = (int64_t)192 << 20; /* maximum of the free blocks */
static int64_t all_bytes = INT64_MAX;           /* maximum of free blocks and blocks in use */
static int64_t used_bytes;                      /* of blocks in use */

/* The free blocks: empty slots first, then blocks from the oldest to the newest. */
static struct {
    void *memory;
    int64_t bytes;
} kept[KEPT_BLOCKS];

void *allocate_huge(int64_t bytes) {
    /* A smaller block would be mostly padding in a huge page. */
    const int64_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : CACHE_LINE;
    void *block = NULL;
    if (posix_memalign(&block, (size_t)page, (size_t)round_up(bytes, CACHE_LINE))) return NULL;
#ifdef MADV_HUGEPAGE
    /* The end, which does not fill a huge page, stays in small pages. */
    if (page == HUGE_PAGE) madvise(block, (size_t)(bytes / page * page), MADV_HUGEPAGE);
#endif
    return block;
}

void *allocate_weights(int64_t bytes) {
    const int64_t slack = WEIGHTS_AHEAD + BEYOND_WEIGHTS;
    char *block = allocate_huge(bytes + slack);
    if (block) memset(block + bytes, 0, (size_t)slack);
    return block;
}

void discard(void *memory, int64_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)memory + (uintptr_t)bytes) / page * page;
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static void *take_out(int slot) {
    void *memory = kept[slot].memory;
    for (; slot > 0; slot--) kept[slot] = kept[slot - 1];
    kept[0].memory = NULL;
    kept[0].bytes = 0;
    return memory;
}

/* Free the oldest blocks until at most `most_kept` bytes remain. */
static void trim(int64_t most_kept) {
    int64_t total = 0;
    for (int i = 0; i < KEPT_BLOCKS; i++) total += kept[i].bytes;
    for (int i = 0; i < KEPT_BLOCKS && total > most_kept; i++) {
        total -= kept[i].bytes;
        free(take_out(i));
    }
}

/* Take the smallest block that fits without wasting half of its size; among equal ones the newest,
 * which is in cache. */
static void *take(int64_t bytes, int64_t *allocated) {
    int best = -1;
    for (int i = 0; i < KEPT_BLOCKS; i++)
        if (kept[i].memory && kept[i].bytes >= bytes && kept[i].bytes / 2 <= bytes &&
            (best < 0 || kept[i].bytes <= kept[best].bytes))
            best = i;
    if (best < 0) {
        *allocated = round_up(bytes, bytes >= HUGE_BLOCK ? HUGE_PAGE : SMALL_PAGE);
        trim(all_bytes - used_bytes - *allocated);
        if (bytes >= HUGE_BLOCK) return allocate_huge(*allocated);
        void *memory = NULL;
        return posix_memalign(&memory, SMALL_PAGE, (size_t)*allocated) ? NULL : memory;
    }
    *allocated = kept[best].bytes;
    return take_out(best);
}

void *take_block(int64_t bytes, int64_t *allocated) {
    void *memory = take(bytes, allocated);
    if (memory) used_bytes += *allocated;
    return memory;
}

/* Return a block to the pool, within its bounds. */
void give_block(void *memory, int64_t allocated) {
    used_bytes -= allocated;
    const int64_t most_kept = least(kept_bytes, all_bytes - used_bytes);
    if (allocated > most_kept) {
        free(memory);
        return;
    }
    trim(most_kept - allocated);
    free(take_out(0));
    for (int i = 0; i + 1 < KEPT_BLOCKS; i++) kept[i] = kept[i + 1];
    kept[KEPT_BLOCKS - 1].memory = memory;
    kept[KEPT_BLOCKS - 1].bytes = allocated;
}

void keep_blocks(int64_t most_kept, int64_t most_in_all) {
    kept_bytes = most_kept;
    all_bytes = most_in_all;
    for (int i = 0; i < KEPT_BLOCKS; i++) free(take_out(KEPT_BLOCKS - 1));
}
