/* sealers.h - threads that seal and open frames in place of the event loop's thread.
 *
 * Jobs begin in the order in which they were added, and several jobs run at once. Only the event
 * loop's thread calls these functions. From sealers_add until the job's end, the threads own the
 * job and the memory to which it points. */
#ifndef WIRE_SEALERS_H
#define WIRE_SEALERS_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/aes_gcm.h"

struct sealers; /* opaque */

enum sealer_state { SEALER_IDLE, SEALER_WAITS, SEALER_RUNS, SEALER_ENDED };

struct sealer_job {
	/* Does the job. aes: the thread's context of libcrypto; NULL: libcrypto cannot be used. */
	void (*run)(struct sealer_job *job, struct aes_gcm *aes);
	struct sealer_job *next;  /* used by the threads */
	enum sealer_state state;  /* changed by the threads; read it with sealers_ended */
};

/* Starts the threads. The caller frees *out with sealers_free. -EAGAIN, -EMFILE or -ENOMEM: the
 * kernel refused. */
int sealers_new(struct sealers **out, unsigned threads, struct error *err);
/* Ends the threads. The caller must have no job left. NULL is allowed. */
void sealers_free(struct sealers *s);
/* Returns a descriptor that is readable from the end of a job until sealers_clear; -1: s is
 * NULL. */
int sealers_fd(const struct sealers *s);
void sealers_clear(struct sealers *s);

void sealers_add(struct sealers *s, struct sealer_job *job);
/* Returns true if the job has ended. */
bool sealers_ended(struct sealers *s, const struct sealer_job *job);
/* Removes a job that waits in the queue. If the job runs, waits for its end. */
void sealers_cancel(struct sealers *s, struct sealer_job *job);
/* Returns true while any job waits or runs. The end of a job makes the descriptor (sealers_fd)
 * readable. s may be NULL. */
bool sealers_busy(struct sealers *s);

#endif
