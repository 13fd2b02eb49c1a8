/* Tests that encoding and decoding in threads gives the same bits as the codec alone, and that
 * the jobs of a link are returned in the order in which they were added. */
#include "agent/tensors/codec_threads.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"

enum { LINKS = 3, JOBS = 60, FLOATS = 20000 };

static unsigned dropped;

static void drop(struct codec_job *job)
{
	dropped++;
	free(job->floats);
	free(job->bytes);
}

static struct codec_threads *made(void)
{
	struct codec_threads *t;
	struct error err = { "" };

	dropped = 0;
	assert_int_equal(codec_threads_new(&t, &err), 0);
	return t;
}

/* Waits for the next ended job as the event loop does. */
static struct codec_job next(struct codec_threads *t)
{
	struct pollfd p[CODEC_THREADS] = { { 0 } };
	int fds[CODEC_THREADS];
	struct codec_job job;

	codec_threads_fds(t, fds);
	for (int i = 0; i < CODEC_THREADS; i++)
		p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	while (!codec_threads_take(t, &job))
		assert_true(poll(p, CODEC_THREADS, (int)(TEST_PATIENCE_US / 1000)) > 0);
	return job;
}

/* Makes a job whose size depends on its number. The field `owner` holds the number. */
static struct codec_job job_of(uintptr_t number, bool encodes)
{
	struct codec_job j = { .encodes = encodes, .measures = encodes && number % 7 == 0,
			       .node = (uint16_t)(number % LINKS),
			       .codec = codec_of_gradient(FORMAT_Q8),
			       .n = number % 4 ? 64 : FLOATS, .owner = (void *)number,
			       .drop = drop };
	struct rng g;

	rng_init(&g, number);
	j.floats = malloc(j.n * sizeof(float));
	j.bytes = malloc(codec_bytes(&j.codec, j.n));
	assert_true(j.floats && j.bytes);
	for (size_t i = 0; i < j.n; i++)
		j.floats[i] = (float)rng_uniform(&g) - 0.5f;
	if (!encodes) {
		codec_encode(&j.codec, j.bytes, j.floats, j.n);
		memset(j.floats, 0xff, j.n * sizeof(float));
	}
	return j;
}

/* Compares the job's result with the result of the codec in this thread. */
static void check(const struct codec_job *j)
{
	struct codec_job again = job_of((uintptr_t)j->owner, j->encodes);

	codec_job_run(NULL, &again);
	assert_memory_equal(j->bytes, again.bytes, codec_bytes(&j->codec, j->n));
	assert_memory_equal(j->floats, again.floats, j->n * sizeof(float));
	assert_true(j->snr_db == again.snr_db && (j->snr_db > 20) == j->measures);
	assert_int_equal(j->plausible, !j->encodes);
	drop(&again);
}

TEST(jobs_of_a_link_end_in_their_order)
{
	struct codec_threads *t = made();
	uintptr_t last[2][LINKS] = { { 0 } };

	for (uintptr_t i = 1; i <= JOBS; i++) {
		struct codec_job j = job_of(i, i % 2 == 0);

		codec_threads_add(t, &j);
	}
	assert_true(codec_threads_full(t));
	for (int i = 0; i < JOBS; i++) {
		struct codec_job j = next(t);
		uintptr_t *before = &last[j.encodes][j.node];

		assert_true((uintptr_t)j.owner > *before);
		*before = (uintptr_t)j.owner;
		check(&j);
		drop(&j);
	}
	assert_false(codec_threads_full(t));
	codec_threads_free(t);
}

TEST(implausible_bytes_are_not_decoded)
{
	struct codec_threads *t = made();
	struct codec_job j = job_of(1, false);

	memset(j.bytes, 0x7f, 2); /* makes the first scale a NaN */
	codec_threads_add(t, &j);
	j = next(t);
	assert_false(j.plausible);
	assert_int_equal(((uint32_t *)j.floats)[0], UINT32_MAX);
	drop(&j);
	codec_threads_free(t);
}

/* ---- messages in pieces ---- */

enum { HEAD = 37, PIECES = 7 };

/* Makes a header and the bytes of the input, and cuts both together into pieces of odd sizes.
 * Each piece is a separate buffer. */
static void cut(struct codec_job *j, size_t bytes)
{
	static struct piece list[PIECES];
	const size_t size = HEAD + bytes, each = (size + PIECES - 1) / PIECES;

	for (uint32_t i = 0; i < PIECES; i++) {
		const size_t at = i * each, n = i + 1 < PIECES ? each : size - at;
		uint8_t *piece = malloc(n);

		assert_non_null(piece);
		for (size_t k = 0; k < n; k++)
			piece[k] = at + k < HEAD ? 0xee
						 : ((uint8_t *)j->bytes)[at + k - HEAD];
		list[i] = (struct piece){ piece, n, piece };
	}
	j->pieces = (struct pieces){ list, PIECES };
	j->skip_bytes = HEAD;
}

/* Decodes FLOATS floats from one buffer and from pieces, and compares the results. absurd:
 * position at which the input gets a number that no computation gives. If the position is FLOATS
 * or more, the input has no such number. */
static void check_pieces(struct codec_threads *t, enum tensor_format format, size_t absurd)
{
	struct codec_job encoding = job_of(4, true), whole, apart;
	float *decoded = malloc(FLOATS * sizeof(float));

	assert_non_null(decoded);
	encoding.codec = codec_of_gradient(format);
	free(encoding.bytes);
	encoding.bytes = malloc(codec_bytes(&encoding.codec, FLOATS));
	if (absurd < FLOATS)
		encoding.floats[absurd] = 1e30f;
	codec_job_run(NULL, &encoding);
	whole = encoding;
	whole.encodes = whole.measures = false;
	codec_job_run(NULL, &whole);
	apart = whole;
	apart.floats = decoded;
	apart.room = format == FORMAT_FP32 ? NULL : malloc(codec_bytes(&apart.codec, FLOATS));
	cut(&apart, codec_bytes(&apart.codec, FLOATS));
	apart.bytes = NULL;
	codec_threads_add(t, &apart);
	apart = next(t);
	assert_int_equal(apart.plausible, absurd >= FLOATS);
	if (apart.plausible)
		assert_memory_equal(decoded, whole.floats, FLOATS * sizeof(float));
	assert_null(apart.room);
	for (uint32_t i = 0; i < PIECES; i++)
		free(apart.pieces.list[i].owner);
	free(decoded);
	drop(&encoding);
}

TEST(pieces_are_decoded_as_one_message)
{
	static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8,
						      FORMAT_Q6 };
	struct codec_threads *t = made();

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		check_pieces(t, formats[i], FLOATS);
	/* An absurd number lies across each boundary between two pieces, then at the start, then at
	 * the end. */
	for (size_t i = 1; i < PIECES; i++)
		check_pieces(t, FORMAT_FP32,
			     (i * ((HEAD + FLOATS * 4 + PIECES - 1) / PIECES) - HEAD) / 4);
	check_pieces(t, FORMAT_FP32, 0);
	check_pieces(t, FORMAT_FP32, FLOATS - 1);
	check_pieces(t, FORMAT_Q8, FLOATS - 1);
	codec_threads_free(t);
}

TEST(jobs_that_nobody_takes_are_dropped)
{
	struct codec_threads *t = made();

	for (uintptr_t i = 0; i < JOBS; i++) {
		struct codec_job j = job_of(i, true);

		codec_threads_add(t, &j);
	}
	codec_threads_free(t);
	assert_int_equal(dropped, JOBS);
}
