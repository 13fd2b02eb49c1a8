/* codec_threads.h - threads that encode, check and decode tensors, so that the event loop does not.
 *
 * Jobs run in several threads at once. The jobs of one link end in the order in which they were
 * added, so that a large tensor is not overtaken by a later one. The threads are those of worker.h;
 * only the event loop calls these functions.
 */
#ifndef AGENT_CODEC_THREADS_H
#define AGENT_CODEC_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/codec/codec.h"
#include "model/stage.h"
#include "wire/pieces.h"

/* The number of threads does not depend on the machine, so that a simulated run repeats anywhere.
 * Idle threads cost nothing. */
enum { CODEC_THREADS = 4 };

struct codec_threads; /* opaque */

struct codec_job {
	/* true: encodes floats to bytes; false: checks the bytes and decodes them. */
	bool encodes;
	/* Encoding: the device has encoded the tensor, which is collected to `bytes`; NULL: none.
	 */
	struct stage_output *leaving;
	bool measures;  /* the job also measures the signal to noise of the encoded bytes */
	uint16_t node;  /* the node at the other end of the link */
	struct codec codec;
	size_t n;       /* number of floats */
	/* Decoding: the bytes stay encoded. They are checked, and copied to `floats`. */
	bool stays_encoded;
	/* (n), or (codec_bytes) if stays_encoded; borrowed until the job is taken */
	float *floats;
	void *bytes;    /* (codec_bytes); borrowed until the job is taken */
	/* Decoding a message in pieces: its bytes from skip_bytes on, instead of `bytes`. The list
	 * is borrowed until the job is taken. */
	struct pieces pieces;
	size_t skip_bytes;
	void *room;     /* (codec_bytes), malloc; owned: joins pieces that are not in fp32 */
	void *owner;    /* for the caller's use */
	bool of_gradient; /* for the caller's use: the tensor is a gradient, not an activation */
	int64_t computed_us; /* the caller's: when the floats were computed */
	void (*drop)(struct codec_job *job); /* frees what the job owns, if it is never taken */
	/* ---- outputs ---- */
	bool plausible; /* codec_is_plausible; if false, `floats` means nothing */
	float snr_db;
	int rc; /* of stage_output_collect; err describes it */
	struct error err;
};

/* Gives *out (codec_threads_free). Errors as worker_new. */
int codec_threads_new(struct codec_threads **out, struct error *err);
/* Waits for the jobs that run, and drops all jobs. NULL is allowed. */
void codec_threads_free(struct codec_threads *t);
/* Gives the descriptors to poll for POLLIN. */
void codec_threads_fds(const struct codec_threads *t, int fds[CODEC_THREADS]);

/* Adds a job. */
void codec_threads_add(struct codec_threads *t, const struct codec_job *job);
/* Returns true if enough jobs wait to keep the threads busy. The caller should then take no more
 * messages, so that memory is bounded and the senders wait. */
bool codec_threads_full(const struct codec_threads *t);
/* Returns the number of tensors that wait to be decoded or are being decoded. t may be NULL. */
uint32_t codec_threads_decoding(const struct codec_threads *t);
/* Starts waiting jobs on idle threads, and gives the next ended job. Returns false if there is
 * none, or t is NULL.
 */
bool codec_threads_take(struct codec_threads *t, struct codec_job *out);
/* Runs a job in the caller's thread. */
void codec_job_run(void *unused, void *job);

#endif
