/* The thread pool: one per process, started on first use.
 *
 * BLAS libraries have their own pools.  This pool distributes tiles of any size one by one, and its
 * workers soon go to sleep: a spinning worker halves the speed of the next computation.
 */
#define _GNU_SOURCE /* affinities */
#include "runtime/threads.h"

#include "runtime/arithmetic.h"
#include "runtime/cpu.h"
#include "runtime/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_WORKERS (MOST_THREADS - 1)
/* Scratch that a thread keeps between runs: page faults would take longer than small layers. */
#define KEPT_BYTES ((int64_t)8 << 20)
/* Time for which a worker spins before it sleeps: about the time of waking it, and of Python's work
 * between two layers. */
#define SPIN_NANOSECONDS 200000
/* Interval at which a run checks for signals. */
#define SIGNAL_NANOSECONDS 50000000
/* Number of pauses after which a waiting caller checks whether workers run, and a thread yields. */
#define LOOK_PAUSES 1024
#define MOST_PAUSES (1 << 14)

/* A thread in a run, and the pieces of its current job, which other threads steal after the last
 * job has begun. */
struct job_pieces {
    job_function function;
    void *context;
    int64_t count;
    atomic_llong next;
    atomic_int open;    /* whether the fields above may be read */
    atomic_int helpers; /* threads that read them */
    atomic_int working; /* whether the thread has joined the run */
} __attribute__((aligned(2 * CACHE_LINE)));

/* The jobs of a thread, which others steal when theirs are done.  A thread gets the same part of
 * the jobs in every layer, so that its caches hold most of the input of the next one. */
struct thread_jobs {
    atomic_llong next;
    int64_t end;
} __attribute__((aligned(2 * CACHE_LINE)));

struct pool {
    pthread_mutex_t gate;  /* held by the thread whose jobs the pool runs */
    pthread_mutex_t mutex; /* of the fields below */
    pthread_cond_t wake;
    pthread_t threads[MOST_WORKERS];
    int workers, placed; /* started; of these, kept off `caller` */
    atomic_int caller;   /* the core of the last caller */
    int64_t clocks[MOST_WORKERS]; /* CPU time of each at the caller's last check */
    /* Idle workers poll these, which share no cache line with fields that others write. */
    atomic_llong generation __attribute__((aligned(2 * CACHE_LINE)));
    atomic_int open; /* whether the current run has not ended */
    /* The current run. */
    job_function function __attribute__((aligned(2 * CACHE_LINE)));
    void *context;
    int64_t count, scratch_bytes;
    int64_t wanted; /* threads, this one included */
    atomic_int failed;
    atomic_int stopped; /* whether a signal ended the run: its jobs are not finished */
    atomic_llong taken __attribute__((aligned(2 * CACHE_LINE))); /* jobs that have begun */
    atomic_int places;  /* workers that may still join */
    atomic_int running; /* workers that have joined and not left */
    atomic_int busy;    /* threads that run jobs */
    struct thread_jobs shares[MOST_THREADS];  /* of `wanted` threads */
    struct job_pieces pieces[MOST_THREADS]; /* of the caller and the workers */
};

static struct pool pool = {
    .gate = PTHREAD_MUTEX_INITIALIZER,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .wake = PTHREAD_COND_INITIALIZER,
};

/* The thread's index in `pieces` during a run of the pool, else -1. */
static _Thread_local int place = -1;
static _Thread_local void *kept;
static _Thread_local int64_t kept_bytes;
/* Bytes at the beginning of `kept` that the jobs of this thread's next runs share. */
static _Thread_local int64_t shared_bytes;

/* Whether the thread's run is stopped, and the time of its caller's last check for signals; 0: the
 * thread is not the caller. */
static _Thread_local atomic_int *stopped;
static _Thread_local int64_t looked;

static pthread_key_t kept_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork(void) {
    /* The child has no workers. */
    pool.workers = pool.placed = 0;
    pool.generation = 0;
    pool.open = 0;
    pool.running = 0;
    pool.busy = 0;
    for (int i = 0; i < MOST_THREADS; i++) {
        struct job_pieces *p = &pool.pieces[i];
        p->open = p->helpers = p->working = 0;
    }
    pthread_mutex_init(&pool.gate, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.wake, NULL);
}

static void initialise(void) {
    pthread_key_create(&kept_key, free); /* frees the scratch of a thread that ends */
    pthread_atfork(NULL, NULL, after_fork);
}

/* Scratch after the shared bytes; it may end in weights. */
static void *scratch_of_thread(int64_t bytes) {
    if (shared_bytes + bytes <= kept_bytes) return (char *)kept + shared_bytes;
    void *block = allocate_weights(bytes);
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
    bytes = round_up(bytes, CACHE_LINE);
    void *block = scratch_of_thread(bytes + scratch_bytes);
    if (block) shared_bytes = bytes;
    return block;
}

void give_shared(void) {
    shared_bytes = 0;
    release_scratch();
}

static void pause_briefly(void) {
#ifdef DECONV_X86
    __builtin_ia32_pause();
#endif
}

static int64_t nanoseconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t nanoseconds(void) { return nanoseconds_of(CLOCK_MONOTONIC); }

#ifdef __linux__
/* Move workers whose cores are used by other programs to the core of the caller, which only waits:
 * otherwise their jobs would end a time slice later. */
static void fetch_workers(void) {
    if (pool.placed < pool.workers) return;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(pool.caller, &core);
    for (int i = 0; i < pool.workers; i++) {
        clockid_t clock;
        if (!pool.pieces[i + 1].working || pthread_getcpuclockid(pool.threads[i], &clock)) continue;
        const int64_t ran = nanoseconds_of(clock);
        if (ran == pool.clocks[i]) {
            pthread_setaffinity_np(pool.threads[i], sizeof core, &core);
            pool.placed = 0;
        }
        pool.clocks[i] = ran;
    }
}

/* Whether the caller and a worker, either of them this thread, run on one core. */
static int shares_core(void) {
    return looked ? pool.placed < pool.workers : sched_getcpu() == pool.caller;
}
#else
static void fetch_workers(void) {}
static int shares_core(void) { return 0; }
#endif

/* Wait for other threads, which may need this one's core. */
static void wait_briefly(int64_t waited) {
    if (looked && waited % LOOK_PAUSES == LOOK_PAUSES - 1) fetch_workers();
    if (waited < MOST_PAUSES && !shares_core()) pause_briefly();
    else sched_yield();
}

/* Of the layer above: the interpreter's. */
static int (*signal_check)(void);

void set_signal_check(int (*check)(void)) { signal_check = check; }

/* Check for signals.  A handler may start a run within this one: for that run, the pool is taken,
 * and the thread's scratch is set aside. */
static int look_for_signals(void) {
    atomic_int *const outer = stopped;
    void *const block = kept;
    const int64_t bytes = kept_bytes, shared = shared_bytes;
    const int at = place;
    stopped = NULL;
    kept = NULL;
    kept_bytes = shared_bytes = 0;
    place = -1;
    pthread_setspecific(kept_key, NULL);
    const int found = signal_check ? signal_check() : 0;
    free(kept);
    stopped = outer;
    kept = block;
    kept_bytes = bytes;
    shared_bytes = shared;
    place = at;
    pthread_setspecific(kept_key, block);
    return found;
}

/* Whether the thread must not begin another job or piece of its run. */
static int is_stopped(void) {
    if (*stopped || looked == 0) return *stopped;
    const int64_t now = nanoseconds();
    if (now - looked < SIGNAL_NANOSECONDS) return 0;
    if (look_for_signals()) *stopped = 1;
    looked = nanoseconds();
    return *stopped;
}

static void take_pieces(struct job_pieces *p, void *scratch) {
    int64_t piece;
    while (!is_stopped() && (piece = atomic_fetch_add(&p->next, 1)) < p->count)
        p->function(p->context, piece, scratch);
}

void parallel_pieces(job_function function, void *context, int64_t count, void *scratch) {
    /* While all threads have jobs, pieces are not offered to others; and atomics wait for all
     * stores. */
    if (place < 0 || count < 2 || pool.count - pool.taken >= pool.wanted) {
        for (int64_t piece = 0; piece < count && !is_stopped(); piece++)
            function(context, piece, scratch);
        return;
    }
    struct job_pieces *p = &pool.pieces[place];
    p->function = function;
    p->context = context;
    p->count = count;
    p->next = 0;
    p->open = 1;
    take_pieces(p, scratch);
    /* From now on no thread joins; threads that have joined finish their last pieces. */
    p->open = 0;
    for (int64_t i = 0; p->helpers > 0; i++) wait_briefly(i);
}

/* Steal pieces of running jobs until all jobs are done. */
static void help_others(void *scratch) {
    for (int64_t i = 0; pool.busy > 0; i++) {
        for (int at = 0; at <= pool.workers; at++) {
            struct job_pieces *p = &pool.pieces[at];
            if (!p->open) continue;
            atomic_fetch_add(&p->helpers, 1);
            if (p->open && p->next < p->count) {
                take_pieces(p, scratch);
                finish_streams();
                i = 0;
            }
            atomic_fetch_sub(&p->helpers, 1);
        }
        wait_briefly(i);
    }
}

/* Run the remaining jobs of a share. */
static void take_share(struct thread_jobs *share, job_function function, void *context,
                       void *scratch) {
    int64_t job;
    while (!is_stopped() && share->next < share->end &&
           (job = atomic_fetch_add(&share->next, 1)) < share->end) {
        atomic_fetch_add(&pool.taken, 1);
        function(context, job, scratch);
    }
}

static void take_jobs(job_function function, void *context, int64_t scratch_bytes, int at) {
    void *scratch = scratch_bytes ? scratch_of_thread(scratch_bytes) : NULL;
    if (scratch_bytes && !scratch) {
        pool.failed = 1;
        return;
    }
    place = at;
    pool.pieces[at].working = 1;
    atomic_fetch_add(&pool.busy, 1);
    for (int64_t i = 0; i < pool.wanted; i++)
        take_share(&pool.shares[(at + i) % pool.wanted], function, context, scratch);
    finish_streams();
    atomic_fetch_sub(&pool.busy, 1);
    place = -1;
    help_others(scratch);
    release_scratch();
    pool.pieces[at].working = 0;
}

static void *work(void *number) {
    const int at = (int)(intptr_t)number;
    stopped = &pool.stopped;
    long long seen = 0;
    int joined = 0;
    for (;;) {
        /* A worker without jobs stays awake until the run ends: asleep, it would miss most of the
         * next run. */
        for (int64_t i = 0; joined && pool.open && pool.generation == seen; i++) wait_briefly(i);
        const int64_t until = nanoseconds() + (shares_core() ? 0 : SPIN_NANOSECONDS);
        while (pool.generation == seen && nanoseconds() < until)
            for (int i = 0; i < 32 && pool.generation == seen; i++) pause_briefly();
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
        if (joined)
            take_jobs(pool.function, pool.context, pool.scratch_bytes, at);
        atomic_fetch_sub(&pool.running, 1);
    }
    return NULL;
}

/* Start workers until `count` run, or the system refuses. */
static void start_workers(int count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.workers < count && pool.workers < MOST_WORKERS) {
        void *number = (void *)(intptr_t)(pool.workers + 1);
        if (pthread_create(&pool.threads[pool.workers], &attributes, work, number)) break;
        pool.workers++;
    }
    pthread_attr_destroy(&attributes);
}

/* Keep the workers off the caller's core.  Linux tends to wake a thread on the core of its waker
 * and moves it only after milliseconds; by then, one core would have computed a small layer. */
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
    atomic_int here = 0;
    void *scratch = scratch_bytes ? scratch_of_thread(scratch_bytes) : NULL;
    if (scratch_bytes && !scratch) return OUT_OF_MEMORY;
    stopped = &here;
    for (int64_t job = 0; job < count && !is_stopped(); job++) function(context, job, scratch);
    stopped = NULL;
    finish_streams();
    release_scratch();
    return here ? INTERRUPTED : 0;
}

int parallel_run(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes) {
    pthread_once(&once, initialise);
    const int helpers = (int)least(least(threads, count) - 1, MOST_WORKERS);
    looked = nanoseconds();
    /* If another caller's run has the pool, do not wait: the cores are busy anyway. */
    if (helpers < 1 || pthread_mutex_trylock(&pool.gate))
        return run_alone(function, context, count, scratch_bytes);
    start_workers(helpers);
    place_workers();
    pool.function = function;
    pool.context = context;
    pool.count = count;
    pool.scratch_bytes = scratch_bytes;
    pool.wanted = helpers + 1;
    pool.failed = pool.stopped = 0;
    stopped = &pool.stopped;
    pool.taken = 0;
    for (int64_t i = 0; i < pool.wanted; i++) {
        pool.shares[i].next = i * count / pool.wanted;
        pool.shares[i].end = (i + 1) * count / pool.wanted;
    }
    pool.places = helpers;
    pool.open = 1;
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.generation, 1);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);
    take_jobs(function, context, scratch_bytes, 0);
    /* Let no other worker join, and wait for those that have joined. */
    atomic_fetch_sub(&pool.places, helpers + MOST_WORKERS);
    for (int64_t i = 0; pool.running > 0; i++) wait_briefly(i);
    pool.open = 0;
    const int failed = pool.failed ? OUT_OF_MEMORY : pool.stopped ? INTERRUPTED : 0;
    stopped = NULL;
    pthread_mutex_unlock(&pool.gate);
    return failed;
}
