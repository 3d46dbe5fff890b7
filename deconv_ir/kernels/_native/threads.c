/* Workers: one pool a process, started when first needed.
 *
 * BLAS libraries bring pools of their own; ours is separate so that tiles of
 * any size can be handed out one by one, and so that the workers go to sleep
 * soon: a spinning worker halves the speed of whatever comes next.
 */
#define _GNU_SOURCE /* affinities */
#include "native.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST_WORKERS (MOST_THREADS - 1)
/* Scratch that a thread keeps between runs: page faults would cost more than
 * small layers take. */
#define KEPT_BYTES ((int64_t)8 << 20)
/* How long a worker looks out for more work before it sleeps: as long as waking it takes, and
 * as what Python does between two layers. */
#define SPIN_NANOSECONDS 200000

struct pool {
    pthread_mutex_t gate;  /* held by the thread whose jobs the pool runs */
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t wake;
    pthread_t threads[MOST_WORKERS];
    int workers, placed; /* started; of these, kept off `caller` */
    int caller;          /* the core of the last caller */
    atomic_llong generation;
    /* The present run. */
    job_function function;
    void *context;
    int64_t count, scratch_bytes;
    atomic_llong next;
    atomic_int open;    /* whether it is not over yet */
    atomic_int places;  /* workers that may still join */
    atomic_int running; /* workers that have joined and not left */
    atomic_int failed;
};

static struct pool pool = {
    .gate = PTHREAD_MUTEX_INITIALIZER,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
};

static _Thread_local void *kept;
static _Thread_local int64_t kept_bytes;
/* What of its beginning the jobs of this thread's next runs share. */
static _Thread_local int64_t shared_bytes;

static pthread_key_t kept_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork(void) {
    /* The workers did not come along; start anew. */
    pool.workers = pool.placed = 0;
    pool.generation = 0;
    pool.open = 0;
    pool.running = 0;
    pthread_mutex_init(&pool.gate, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.wake, NULL);
}

static void initialise(void) {
    pthread_key_create(&kept_key, free); /* frees what a thread keeps when it ends */
    pthread_atfork(NULL, NULL, after_fork);
}

void *allocate_huge(int64_t bytes) {
    /* Smaller ones would be more padding than contents. */
    const int64_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    void *block = NULL;
    if (posix_memalign(&block, (size_t)page, (size_t)round_up(bytes, LINE))) return NULL;
#ifdef MADV_HUGEPAGE
    /* What does not fill the last one lies in small ones. */
    if (page == HUGE_PAGE) madvise(block, (size_t)(bytes / page * page), MADV_HUGEPAGE);
#endif
    return block;
}

/* Scratch behind what is shared. */
static void *scratch_of_thread(int64_t bytes) {
    if (shared_bytes + bytes <= kept_bytes) return (char *)kept + shared_bytes;
    void *block = allocate_huge(bytes);
    if (!block) return NULL;
    free(kept);
    kept = block;
    kept_bytes = bytes;
    pthread_setspecific(kept_key, block);
    return block;
}

static void release_scratch(void) {
    if (shared_bytes > 0 || kept_bytes <= KEPT_BYTES) return;
    free(kept);
    kept = NULL;
    kept_bytes = 0;
    pthread_setspecific(kept_key, NULL);
}

void *take_shared(int64_t bytes, int64_t scratch_bytes) {
    pthread_once(&once, initialise);
    bytes = round_up(bytes, LINE);
    void *block = scratch_of_thread(bytes + scratch_bytes);
    if (block) shared_bytes = bytes;
    return block;
}

void give_shared(void) {
    shared_bytes = 0;
    release_scratch();
}

static void take_jobs(job_function function, void *context, int64_t count,
                      int64_t scratch_bytes) {
    void *scratch = scratch_bytes ? scratch_of_thread(scratch_bytes) : NULL;
    if (scratch_bytes && !scratch) {
        pool.failed = 1;
        return;
    }
    int64_t job;
    while ((job = atomic_fetch_add(&pool.next, 1)) < count) function(context, job, scratch);
    release_scratch();
}

static void pause_briefly(void) {
#ifdef DECONV_X86
    __builtin_ia32_pause();
#endif
}

/* Wait for other threads, which may need this one's core when there are more than cores. */
static void wait_briefly(int64_t waited) {
    if (waited < 1 << 14) pause_briefly();
    else sched_yield();
}

static int64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *work(void *unused) {
    (void)unused;
    long long seen = 0;
    int joined = 0;
    for (;;) {
        /* Who has no more jobs stays awake until the others are done: asleep, it would miss
         * most of the next run. */
        for (int64_t i = 0; joined && pool.open && pool.generation == seen; i++) wait_briefly(i);
        const int64_t until = nanoseconds() + SPIN_NANOSECONDS;
        while (pool.generation == seen && nanoseconds() < until)
            for (int i = 0; i < 32; i++) pause_briefly();
        if (pool.generation == seen) {
            pthread_mutex_lock(&pool.mutex);
            while (pool.generation == seen) pthread_cond_wait(&pool.wake, &pool.mutex);
            pthread_mutex_unlock(&pool.mutex);
        }
        /* `running` is raised before a place is taken, so that the run cannot
         * end between the two. */
        atomic_fetch_add(&pool.running, 1);
        seen = pool.generation;
        joined = atomic_fetch_sub(&pool.places, 1) > 0;
        if (joined) take_jobs(pool.function, pool.context, pool.count, pool.scratch_bytes);
        atomic_fetch_sub(&pool.running, 1);
    }
    return NULL;
}

/* Have at least `count` workers, or as many as can be had. */
static void start_workers(int count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.workers < count && pool.workers < MOST_WORKERS) {
        if (pthread_create(&pool.threads[pool.workers], &attributes, work, NULL)) break;
        pool.workers++;
    }
    pthread_attr_destroy(&attributes);
}

/* Keep the workers off the caller's core.  The kernel likes to wake a thread
 * where its waker runs, and takes milliseconds to notice that this was no good
 * idea; small layers would be over by then, computed by one core. */
static void place_workers(void) {
#ifdef __linux__
    const int caller = sched_getcpu();
    if (caller < 0 || (caller == pool.caller && pool.placed == pool.workers)) return;
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) || CPU_COUNT(&cores) < 2) return;
    CPU_CLR(caller, &cores);
    for (int i = 0; i < pool.workers; i++)
        pthread_setaffinity_np(pool.threads[i], sizeof cores, &cores);
    pool.caller = caller;
    pool.placed = pool.workers;
#endif
}

static int run_alone(job_function function, void *context, int64_t count,
                     int64_t scratch_bytes) {
    void *scratch = scratch_bytes ? scratch_of_thread(scratch_bytes) : NULL;
    if (scratch_bytes && !scratch) return -1;
    for (int64_t job = 0; job < count; job++) function(context, job, scratch);
    release_scratch();
    return 0;
}

int parallel_run(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes) {
    pthread_once(&once, initialise);
    const int helpers = (int)least(least(threads, count) - 1, MOST_WORKERS);
    /* Someone else's run has the pool: do not wait, the machine is busy anyway. */
    if (helpers < 1 || pthread_mutex_trylock(&pool.gate))
        return run_alone(function, context, count, scratch_bytes);
    start_workers(helpers);
    place_workers();
    pool.function = function;
    pool.context = context;
    pool.count = count;
    pool.scratch_bytes = scratch_bytes;
    pool.failed = 0;
    pool.next = 0;
    pool.places = helpers;
    pool.open = 1;
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.generation, 1);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);
    take_jobs(function, context, count, scratch_bytes);
    /* Nobody may join any more; wait for those who have. */
    atomic_fetch_sub(&pool.places, helpers + MOST_WORKERS);
    for (int64_t i = 0; pool.running > 0; i++) wait_briefly(i);
    pool.open = 0;
    const int failed = pool.failed;
    pthread_mutex_unlock(&pool.gate);
    return failed ? -1 : 0;
}

int64_t second_level_cache(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes > 0) return bytes;
#endif
    return 256 << 10;
}
