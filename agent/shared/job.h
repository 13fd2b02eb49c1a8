/* job.h - the jobs of the worker thread: their inputs and their outputs.
 *
 * A module fills in a job, the loop gives it to the worker, and the module gets the job back when
 * the job has ended. The job borrows its inputs until the job ends. The module owns the job's
 * outputs.
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

struct body;         /* defined in agent/tensors/body.h */
struct slices;       /* defined in agent/sums/slices.h */
struct stage_output; /* defined in model/stage.h */

enum job_kind {
	/* Make prepare.stage the node's stage. If `folder` is set, JOB_RESTORE follows. If the file
	 * in `folder` cannot be used, the node keeps its present stage, and the job is
	 * `refused`. */
	JOB_PREPARE,
	JOB_LOAD,    /* copy weights and moments from the standby copy of the same stage */
	JOB_RESTORE, /* read weights and moments from the checkpoint of `iteration` in `folder` */
	JOB_MIX,     /* add a neighbouring stage's weights and moments to the stage's */
	JOB_MEASURE, /* zero the gradient; time a forward and a backward pass; hash the weights */
	JOB_TASK,    /* run a task of a microbatch, or of a validation microbatch */
	JOB_ZERO,    /* zero the gradient */
	/* Encode the gradient as parts of `slices`; `bodies` gets the parts for the other
	 * replicas. */
	JOB_GRADIENT,
	JOB_SUM,  /* add all replicas' parts (slices_sum); `bodies` gets a copy of the sum */
	JOB_NORM, /* decode and hash the sums in `slices`, and compute their sum of squares */
	/* Make an AdamW step with the sum in `slices`; zero the gradient; hash. */
	JOB_STEP,
	/* Replace layers by the layers of the standby copy (stage_stack); zero the gradient;
	 * hash. */
	JOB_STACK,
	JOB_STATE, /* copy a part of weights and moments to `out` (3, P) */
	/* The last two jobs work on the standby copy. */
	JOB_KEEP,  /* allocate a standby copy of prepare.stage; MSG_NO_STAGE: free the copy */
	JOB_FOLLOW /* store pieces in the standby copy; then step it if `slices` is set */
};

/* Part of the jobs PREPARE and KEEP. */
struct job_prepare {
	uint8_t stage;
	bool from_seed; /* PREPARE: the stage must have its initial weights */
	/* PREPARE: n_corpus paths of the corpus files on this machine, each ended by NUL; NULL: the
	 * paths in compute_setup. */
	const char *corpus;
	uint32_t n_corpus;
	/* The fields below are outputs. PREPARE sets all of them. KEEP sets only those outputs
	 * whose comment names KEEP. */
	size_t parameters;  /* output of PREPARE and KEEP: number of parameters P */
	size_t activation;  /* output: floats of an activation, B * T * C */
	bool takes_encoded; /* output: stage_takes_encoded of the stage */
	size_t stage_bytes; /* output: size of the stage in the machine's memory, bytes */
	/* Output of PREPARE and KEEP: free bytes on the device after the job; 0: unknown. */
	uint64_t device_free_bytes;
};

/* Part of the job MIX, which adds weight * state to the stage's weights and moments. If `first`
 * is true, replaces the weights and moments by weight * state. */
struct job_mix {
	const float *state; /* weights and moments of a neighbouring stage, shape (3, P) */
	float weight;
	bool first;
};

/* Part of the job TASK. */
struct job_task {
	enum task_kind kind; /* kind of the task; TASK_EVALUATE is not used */
	bool evaluate;
	bool count; /* the task's gradient counts: it is added to the stage's gradient */
	uint32_t slot, shard;
	/* Position of the microbatch in the shard's data, or in the validation data if `evaluate`
	 * is set. */
	uint64_t position;
	struct tensor_bytes in; /* input of the task; `at` NULL: the task reads tokens */
	/* The input of the task that probably runs next, and the body that owns this input
	 * (body.h); NULL: no such input. The job is a user of the body. Unique numbers identify
	 * the inputs of this task and of the next one (stage_task). */
	struct tensor_bytes next;
	struct body *next_owner;
	uint64_t in_number, next_number;
	/* The task's output. The caller sets the codec. The job allocates the bytes with malloc
	 * and sets them; the caller then owns them. `at` NULL: no output. */
	struct tensor_bytes out;
	/* The job gives the output as `leaving`, and does not wait until the device has copied it
	 * to the host. */
	bool leaves;
	struct stage_output *leaving; /* output, owned by the caller; NULL: none */
	float loss;                   /* output of TASK_LOSS */
};

/* Part of the jobs STEP and FOLLOW. */
struct job_step {
	float scale;
	struct adamw adamw;
};

/* Part of the job FOLLOW. */
struct job_follow {
	const float *state; /* fetched weights and moments, shape (3, P) */
	/* One flag for each piece: true if the job stores the piece in the copy. NULL: the job
	 * stores no piece. */
	const bool *fresh;
	bool whole; /* the job completes the copy, and therefore hashes it */
};

enum { STATE_PART = 4 << 20 };

/* Part of the job STATE. A large stage is copied by several jobs, and tasks run between these
 * jobs. The first job allocates `out`. The caller hands `out` and `copied` on to each later
 * job. */
struct job_state {
	size_t most;   /* this job copies up to this many floats of each array (>= STATE_PART) */
	size_t copied; /* floats of each array that are copied so far; each job adds to it */
	bool whole;    /* output: all floats are copied */
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
	/* PREPARE, RESTORE: the folder of the run's checkpoints; NULL: no checkpoint is read. */
	const char *folder;
	/* PREPARE, RESTORE: iteration of the checkpoint. STEP, FOLLOW: iteration of the step.
	 * LOAD: iteration of the copy; only assign.c reads it, after the job. */
	uint64_t iteration;
	/* PREPARE, RESTORE: hash that the checkpoint's file must have. MIX: hash that the
	 * neighbour's weights must have. 0: unknown. */
	uint64_t expected_hash;
	bool of_copy;           /* NORM, STATE: the job works on the standby copy */
	bool for_checkpoint;    /* STATE: the output is for a checkpoint (save.c) */
	struct slices *slices;  /* GRADIENT, SUM, NORM, STEP, FOLLOW: slices of the gradient */

	/* ---- outputs ---- */
	int rc; /* 0, or an error that err describes */
	struct error err;
	/* true: the error rc was caused by the job's input, which is a file or a neighbour's
	 * weights */
	bool refused;
	int64_t began_us, ended_us; /* times at which the job began and ended, monotonic clock */
	/* Output of STATE, shape (3, P), from malloc; the caller owns it. NULL: none. */
	float *out;
	/* Array with slices_count entries. As the output of GRADIENT it has the encoded slices,
	 * except this node's own slice. As the output of SUM it has the encoded sum of this
	 * node's slice, and NULL for the other slices. The caller owns the array and each slice,
	 * all from malloc. */
	void **bodies;
	double sum_squares; /* output of NORM: sum of squares of the summed gradient */
	uint64_t hash;      /* output of MEASURE, STEP, STACK, FOLLOW: hash of the weights */
};

#endif
