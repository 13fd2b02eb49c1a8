/* sealers.c - a queue of jobs, and the threads that run them. Sealing a MiB takes most of a
 * millisecond. In this time the event loop would not handle heartbeats and orders. */
#include "wire/sessions/sealers.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"

struct sealers {
	pthread_t *threads; /* the n_threads threads */
	unsigned n_threads;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t added, ended;
	/* The lock protects the fields below. */
	struct sealer_job *first, **end; /* the waiting jobs, the oldest first */
	unsigned n_unended;              /* number of jobs that wait or run */
	bool quits;
};

/* Waits for a job and takes it from the queue. Returns NULL when the threads must end. */
static struct sealer_job *take_job(struct sealers *s)
{
	while (s->first == NULL && !s->quits)
		pthread_cond_wait(&s->added, &s->lock);
	struct sealer_job *job = s->first;
	if (job == NULL)
		return NULL;
	s->first = job->next;
	if (s->first == NULL)
		s->end = &s->first;
	job->state = SEALER_RUNS;
	return job;
}

static void *run_jobs(void *sealers)
{
	struct sealers *s = sealers;
	struct sealer_job *job;
	struct aes_gcm *aes = aes_gcm_new();
	const uint64_t one = 1;
	pthread_setname_np(pthread_self(), "seals");
	pthread_mutex_lock(&s->lock);
	while ((job = take_job(s)) != NULL) {
		pthread_mutex_unlock(&s->lock);
		job->run(job, aes);
		pthread_mutex_lock(&s->lock);
		job->state = SEALER_ENDED;
		s->n_unended--;
		pthread_cond_broadcast(&s->ended);
		while (write(s->fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_unlock(&s->lock);
	aes_gcm_free(aes);
	return NULL;
}

int sealers_new(struct sealers **out, unsigned threads, struct error *err)
{
	struct sealers *s = alloc_new(sizeof(*s));
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->fd < 0) {
		const int rc = error_set(err, -errno, "eventfd: %s", strerror(errno));
		free(s);
		return rc;
	}
	s->threads = alloc_array(threads, sizeof(*s->threads));
	s->end = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->added, NULL);
	pthread_cond_init(&s->ended, NULL);
	for (; s->n_threads < threads; s->n_threads++) {
		const int rc = pthread_create(&s->threads[s->n_threads], NULL, run_jobs, s);
		if (rc == 0)
			continue;
		sealers_free(s);
		return error_set(err, -rc, "cannot start a thread for encryption: %s",
			strerror(rc));
	}
	*out = s;
	return 0;
}

void sealers_free(struct sealers *s)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->quits = true;
	pthread_cond_broadcast(&s->added);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->n_threads; i++)
		pthread_join(s->threads[i], NULL);
	pthread_cond_destroy(&s->ended);
	pthread_cond_destroy(&s->added);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
	free(s->threads);
	free(s);
}

int sealers_fd(const struct sealers *s)
{
	return s == NULL ? -1 : s->fd;
}

void sealers_clear(struct sealers *s)
{
	uint64_t ended;
	while (read(s->fd, &ended, sizeof(ended)) < 0 && errno == EINTR)
		;
}

void sealers_add(struct sealers *s, struct sealer_job *job)
{
	pthread_mutex_lock(&s->lock);
	job->state = SEALER_WAITS;
	job->next = NULL;
	*s->end = job;
	s->end = &job->next;
	s->n_unended++;
	pthread_cond_signal(&s->added);
	pthread_mutex_unlock(&s->lock);
}

bool sealers_ended(struct sealers *s, const struct sealer_job *job)
{
	pthread_mutex_lock(&s->lock);
	const bool ended = job->state == SEALER_ENDED;
	pthread_mutex_unlock(&s->lock);
	return ended;
}

static void remove_waiting(struct sealers *s, const struct sealer_job *job)
{
	struct sealer_job **at = &s->first;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (*at == NULL)
		s->end = at;
	s->n_unended--;
}

void sealers_cancel(struct sealers *s, struct sealer_job *job)
{
	pthread_mutex_lock(&s->lock);
	if (job->state == SEALER_WAITS)
		remove_waiting(s, job);
	while (job->state == SEALER_RUNS)
		pthread_cond_wait(&s->ended, &s->lock);
	job->state = SEALER_IDLE;
	pthread_mutex_unlock(&s->lock);
}

bool sealers_busy(struct sealers *s)
{
	if (s == NULL)
		return false;
	pthread_mutex_lock(&s->lock);
	const bool busy = s->n_unended > 0;
	pthread_mutex_unlock(&s->lock);
	return busy;
}
