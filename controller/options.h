/* options.h - the command line of skippipe-controller. */
#ifndef CONTROLLER_OPTIONS_H
#define CONTROLLER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "schedule/search/search.h"
#include "wire/msg.h"

enum { OPTIONS_MOST_ACTS = 4096, OPTIONS_MOST_CORPUS = 1024 };

/* --at ITERATION:VERB[:ARGUMENT]: an act that applies from the start of that iteration. */
struct scripted_act {
	uint64_t iteration;
	enum command_verb verb;
	enum fault_kind fault;
	int node;
	int64_t value;
	bool done;
};

struct options {
	const char *run_dir;  /* required */
	bool resume;          /* run_dir holds a run to continue */
	bool replay;          /* run_dir holds a run to show to consoles */
	double speed;         /* of a replay: 1 is real time */
	const char *listen;   /* default tcp://127.0.0.1:0 */
	const char *key;      /* required */
	const char *admitted; /* required */
	const char *cluster;  /* file; NULL: built from regions */
	const char *regions;  /* file; NULL: the shipped one */
	/* "regions" or a cluster file, whose network and compute are emulated; NULL: none */
	const char *emulate;
	bool measure_only; /* ends the run once the cluster is measured */
	const char *model; /* preset or file; default "tiny" */
	const char *name;
	int supervisor; /* file descriptor; -1: none */
	bool embedded;
	uint32_t agents; /* default 20 */
	int stages[MSG_STAGES], n_stages;
	uint32_t skip;       /* stages that each microbatch skips */
	uint64_t iterations; /* 0: until the operator stops the run */
	/* Scale of an emulation; < 0: chosen so that an iteration takes 2 to 3 s; 0: not emulated
	 */
	double time_scale;
	uint64_t seed;
	uint32_t batch, sequence, microbatches; /* 0: as in the recipe or the cluster */
	uint32_t eval_every, eval_batches;
	uint32_t checkpoint_every; /* commits; 0: never */
	uint32_t threads;          /* threads of an agent */
	const char *corpus[OPTIONS_MOST_CORPUS];
	uint32_t n_corpus;
	bool jsonl;
	bool serialise;
	/* activations and gradients travel as bf16, with half the bytes */
	bool bf16;
	bool overlap_sync;             /* each stage sums as soon as it can */
	enum plan_algorithm algorithm; /* plans the run */
	bool assignment_given;         /* nodes keep the stages of the cluster file */
	/* a silent member is dead after this time, or later if its links are slow */
	int64_t silence_us;
	uint64_t keep_tasks; /* iterations whose tasks are all stored */
	int64_t overdue_us;  /* limit without progress, beyond the time of the tasks */
	int64_t gather_us;   /* after this time the run starts with the agents that are present */
	double budget_s;     /* for the first plan; with a baseline algorithm, for every plan */
	double ahead_s;      /* for each plan made in advance; 0: none */
	enum log_level level;
	/* Options that the command line changes when it resumes a run */
	struct {
		bool iterations, eval_every, eval_batches, checkpoint_every;
	} overridden;
	struct scripted_act acts[OPTIONS_MOST_ACTS];
	uint32_t n_acts;
};

/* Returns 0; 1 if help was asked for and printed; -EINVAL with a message. *o borrows from argv. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);

#endif
