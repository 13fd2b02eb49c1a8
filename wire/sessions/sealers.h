/* sealers.h - threads that seal and open frames, so that the event loop does not.
 *
 * Jobs begin in the order in which they were added, and several run at once. Only the event loop
 * calls these functions. Between sealers_add and the job's end, the job and the memory that it
 * names belong to the threads.
 */
#ifndef WIRE_SEALERS_H
#define WIRE_SEALERS_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/aes_gcm.h"

struct sealers; /* opaque */

enum sealer_state { SEALER_IDLE, SEALER_WAITS, SEALER_RUNS, SEALER_ENDED };

struct sealer_job {
	/* aes: the thread's; NULL: libcrypto cannot be used. */
	void (*run)(struct sealer_job *job, struct aes_gcm *aes);
	struct sealer_job *next;  /* used by the threads */
	enum sealer_state state;  /* set by the threads; read it with sealers_ended */
};

/* Starts the threads. Gives *out (sealers_free). -EAGAIN, -EMFILE, -ENOMEM from the kernel. */
int sealers_new(struct sealers **out, unsigned threads, struct error *err);
/* Ends the threads. No job may be left. NULL is allowed. */
void sealers_free(struct sealers *s);
/* Returns a descriptor that is readable after a job has ended, until sealers_clear; -1 if s is
 * NULL. */
int sealers_fd(const struct sealers *s);
void sealers_clear(struct sealers *s);

void sealers_add(struct sealers *s, struct sealer_job *job);
/* Returns true if the job has ended. */
bool sealers_ended(struct sealers *s, const struct sealer_job *job);
/* Removes a job that waits, or waits for the end of one that runs. */
void sealers_cancel(struct sealers *s, struct sealer_job *job);
/* Returns true while a job waits or runs. After its end the descriptor is readable. s may be NULL.
 */
bool sealers_busy(struct sealers *s);

#endif
