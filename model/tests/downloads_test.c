/* Tests that threads collect outputs while another thread computes, and while the stage ends. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/cuda/stage_cuda.h"
#include "model/tests/emulated_device.h"

enum { OUTPUTS = 300, BYTES = 512, THREADS_COLLECT = 3 };

/* The outputs, and the number of outputs that threads have taken. */
static struct given {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct stage_output *list[OUTPUTS];
	unsigned n, taken, right;
} given = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void give(struct stage_output *o)
{
	pthread_mutex_lock(&given.lock);
	given.list[given.n++] = o;
	pthread_cond_signal(&given.more);
	pthread_mutex_unlock(&given.lock);
}

static bool is_of(const unsigned char *bytes, unsigned i)
{
	for (int k = 0; k < BYTES; k++)
		if (bytes[k] != (unsigned char)i)
			return false;
	return true;
}

/* Collects outputs, of which every seventh is dropped. */
static void *collect(void *unused)
{
	unsigned char bytes[BYTES];
	struct error err;

	pthread_mutex_lock(&given.lock);
	while (given.taken < OUTPUTS) {
		unsigned i = given.taken;

		if (i == given.n) {
			pthread_cond_wait(&given.more, &given.lock);
			continue;
		}
		given.taken++;
		pthread_cond_broadcast(&given.more);
		pthread_mutex_unlock(&given.lock);
		memset(bytes, 0, sizeof(bytes));
		if (i % 7 == 6)
			stage_output_drop(given.list[i]);
		else
			assert_int_equal(stage_output_collect(given.list[i], bytes, &err), 0);
		pthread_mutex_lock(&given.lock);
		given.right += i % 7 == 6 || is_of(bytes, i);
	}
	pthread_mutex_unlock(&given.lock);
	return unused;
}

TEST(threads_collect_while_others_are_made)
{
	pthread_t threads[THREADS_COLLECT];
	unsigned char *pinned[CROSSINGS], host[BYTES];
	void *on_device[CROSSINGS];
	struct downloads *downloads;
	struct device *d = NULL;
	struct error err;

	assert_int_equal(device_open(&d, 0, false, &err), 0);
	for (int i = 0; i < CROSSINGS; i++) {
		void *memory;

		assert_int_equal(device_allocate(d, BYTES, 0, &on_device[i], &err), 0);
		assert_int_equal(device_allocate_host(d, BYTES, &memory, &err), 0);
		pinned[i] = memory;
	}
	downloads = downloads_new(d, pinned);
	for (int i = 0; i < THREADS_COLLECT; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, collect, NULL), 0);
	for (unsigned i = 0; i < OUTPUTS; i++) {
		unsigned buffer = i % CROSSINGS;

		memset(host, (int)i, BYTES);
		downloads_clear(downloads, (int)buffer);
		device_put(d, on_device[buffer], host, BYTES);
		device_order(d, STREAM_COMPUTE, STREAM_GET);
		device_get_beside(d, downloads_pinned(downloads, (int)buffer), on_device[buffer],
				  BYTES);
		device_mark(d, STREAM_GET, buffer);
		give(downloads_give(downloads, (int)buffer, BYTES));
	}
	downloads_close(downloads);
	device_close(d);
	for (int i = 0; i < THREADS_COLLECT; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(given.right, OUTPUTS);
}
