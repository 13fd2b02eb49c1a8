/* compute.h - what the worker does: every touch of the stage and the corpus, as jobs.
 *
 * A struct compute belongs to the thread that runs compute_run; others read it only while no job
 * is under way. A job's inputs are borrowed until it is done, its outputs given.
 */
#ifndef AGENT_COMPUTE_H
#define AGENT_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sums/slices.h"
#include "base/error.h"
#include "base/task_kind.h"
#include "model/adamw.h"
#include "model/config.h"
#include "model/stage.h"

struct compute; /* opaque */

struct compute_setup {
	struct model_config config;
	uint32_t batch, sequence, slots, threads, n_shards;
	uint64_t seed;
	char device[DEVICE_NAME_SIZE];
	size_t memory_bytes; /* most that a stage may take of the machine's memory; 0: what is free */
	enum recompute recompute;
	char *corpus;       /* n_corpus paths, one after another, each ended by NUL; copied */
	uint32_t n_corpus;  /* 0: the default corpus */
	size_t corpus_size; /* bytes of corpus */
};

enum job_kind {
	JOB_PREPARE, /* have stage `stage`; from_seed: with its initial weights; with `folder` RESTORE comes next, and
		      * where it could not be done what is there stays: refused */
	JOB_LOAD,    /* weights and moments of the copy of that stage */
	JOB_RESTORE, /* weights and moments from the checkpoint of `iteration` in `folder` */
	JOB_MIX,     /* weights and moments += `weight` x `state`; `first`: = */
	JOB_MEASURE, /* gradient to zero; measured seconds, hash */
	JOB_TASK,    /* `task` of the microbatch in `slot`, or of a validation microbatch */
	JOB_ZERO,     /* gradient to zero */
	JOB_GRADIENT, /* a copy of the gradient in the slices of `slices`: bodies */
	JOB_SUM,      /* slices_sum */
	JOB_NORM,     /* sum of squares of the staging buffer of `slices` */
	JOB_STEP,     /* AdamW with the staging buffer of `slices`, gradient to zero, hash */
	JOB_STATE,    /* weights and moments, of the copy if `kept`: out (3, P); hash */
	/* The copy of a stage that is kept for others. */
	JOB_KEEP,  /* room for stage `stage`; MSG_NO_STAGE: free it */
	JOB_FOLLOW /* the `fresh` pieces of `state` (3, P) into it; with `slices` a step;
		    * `whole`: hash */
};

struct job {
	enum job_kind kind;
	/* PREPARE */
	uint8_t stage;
	bool from_seed;
	/* PREPARE, RESTORE */
	const char *folder; /* of the run; NULL */
	uint64_t wanted;    /* the hash of the file, or of the state's weights; 0: not known */
	bool refused;       /* rc says of what was given: the file, or a neighbour's state */
	/* MIX, FOLLOW, STATE, NORM */
	const float *state;
	float weight;
	bool first, kept, whole, save;
	const bool *fresh; /* (pieces) */
	/* TASK. in (B, T, C), NULL for tokens. */
	enum task_kind task; /* no TASK_EVALUATE */
	bool evaluate, count;
	uint32_t slot, shard;
	uint64_t position;  /* in the shard's data; evaluate: of the validation part */
	const float *in;
	/* GRADIENT, SUM, NORM, STEP, FOLLOW */
	struct slices *slices;
	float scale;
	struct adamw adamw;
	uint64_t iteration;

	/* ---- outputs ---- */
	int rc;             /* 0, or what failed; then err says so */
	struct error err;
	int64_t began_us, ended_us; /* monotonic clock */
	float *out;         /* (B, T, C), or STATE's; malloc, given; NULL none */
	float loss;
	float **bodies;     /* (slices_count) slices, malloc, each given, and the array itself */
	double sum_squares;
	uint64_t hash;
	double forward_s, backward_s, loss_s; /* MEASURE */
	uint64_t corpus_hash;                 /* MEASURE; 0 without a corpus */
	size_t parameters, activation;        /* PREPARE, KEEP: P; PREPARE: B * T * C */
	size_t stage_bytes;                   /* PREPARE: of the machine's memory */
	uint64_t device_free_bytes; /* PREPARE, KEEP: left afterwards; 0: unknown */
};

/* Copies the setup. -ENOMEM. */
int compute_new(struct compute **out, const struct compute_setup *setup);
void compute_free(struct compute *c); /* NULL is allowed */
/* Whether a compute made with these is as good as this one. */
bool compute_fits(const struct compute *c, const struct compute_setup *setup);

void compute_run(void *compute, void *job);
/* Frees a job's outputs; the job itself is the caller's. */
void job_clear(struct job *j);

#endif
