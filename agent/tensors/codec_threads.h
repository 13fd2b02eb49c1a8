/* codec_threads.h - threads that encode, check and decode tensors for the event loop, which must
 * not be blocked.
 *
 * Jobs run in several threads at once. The jobs of one link are returned in the order in which
 * they were added, so that no tensor overtakes an earlier one. Each thread is a struct worker
 * (worker.h). Only the event loop calls these functions.
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

/* The number of threads is the same on every machine, so that a simulated run repeats anywhere. */
enum { CODEC_THREADS = 4 };

struct codec_threads; /* opaque */

struct codec_job {
	/* true: encodes floats to bytes; false: checks the bytes and decodes them. */
	bool encodes;
	/* Encoding: a tensor that the device has encoded. The job then only waits for the tensor
	 * and writes it to `bytes`. NULL: none.
	 */
	struct stage_output *leaving;
	bool measures;  /* the job also measures the signal-to-noise ratio of the encoded bytes */
	uint16_t node;  /* the node at the other end of the link */
	struct codec codec;
	size_t n;       /* number of floats */
	/* Decoding: the stage takes encoded bytes, so the job only checks them and copies them to
	 * `floats`. */
	bool stays_encoded;
	/* n floats, or codec_bytes bytes if stays_encoded is set. Borrowed until the caller takes
	 * the job. */
	float *floats;
	void *bytes; /* codec_bytes bytes, borrowed until the caller takes the job */
	/* Decoding: the pieces of a message. The input begins skip_bytes after the start of the
	 * pieces, and `bytes` is not used. The list of pieces is borrowed until the caller takes
	 * the job. */
	struct pieces pieces;
	size_t skip_bytes;
	/* codec_bytes bytes from malloc, owned by the job. The job joins the pieces in this
	 * memory. In fp32, and if stays_encoded is set, this memory is not used. */
	void *room;
	void *owner;    /* for the caller's use */
	bool of_gradient; /* for the caller's use: the tensor is a gradient, not an activation */
	int64_t computed_us; /* for the caller's use: time at which the floats were computed */
	/* If the caller never takes the job, this function frees the memory that the job owns. */
	void (*drop)(struct codec_job *job);
	/* ---- outputs ---- */
	bool plausible; /* result of codec_is_plausible; if false, `floats` must not be used */
	float snr_db;
	int rc; /* result of stage_output_collect; err describes an error */
	struct error err;
};

/* Gives *out (codec_threads_free). Errors are those of worker_new. */
int codec_threads_new(struct codec_threads **out, struct error *err);
/* Waits for the running jobs, then drops all jobs. NULL is allowed. */
void codec_threads_free(struct codec_threads *t);
/* Gives the descriptors to poll for POLLIN. */
void codec_threads_fds(const struct codec_threads *t, int fds[CODEC_THREADS]);

/* Adds a job. */
void codec_threads_add(struct codec_threads *t, const struct codec_job *job);
/* Returns true if enough jobs wait to keep the threads busy. The caller should then accept no more
 * messages. This bounds the memory for jobs, because the senders then wait. */
bool codec_threads_full(const struct codec_threads *t);
/* Returns the number of tensors that wait to be decoded or are being decoded. NULL is allowed. */
uint32_t codec_threads_decoding(const struct codec_threads *t);
/* Starts waiting jobs on idle threads. Gives the next job that has ended. Returns false if no job
 * has ended, or if t is NULL.
 */
bool codec_threads_take(struct codec_threads *t, struct codec_job *out);
/* Runs a job in the caller's thread. The first argument is not used. */
void codec_job_run(void *unused, void *job);

#endif
