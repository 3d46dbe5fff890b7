/* Memory: huge pages, weights, and the pool of blocks for large results. */
#ifndef DECONV_MEMORY_H
#define DECONV_MEMORY_H

#include <stdint.h>

#define CACHE_LINE 64 /* bytes */

/* Allocate memory, to be freed with free(); in huge pages if it is large, since a data block spans
 * more small pages than the TLB holds. */
#define HUGE_PAGE ((int64_t)2 << 20)
void *allocate_huge(int64_t bytes);

/* Distance in bytes at which micro-kernels prefetch weights: a page, where the hardware prefetcher
 * stops. */
#define WEIGHTS_AHEAD 4096
static inline const void *weights_ahead(const void *weights) {
    return (const char *)weights + WEIGHTS_AHEAD;
}
/* Bytes after the last weight that vectors may read. */
#define BEYOND_WEIGHTS 512

/* The same for weights, with cleared bytes after them: vectors may read a little past the last
 * weight, and each prefetch of a page that is not mapped walks the page table. */
void *allocate_weights(int64_t bytes);

/* Return the whole pages of a part of a block to the system; the contents are lost. */
void discard(void *memory, int64_t bytes);

/* Take a block of at least `bytes` from the pool, and return it.  The interpreter lock guards the
 * pool.  Returns NULL when out of memory. */
void *take_block(int64_t bytes, int64_t *allocated);
void give_block(void *memory, int64_t allocated);
/* Set the bounds of the memory pool for results, on free blocks and on all, and free its blocks. */
void keep_blocks(int64_t most_kept, int64_t most_in_all);

#endif
