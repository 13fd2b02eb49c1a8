/* codec_threads.c - a queue of jobs and the threads that run them. Encoding a tensor of 33 MB takes
 * ten milliseconds. In the event loop this would delay heartbeats and orders. */
#include "agent/tensors/codec_threads.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/worker.h"
#include "base/alloc.h"

enum { JOBS_FULL = 2 * CODEC_THREADS };

struct entry {
	struct codec_job job;
	bool started, ended;
	struct entry *next;
};

struct codec_threads {
	struct worker *workers[CODEC_THREADS];
	/* the jobs that the caller has not taken yet, in the order in which they were added */
	struct entry *first, **end;
	unsigned n;
};

int codec_threads_new(struct codec_threads **out, struct error *err)
{
	struct codec_threads *t = alloc_new(sizeof(*t));
	int rc = 0;

	t->end = &t->first;
	for (int i = 0; rc == 0 && i < CODEC_THREADS; i++)
		rc = worker_new(&t->workers[i], "tensors", err);
	if (rc) {
		codec_threads_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void codec_threads_free(struct codec_threads *t)
{
	if (!t)
		return;
	for (int i = 0; i < CODEC_THREADS; i++)
		worker_free(t->workers[i]);
	for (struct entry *e = t->first, *next; e; e = next) {
		next = e->next;
		e->job.drop(&e->job);
		free(e);
	}
	free(t);
}

void codec_threads_fds(const struct codec_threads *t, int fds[CODEC_THREADS])
{
	for (int i = 0; i < CODEC_THREADS; i++)
		fds[i] = t ? worker_fd(t->workers[i]) : -1;
}

/* Joins the pieces of a message to floats, and checks the floats of each piece while they are still
 * in the cache. */
static void join_floats(struct codec_job *j)
{
	size_t skip = j->skip_bytes, joined = 0, checked = 0;

	j->plausible = true;
	for (uint32_t i = 0; i < j->pieces.n; i++) {
		const struct pieces piece = { &j->pieces.list[i], 1 };
		size_t whole;

		pieces_join(&piece, skip, (char *)j->floats + joined);
		joined += piece.list->size - skip;
		skip = 0;
		whole = joined / sizeof(float);
		j->plausible = j->plausible &&
			       codec_is_plausible(&j->codec, j->floats + checked, whole - checked);
		checked = whole;
	}
}

static void copy_encoded(struct codec_job *j)
{
	if (j->pieces.n > 0)
		pieces_join(&j->pieces, j->skip_bytes, j->floats);
	else
		memcpy(j->floats, j->bytes, codec_bytes(&j->codec, j->n));
	j->plausible = codec_is_plausible(&j->codec, j->floats, j->n);
}

void codec_job_run(void *unused, void *job)
{
	struct codec_job *j = job;
	const void *bytes;

	(void)unused;
	if (j->leaving) {
		j->rc = stage_output_collect(j->leaving, j->bytes, &j->err);
		j->leaving = NULL;
		return;
	}
	if (j->encodes) {
		codec_encode(&j->codec, j->bytes, j->floats, j->n);
		if (j->measures)
			j->snr_db = (float)codec_snr_db(&j->codec, j->bytes, j->floats, j->n);
		return;
	}
	if (j->pieces.n > 0 && j->codec.format == FORMAT_FP32) {
		join_floats(j);
		return;
	}
	if (j->stays_encoded) {
		copy_encoded(j);
		return;
	}
	if (j->pieces.n > 0)
		pieces_join(&j->pieces, j->skip_bytes, j->room);
	bytes = j->pieces.n > 0 ? j->room : j->bytes;
	j->plausible = codec_is_plausible(&j->codec, bytes, j->n);
	if (j->plausible)
		codec_decode(&j->codec, j->floats, bytes, j->n);
	free(j->room);
	j->room = NULL;
}

static void run_entry(void *unused, void *entry)
{
	struct entry *e = entry;

	codec_job_run(unused, &e->job);
}

/* Lets each idle thread begin the oldest job that waits. */
static void start_jobs(struct codec_threads *t)
{
	struct entry *e = t->first;

	for (int i = 0; i < CODEC_THREADS; i++) {
		while (e && e->started)
			e = e->next;
		if (!e)
			return;
		if (worker_busy(t->workers[i]))
			continue;
		e->started = true;
		worker_start(t->workers[i], run_entry, NULL, e);
	}
}

void codec_threads_add(struct codec_threads *t, const struct codec_job *job)
{
	struct entry *e = alloc_new(sizeof(*e));

	e->job = *job;
	*t->end = e;
	t->end = &e->next;
	t->n++;
	start_jobs(t);
}

bool codec_threads_full(const struct codec_threads *t)
{
	return t && t->n >= JOBS_FULL;
}

uint32_t codec_threads_decoding(const struct codec_threads *t)
{
	uint32_t n = 0;

	for (const struct entry *e = t ? t->first : NULL; e; e = e->next)
		n += !e->job.encodes;
	return n;
}

/* Returns true if the queue has no earlier job of the same direction for the same link. */
static bool is_first_of_link(const struct codec_threads *t, const struct entry *e)
{
	for (const struct entry *o = t->first; o != e; o = o->next)
		if (o->job.node == e->job.node && o->job.encodes == e->job.encodes)
			return false;
	return true;
}

bool codec_threads_take(struct codec_threads *t, struct codec_job *out)
{
	for (int i = 0; t && i < CODEC_THREADS; i++) {
		struct entry *e = worker_finished(t->workers[i]);

		if (e)
			e->ended = true;
	}
	if (!t)
		return false;
	start_jobs(t);
	for (struct entry **at = &t->first; *at; at = &(*at)->next) {
		struct entry *e = *at;

		if (!e->ended || !is_first_of_link(t, e))
			continue;
		*at = e->next;
		if (t->end == &e->next)
			t->end = at;
		t->n--;
		*out = e->job;
		free(e);
		return true;
	}
	return false;
}
