/* job.h - the jobs of the worker thread: their inputs and their outputs.
 *
 * A module fills in a job, the loop gives it to the worker, and the module receives it when it has
 * ended. A job's inputs are borrowed until the job ends; its outputs are given to the caller.
 */
#ifndef AGENT_JOB_H
#define AGENT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/task_kind.h"
#include "model/adamw.h"
#include "model/codec/codec.h"

struct body;         /* agent/tensors/body.h defines it */
struct slices;       /* agent/sums/slices.h defines it */
struct stage_output; /* model/stage.h defines it */

enum job_kind {
	JOB_PREPARE,  /* make prepare.stage the node's stage; with a folder, JOB_RESTORE follows. If
		       * the folder's file cannot be used, the node keeps its present stage, and
		       * the job is `refused` */
	JOB_LOAD,     /* take weights and moments from the standby copy of the same stage */
	JOB_RESTORE,  /* read weights and moments from the checkpoint of `iteration` in `folder` */
	JOB_MIX,      /* add a neighbour's weights and moments to the stage's */
	JOB_MEASURE,  /* set the gradient to zero; measure the times; hash */
	JOB_TASK,     /* run a task of a microbatch, or of a validation microbatch */
	JOB_ZERO,     /* set the gradient to zero */
	/* Encode the gradient as parts of `slices`; `bodies` gets the parts for other nodes. */
	JOB_GRADIENT,
	JOB_SUM,      /* add the nodes' parts (slices_sum); `bodies` gets a copy of the sum */
	JOB_NORM,     /* decode `slices` into the staging buffer, and sum its squares */
	JOB_STEP,     /* AdamW with the staging buffer of `slices`; gradient to zero; hash */
	JOB_STACK,    /* take the standby copy's layers (stage_stack); gradient to zero; hash */
	JOB_STATE,    /* copy a part of weights and moments to out (3, P) */
	/* The next two jobs work on the standby copy. */
	JOB_KEEP,  /* allocate a copy of prepare.stage; MSG_NO_STAGE: free the copy */
	JOB_FOLLOW /* store pieces in the copy, and then step it if `slices` is set */
};

/* Part of the jobs PREPARE and KEEP. */
struct job_prepare {
	uint8_t stage;
	bool from_seed; /* PREPARE: the stage must have its initial weights */
	/* PREPARE: n_corpus paths of the corpus on this machine, each ended by NUL; NULL: the paths
	 * of compute_setup. */
	const char *corpus;
	uint32_t n_corpus;
	/* Outputs. PREPARE sets all of them; KEEP sets only those marked with KEEP. */
	size_t parameters;  /* output of PREPARE and KEEP: number of parameters P */
	size_t activation;  /* output: floats of an activation, B * T * C */
	bool takes_encoded; /* output: stage_takes_encoded */
	size_t stage_bytes; /* output: bytes of the machine's memory that the stage takes */
	/* Output of PREPARE and KEEP: bytes left on the device afterwards; 0: unknown. */
	uint64_t device_free_bytes;
};

/* MIX: adds weight * state to the stage's weights and moments. If `first` is set, it replaces them
 * by weight * state. */
struct job_mix {
	const float *state; /* (3, P) a neighbour's weights and moments */
	float weight;
	bool first;
};

/* Part of the job TASK. */
struct job_task {
	enum task_kind kind; /* kind of the task; TASK_EVALUATE is not used */
	bool evaluate;
	bool count; /* the task adds to the gradient */
	uint32_t slot, shard;
	/* Position of the microbatch in the shard's data. If `evaluate` is set: in the validation
	 * data. */
	uint64_t position;
	struct tensor_bytes in; /* NULL: the task reads tokens */
	/* The input that the next task will probably have, and its owner, of which the job is a
	 * user; NULL: none. Each input has a number (stage_task). */
	struct tensor_bytes next;
	struct body *next_owner;
	uint64_t in_number, next_number;
	/* The caller sets the codec. Output: the bytes, malloc, given; NULL: none. */
	struct tensor_bytes out;
	bool leaves; /* the output is given as `leaving`, on its way from the device */
	struct stage_output *leaving; /* output, given; NULL: none */
	float loss;                   /* output of TASK_LOSS */
};

/* Part of the jobs STEP and FOLLOW. */
struct job_step {
	float scale;
	struct adamw adamw;
};

/* Part of the job FOLLOW. */
struct job_follow {
	const float *state; /* (3, P) fetched weights and moments */
	const bool *fresh;  /* (pieces) true for the pieces to store in the copy; NULL: none */
	bool whole;         /* the copy is complete after this job, so the job hashes it */
};

enum { STATE_PART = 4 << 20 };

/* STATE: a large stage is copied by several jobs, between which tasks run. The first job allocates
 * `out`, and the caller gives `out` and `copied` to each later one. */
struct job_state {
	size_t most;   /* numbers of each array to copy in this job: at least STATE_PART */
	size_t copied; /* numbers of each array that earlier jobs, or this one, have copied */
	bool whole;    /* output: all numbers are copied */
};

/* Outputs of MEASURE. */
struct job_measured {
	double forward_s, backward_s, loss_s;
	uint64_t corpus_hash; /* hash of the corpus; 0: there is none */
};

struct job {
	enum job_kind kind;
	struct job_prepare prepare;
	struct job_mix mix;
	struct job_task task;
	struct job_step step;
	struct job_follow follow;
	struct job_state state;
	struct job_measured measured;
	/* PREPARE, RESTORE: the run's folder; NULL: no checkpoint is read. */
	const char *folder;
	/* Iteration of the job (PREPARE, RESTORE, STEP, FOLLOW); LOAD only passes the iteration
	 * through. */
	uint64_t iteration;
	/* PREPARE, RESTORE: hash that the file must have; MIX: hash that the neighbour's weights
	 * must have; 0: unknown. */
	uint64_t expected_hash;
	bool of_copy;           /* NORM, STATE: the job works on the standby copy */
	bool for_checkpoint;    /* STATE: the output is for a checkpoint (save.c) */
	struct slices *slices;  /* slices of the gradient (GRADIENT, SUM, NORM, STEP, FOLLOW) */

	/* ---- outputs ---- */
	int rc; /* 0, or an error that err describes */
	struct error err;
	bool refused; /* rc is the fault of the input: a file, or a neighbour's state */
	int64_t began_us, ended_us; /* when the job began and ended, monotonic clock */
	/* Output of STATE (3, P); malloc, given; NULL: none. */
	float *out;
	/* (slices_count) output of GRADIENT: the encoded slices, except this node's own. Output of
	 * SUM: the encoded sum of this node's own slice. Each slice and the array: malloc,
	 * given. */
	void **bodies;
	double sum_squares; /* output of NORM: sum of the squares of the gradient's sum */
	uint64_t hash;      /* output of MEASURE, STEP, STACK, FOLLOW: hash of the weights */
};

#endif
