/* The thread pool: jobs on several threads, with scratch and checks for signals. */
#ifndef DECONV_THREADS_H
#define DECONV_THREADS_H

#include <stdint.h>

#define MOST_THREADS 256 /* of one run */

/* Reasons for which a run ends early. */
enum { OUT_OF_MEMORY = -1, INTERRUPTED = -2 };

typedef void (*job_function)(void *context, int64_t job, void *scratch);

/* Run jobs 0 .. count-1 on up to `threads` threads, this one included, each
 * with `scratch_bytes` of scratch.  Returns 0, OUT_OF_MEMORY or INTERRUPTED, which mean that some
 * jobs were not done. */
int parallel_run(job_function function, void *context, int64_t count, int64_t threads,
                 int64_t scratch_bytes);

/* Run pieces 0 .. count-1 of a job, from within that job.  Threads without jobs steal pieces, with
 * their own scratch, so that all threads end at about the same time even if jobs are few or cores
 * differ in speed. */
void parallel_pieces(job_function function, void *context, int64_t count, void *scratch);

/* Take memory that all jobs of the calling thread's next runs share; each thread of these runs
 * needs `scratch_bytes` besides.  give_shared() releases it. */
void *take_shared(int64_t bytes, int64_t scratch_bytes);
void give_shared(void);

/* Set the function that the calling thread of a run calls between jobs, a few times a second: it
 * returns whether a signal ends the run.  Without one, runs are not interrupted. */
void set_signal_check(int (*check)(void));

#endif
