/* options.h - the command line of skippipe-controller. */
#ifndef CONTROLLER_OPTIONS_H
#define CONTROLLER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "model/cut.h"
#include "schedule/search/search.h"
#include "base/tensor_format.h"
#include "wire/msg.h"

enum { OPTIONS_MOST_ACTS = 4096, OPTIONS_MOST_CORPUS = 1024, OPTIONS_MOST_SET = 16 };

/* --at ITERATION:VERB[:ARGUMENT]: an act that applies from the start of that iteration. */
struct scripted_act {
	uint64_t iteration;
	enum command_verb verb;
	enum fault_kind fault;
	int node;
	int64_t value;
	const char *text; /* of COMMAND_CUT: the layers of each stage; otherwise NULL */
	bool done;
};

/* How the run is watched without a console (controller/monitor). Not recorded. */
struct options_monitor {
	const char *metrics;   /* address of the HTTP server; NULL: none */
	const char *on_alert;  /* a line for sh; NULL: none */
	const char *alert_url; /* URL or @FILE; NULL: none */
};

/* The task of this process, and the form of its events. */
struct options_mode {
	bool resume;       /* run_dir holds a run: continue it */
	bool replay;       /* run_dir holds a run: serve it to consoles */
	bool measure_only; /* the run ends once the cluster is measured */
	bool embedded;     /* the controller was started by `skippipe demo` */
	bool jsonl;        /* events are written as JSON lines */
	struct options_monitor monitor;
	double speed;      /* speed of a replay, as a multiple of real time; 1 by default */
};

struct options_cluster {
	const char *file;    /* file of the cluster; NULL: the cluster is made from regions */
	const char *regions; /* file of the regions; NULL: the shipped one */
	/* "regions" or a cluster file: network and compute to emulate; NULL: nothing is emulated */
	const char *emulate;
	uint32_t agents; /* 20 */
	/* A new run does not begin with fewer; 1: --agents has no MIN */
	uint32_t least_agents;
	int stages[MSG_STAGES], n_stages;
	/* The controller chooses the stages once the agents are measured. Until then `stages` is
	 * provisional. */
	bool chooses_stages;
	/* Real seconds of an emulated second. < 0: chosen so that iterations take 2 to 3 s. 0: no
	 * delays. */
	double time_scale;
	bool serialise;        /* transfers from one node wait for one another */
	bool assignment_given; /* nodes keep the stages that the cluster file pins */
};

struct options_training {
	const char *model; /* model preset or file; "tiny" by default */
	const char *set[OPTIONS_MOST_SET]; /* FIELD=VALUE of the hyperparameters */
	uint32_t n_set;
	struct stage_layers cut; /* of a new run; n == 0: equally, or as the model's file is cut */
	const char *from;  /* folder of the first weights; NULL: those of the seed */
	bool new_corpus;   /* another corpus than that of the first weights is intended */
	bool rehearse;     /* agents compute nothing (model/rehearsal/rehearsal.h) */
	uint32_t scale_bytes; /* divisor of the tensors' bytes in a rehearsal; 0: 1000 */
	const char *corpus[OPTIONS_MOST_CORPUS];
	uint32_t n_corpus;
	/* 0: batch and sequence as in the hyperparameters, microbatches as in the cluster */
	uint32_t batch, sequence, microbatches;
	uint32_t threads;              /* threads of each agent */
	bool by_visits; /* gradients are divided by each stage's visits, not by microbatches */
	struct tensor_formats formats; /* formats with which the run begins */
};

struct options_planning {
	enum plan_algorithm algorithm;
	bool phase_moves;  /* nodes change their stage between phases of the skip schedule */
	bool overlap_sync; /* each stage sums as soon as its own gradients are counted */
	bool no_swaps;     /* microbatches visit stages in ascending order */
	double budget_s;   /* seconds for the first plan; for a baseline, seconds for every plan */
	double ahead_s;    /* seconds for each plan made ahead for a loss; 0: none are made */
};

struct options_limits {
	int64_t silence_us; /* a node that is silent for longer, plus what its links need, is dead
			     */
	int64_t overdue_us; /* how long an iteration may make no progress, beyond its tasks' times
			     */
	int64_t gather_us;  /* how long to wait for all agents before starting without some */
};

/* Options that the command line of a resumed run may change. */
enum option_change {
	CHANGE_ITERATIONS,
	CHANGE_EVAL_EVERY,
	CHANGE_EVAL_BATCHES,
	CHANGE_CHECKPOINT_EVERY,
	CHANGE_SKIP_BAD_STEPS,
	CHANGE_KEEP_TASKS,
	CHANGE_SILENCE,
	CHANGE_OVERDUE,
	CHANGE_GATHER,
	CHANGE_BUDGET,
	CHANGE_AHEAD,
	CHANGES
};

struct options {
	const char *run_dir; /* needed */
	const char *name;
	const char *listen;   /* tcp://127.0.0.1:0 */
	/* Files of the key and of the admitted list; NULL: those of this user (network.c) */
	const char *key;
	const char *admitted;
	/* File descriptor of the supervisor's socket; -1: there is no supervisor */
	int supervisor;
	enum log_level level;
	uint64_t seed;
	bool seed_is_given; /* on the command line of a new run */
	uint32_t skip;       /* stages that a microbatch skips */
	uint32_t skip_share; /* percent of the microbatches that skip them; 0: all */
	bool stack; /* stages that begin to be visited start from trained stages */
	const char *recipe;        /* its name (base/skip_schedule.h); NULL: not given */
	const char *skip_schedule; /* as "4,3,1,0"; replaces skip; NULL: not given */
	const char *always;  /* stages that every microbatch visits, as "0,5"; NULL: not given */
	uint64_t iterations; /* iterations of the run; 0: until it is stopped */
	uint64_t keep_tasks; /* newest iterations whose tasks the store keeps in full */
	uint32_t eval_every, eval_batches;
	uint32_t skip_bad_steps; /* how often in a row the data of an iteration may be skipped */
	uint32_t checkpoint_every; /* number of commits between checkpoints; 0: no checkpoints */
	const char *checkpoint_to; /* the store's command (model/files/remote.h); NULL: none */
	struct options_mode mode;
	struct options_cluster cluster;
	struct options_training training;
	struct options_planning planning;
	struct options_limits limits;
	bool changed[CHANGES]; /* the command line sets this option */
	struct scripted_act acts[OPTIONS_MOST_ACTS];
	uint32_t n_acts;
};

/* Returns 0, or -EINVAL with a message. Returns 1 if help was asked for, which is then printed. *o
 * borrows from argv. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);
/* Sets the options with which a controller goes on in the process of another one, whose options
 * were `was`: those that the record does not have. *o borrows what `was` borrows, and `listen`. */
int options_again(struct options *o, const struct options *was, const char *listen,
		  struct error *err);

#endif
