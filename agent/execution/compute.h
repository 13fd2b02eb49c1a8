/* compute.h - the jobs of the worker thread: all work on the stage, its standby copy and the
 * corpus.
 *
 * A struct compute belongs to the thread that runs compute_run; other threads may read it while
 * no job runs, and at no other time.
 */
#ifndef AGENT_COMPUTE_H
#define AGENT_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/shared/job.h"
#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

struct compute; /* opaque */

struct compute_setup {
	struct model_config config;
	uint32_t batch, sequence, slots, threads, n_shards;
	uint64_t seed;
	/* Number of AdamW steps that were made on the weights before the run. */
	uint64_t steps_before;
	char device[DEVICE_NAME_SIZE];
	size_t memory_bytes; /* memory limit of a stage; 0: all free memory of the machine */
	double quota; /* number of processors that this process may use on average (cores_quota) */
	enum recompute recompute;
	bool has_tokenizer; /* the model has a tokenizer, so its tokens are not bytes */
	/* n_corpus paths of corpus files, each ended by NUL; compute_new copies them */
	char *corpus;
	uint32_t n_corpus;  /* number of paths; 0: the default corpus */
	size_t corpus_size; /* size of `corpus`, including the NUL after each path, bytes */
};

/* Copies the setup. -ENOMEM: no memory for a batch of tokens. */
int compute_new(struct compute **out, const struct compute_setup *setup);
void compute_free(struct compute *c); /* NULL is allowed */
/* Returns true if c was made with an equal setup, so that it can be used again. */
bool compute_fits(const struct compute *c, const struct compute_setup *setup);

/* Runs a job (struct job) on a struct compute and sets the job's outputs. Give this function to
 * worker_start. */
void compute_run(void *compute, void *job);
/* Frees a job's outputs, but not the job itself. */
void job_clear(struct job *j);

#endif
