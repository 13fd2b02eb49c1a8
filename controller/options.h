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

/* --at ITERATION:VERB[:ARGUMENT]: an act given before that iteration starts. */
struct scripted_act {
	uint64_t iteration;
	enum command_verb verb;
	enum fault_kind fault;
	int node;
	int64_t value;
	bool done;
};

struct options {
	const char *run_dir;  /* needed */
	bool resume;          /* run_dir holds a run: take it over */
	bool replay;          /* run_dir holds a run: serve it to consoles */
	double speed;         /* of a replay, times real; 1 */
	const char *listen;   /* tcp://127.0.0.1:0 */
	const char *key;      /* needed */
	const char *admitted; /* needed */
	const char *cluster;  /* file; NULL: made from regions */
	const char *regions;  /* file; NULL: the shipped one */
	/* "regions" or a cluster file: its network and compute; NULL: nothing is */
	const char *emulate;
	bool measure_only; /* ends once the cluster is measured */
	const char *model; /* preset or file; "tiny" */
	const char *name;
	int supervisor; /* fd; -1 */
	bool embedded;
	uint32_t agents; /* 20 */
	int stages[MSG_STAGES], n_stages;
	uint32_t skip;       /* stages left out */
	uint64_t iterations; /* 0: until told */
	/* Of an emulation; < 0: chosen so that an iteration takes 2 to 3 s; 0: none */
	double time_scale;
	uint64_t seed;
	uint32_t batch, sequence, microbatches; /* 0: the recipe's, the cluster's */
	uint32_t eval_every, eval_batches;
	uint32_t checkpoint_every; /* commits; 0: never */
	uint32_t threads;          /* of an agent */
	const char *corpus[OPTIONS_MOST_CORPUS];
	uint32_t n_corpus;
	bool jsonl;
	bool serialise;
	bool bf16;                     /* activations and gradients travel in half of the bytes */
	bool overlap_sync;             /* each stage sums as soon as it can */
	enum plan_algorithm algorithm; /* that plans the run */
	bool assignment_given;         /* assignment: as the cluster pins it */
	int64_t silence_us;  /* a member not heard for so long, or longer by its links, is dead */
	uint64_t keep_tasks; /* iterations of which the store has all tasks */
	int64_t overdue_us;  /* so long nothing of an iteration may end, beside what tasks take */
	int64_t gather_us;   /* wait so long for all agents, then go with those there */
	double budget_s;     /* of the first plan; of a baseline every plan */
	double ahead_s;      /* of each plan for a loss; 0: none are made */
	enum log_level level;
	/* Of a run that is gone on with: what was said anew. */
	struct {
		bool iterations, eval_every, eval_batches, checkpoint_every;
	} overridden;
	struct scripted_act acts[OPTIONS_MOST_ACTS];
	uint32_t n_acts;
};

/* 0; 1: help was asked for and printed; -EINVAL with a message: usage. Pointers into argv. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);

#endif
