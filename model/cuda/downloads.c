/* Copies outputs from a GPU's stage while the stage computes its next task. The thread that sends
 * an output collects it, because the thread that computes would otherwise wait for the copy.
 *
 * The stage is a user of its downloads until the stage is freed. Each output is a user until it is
 * collected or dropped. The last user frees the downloads. If the stage is freed, or needs a buffer
 * again, it first completes the buffer's output: it moves the bytes to memory that belongs to the
 * output.
 */
#include "model/cuda/stage_cuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct downloads {
	pthread_mutex_t lock; /* protects all fields of the downloads and of their outputs */
	pthread_cond_t collected;
	unsigned users; /* number of users: the stage until it is freed, and each output */
	struct device *d;
	unsigned char *pinned[CROSSINGS];
	struct stage_output
		*held[CROSSINGS]; /* the output in each buffer; NULL: none */
};

struct stage_output {
	struct downloads *downloads;
	int buffer;
	size_t bytes;
	bool is_collecting; /* a thread reads the output's buffer */
	/* The output has its own copy of the bytes (malloc), or has failed. */
	bool is_complete;
	void *own;
	int rc;
	struct error err;
};

struct downloads *downloads_new(struct device *d, unsigned char *const pinned[CROSSINGS])
{
	struct downloads *o = alloc_new(sizeof(*o));

	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->collected, NULL);
	o->users = 1;
	o->d = d;
	memcpy(o->pinned, pinned, sizeof(o->pinned));
	return o;
}

/* Removes a user. The caller holds the lock, and this function releases the lock. */
static void leave(struct downloads *o)
{
	bool last = --o->users == 0;

	pthread_mutex_unlock(&o->lock);
	if (!last)
		return;
	pthread_cond_destroy(&o->collected);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

unsigned char *downloads_pinned(const struct downloads *o, int buffer)
{
	return o->pinned[buffer];
}

/* Moves the bytes of an output from its buffer to memory of its own. */
static void complete(struct downloads *o, struct stage_output *out)
{
	out->is_complete = true;
	out->own = malloc(out->bytes);
	out->rc = out->own ? device_await(o->d, (unsigned)out->buffer, &out->err)
			   : error_set(&out->err, -ENOMEM, "no memory for an output");
	if (!out->rc)
		memcpy(out->own, o->pinned[out->buffer], out->bytes);
	o->held[out->buffer] = NULL;
}

static void clear_buffer(struct downloads *o, int buffer)
{
	while (o->held[buffer] && o->held[buffer]->is_collecting)
		pthread_cond_wait(&o->collected, &o->lock);
	if (o->held[buffer])
		complete(o, o->held[buffer]);
}

void downloads_clear(struct downloads *o, int buffer)
{
	pthread_mutex_lock(&o->lock);
	clear_buffer(o, buffer);
	pthread_mutex_unlock(&o->lock);
}

void downloads_close(struct downloads *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	for (int i = 0; i < CROSSINGS; i++)
		clear_buffer(o, i);
	leave(o);
}

struct stage_output *downloads_give(struct downloads *o, int buffer, size_t bytes)
{
	struct stage_output *out = alloc_new(sizeof(*out));

	out->downloads = o;
	out->buffer = buffer;
	out->bytes = bytes;
	pthread_mutex_lock(&o->lock);
	o->users++;
	o->held[buffer] = out;
	pthread_mutex_unlock(&o->lock);
	return out;
}

/* Reads the output's buffer without the lock, so that the stage can go on meanwhile. */
static int read_buffer(struct downloads *o, struct stage_output *out, void *to, struct error *err)
{
	int rc;

	out->is_collecting = true;
	pthread_mutex_unlock(&o->lock);
	rc = device_await(o->d, (unsigned)out->buffer, err);
	if (!rc)
		memcpy(to, o->pinned[out->buffer], out->bytes);
	pthread_mutex_lock(&o->lock);
	return rc;
}

static void free_output(struct downloads *o, struct stage_output *out)
{
	if (!out->is_complete)
		o->held[out->buffer] = NULL;
	pthread_cond_broadcast(&o->collected);
	free(out->own);
	free(out);
	leave(o);
}

int stage_output_collect(struct stage_output *out, void *to, struct error *err)
{
	struct downloads *o = out->downloads;
	int rc;

	pthread_mutex_lock(&o->lock);
	if (!out->is_complete)
		rc = read_buffer(o, out, to, err);
	else if ((rc = out->rc) == 0)
		memcpy(to, out->own, out->bytes);
	else
		*err = out->err;
	free_output(o, out);
	return rc;
}

void stage_output_drop(struct stage_output *out)
{
	if (!out)
		return;
	pthread_mutex_lock(&out->downloads->lock);
	free_output(out->downloads, out);
}
