/* outlet.c - a queue of bytes between a stream and the thread that writes them. */
#include "base/process/outlet.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process/signals.h"

enum { QUEUE_MOST = 16 << 20, CHUNK = 4096, LOOK_US = 5000 };

struct outlet {
	FILE *to, *stream;
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock; /* protects all fields below */
	pthread_cond_t changed;
	/* array of n bytes to write; the thread has taken the first `taken` of them */
	char *queue;
	size_t n, taken, room;
	bool is_writing; /* the thread is writing the bytes that it has taken */
	bool in_dropped; /* the next bytes belong to a dropped line */
	bool closing;
	int error; /* errno of the first failure; 0: none */
};

/* Writes a chunk. Returns 0, or the errno of the failed write. */
static int write_chunk(int fd, const char *from, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, from, size);

		if (n < 0 && errno != EINTR)
			return errno;
		from += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The thread of an outlet. It copies each chunk, because a write lasts as long as the reader
 * pauses, and the queue may move meanwhile. After a failure the thread discards further bytes. */
static void *write_queue(void *user)
{
	struct outlet *o = user;
	char chunk[CHUNK];
	bool failed = false;

	pthread_mutex_lock(&o->lock);
	while (!o->closing) {
		size_t n = o->n - o->taken < CHUNK ? o->n - o->taken : CHUNK;
		int error;

		if (n == 0) {
			pthread_cond_wait(&o->changed, &o->lock);
			continue;
		}
		memcpy(chunk, o->queue + o->taken, n);
		o->taken += n;
		o->is_writing = true;
		pthread_mutex_unlock(&o->lock);
		error = failed ? 0 : write_chunk(fileno(o->to), chunk, n);
		failed = failed || error;
		pthread_mutex_lock(&o->lock);
		o->is_writing = false;
		o->error = error ? error : o->error;
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

static void make_room(struct outlet *o, size_t more)
{
	o->n -= o->taken;
	if (o->n > 0)
		memmove(o->queue, o->queue + o->taken, o->n);
	o->taken = 0;
	if (o->n + more > o->room) {
		o->room = 2 * (o->n + more);
		o->queue = alloc_resize(o->queue, o->room, 1);
	}
}

/* Drops the bytes for which the queue has no room. Also drops the beginning of their line, which is
 * already in the queue. */
static void drop_line(struct outlet *o, const char *from, size_t size)
{
	while (!o->in_dropped && o->n > o->taken && o->queue[o->n - 1] != '\n')
		o->n--;
	o->in_dropped = from[size - 1] != '\n';
	o->error = o->error ? o->error : ENOBUFS;
}

/* Adds bytes to the queue. The caller flushes after each line, so one call never has bytes of two
 * lines. */
static ssize_t fill_queue(void *user, const char *from, size_t size)
{
	struct outlet *o = user;

	pthread_mutex_lock(&o->lock);
	if (size > 0 && (o->in_dropped || o->n - o->taken + size > QUEUE_MOST)) {
		drop_line(o, from, size);
	} else if (size > 0) {
		if (o->n + size > o->room)
			make_room(o, size);
		memcpy(o->queue + o->n, from, size);
		o->n += size;
	}
	pthread_cond_signal(&o->changed);
	pthread_mutex_unlock(&o->lock);
	return (ssize_t)size;
}

struct outlet *outlet_new(FILE *to)
{
	static const cookie_io_functions_t functions = { .write = fill_queue };
	struct outlet *o = alloc_new(sizeof(*o));
	struct stat st;

	o->to = o->stream = to;
	if (fstat(fileno(to), &st) != 0 || S_ISREG(st.st_mode))
		return o;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->changed, NULL);
	o->has_thread = pthread_create(&o->thread, NULL, write_queue, o) == 0;
	if (o->has_thread)
		o->stream = fopencookie(o, "w", functions);
	if (!o->stream)
		alloc_failed(1, BUFSIZ);
	return o;
}

FILE *outlet_stream(struct outlet *o)
{
	return o->stream;
}

static bool should_end(void)
{
	sigset_t ending, pending;

	signals_ending(&ending);
	sigpending(&pending);
	return sigandset(&pending, &pending, &ending) == 0 && !sigisemptyset(&pending);
}

/* A thread that still waits for the reader cannot be joined. The outlet is then not freed, because
 * the thread uses it until the process ends. */
int outlet_free(struct outlet *o, int64_t wait_us)
{
	int64_t begun = clock_monotonic_us();
	int rc;

	if (!o->has_thread) {
		free(o);
		return 0;
	}
	fclose(o->stream);
	pthread_mutex_lock(&o->lock);
	while ((o->n > o->taken || o->is_writing) && clock_monotonic_us() - begun < wait_us &&
	       !should_end()) {
		pthread_mutex_unlock(&o->lock);
		usleep(LOOK_US);
		pthread_mutex_lock(&o->lock);
	}
	if (o->n > o->taken || o->is_writing) {
		pthread_mutex_unlock(&o->lock);
		return -ENOBUFS;
	}
	o->closing = true;
	rc = -o->error;
	pthread_cond_signal(&o->changed);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->changed);
	free(o->queue);
	free(o);
	return rc;
}
