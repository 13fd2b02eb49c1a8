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
	const char *argument; /* the text after the act's name, such as 30%:2; NULL: none */
	bool done;
};

/* How the run is monitored without a console (controller/monitor). These options are not
 * recorded. */
struct options_monitor {
	const char *metrics;   /* address of the HTTP server for metrics; NULL: none */
	const char *on_alert;  /* shell command to run for each alert; NULL: none */
	const char *alert_url; /* URL to call for each alert, or @FILE; NULL: none */
};

/* Mode of this process, and the form of its events. */
struct options_mode {
	bool resume;       /* continue the run that run_dir holds */
	bool replay;       /* serve the recorded run in run_dir to consoles */
	bool measure_only; /* the run ends once the cluster is measured */
	bool embedded;     /* the controller was started by `skippipe demo` */
	bool jsonl;        /* events are written as JSON lines */
	struct options_monitor monitor;
	double speed;      /* speed of a replay, as a multiple of real time; 1 by default */
};

struct options_cluster {
	const char *file;    /* file of the cluster; NULL: the cluster is made from regions */
	const char *regions; /* path of the file of regions; NULL: the installed one */
	/* "regions" or a cluster file: network and compute to emulate; NULL: nothing is emulated */
	const char *emulate;
	uint32_t agents; /* number of nodes; 20 by default */
	/* A new run begins with at least this many agents. 1: --agents has no MIN */
	uint32_t least_agents;
	int stages[MSG_STAGES], n_stages;
	/* The controller chooses the stages once the agents are measured. Until then `stages` is
	 * provisional. */
	bool chooses_stages;
	/* Real seconds of an emulated second. < 0: the controller chooses a scale with which
	 * iterations take 2 to 3 s. 0: nothing is emulated. */
	double time_scale;
	bool serialise;        /* a node sends its transfers one after another */
	bool assignment_given; /* nodes keep the stages that the cluster file pins */
};

struct options_training {
	const char *model; /* model preset or file; "tiny" by default */
	const char *set[OPTIONS_MOST_SET]; /* FIELD=VALUE of the hyperparameters */
	uint32_t n_set;
	/* Layers of each stage of a new run. n == 0: stages of equal size, or the stages of the
	 * model's file */
	struct stage_layers cut;
	/* Folder of the weights to begin with; NULL: weights are made from the seed */
	const char *from;
	/* The operator allows another corpus than the one on which the first weights were
	 * trained */
	bool new_corpus;
	bool rehearse; /* agents only pretend to compute (model/rehearsal/rehearsal.h) */
	/* Divisor of the bytes of tensors in a rehearsal; 0: the default, 1000 */
	uint32_t scale_bytes;
	const char *corpus[OPTIONS_MOST_CORPUS];
	uint32_t n_corpus;
	/* batch == 0 or sequence == 0: the number in the hyperparameters. microbatches == 0: the
	 * number in the cluster */
	uint32_t batch, sequence, microbatches;
	uint32_t threads;              /* threads of each agent */
	/* Gradients are divided by the number of visits to each stage, not by the number of
	 * microbatches */
	bool by_visits;
	struct tensor_formats formats; /* tensor formats with which the run begins */
};

struct options_planning {
	enum plan_algorithm algorithm;
	bool phase_moves;  /* nodes may change their stage between phases of the skip schedule */
	bool overlap_sync; /* each stage begins its sum as soon as its own gradients are counted */
	bool no_swaps;     /* microbatches visit stages in ascending order */
	/* Seconds to search for the first plan. With a baseline algorithm, seconds for every
	 * plan */
	double budget_s;
	/* Seconds to search for each plan made ahead of a loss; 0: no plans are made ahead */
	double ahead_s;
};

struct options_limits {
	/* A node counts as dead after a silence of this time plus the transfer time of its
	 * messages */
	int64_t silence_us;
	/* A node counts as hung, or an iteration as stalled, if it makes no progress for the time
	 * of its tasks plus this time */
	int64_t overdue_us;
	/* How long to wait for agents before starting without the missing ones */
	int64_t gather_us;
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
	const char *run_dir; /* folder of the run; required */
	const char *name;
	const char *listen; /* address; tcp://127.0.0.1:0 by default */
	/* Files of the key and of the admitted list; NULL: this user's own files (network.c) */
	const char *key;
	const char *admitted;
	/* Descriptor of the socket to the supervisor; -1: there is no supervisor */
	int supervisor;
	enum log_level level;
	uint64_t seed;
	bool seed_is_given;  /* the command line of a new run gives the seed */
	uint32_t skip;       /* number of stages that a microbatch skips */
	uint32_t skip_share; /* percent of the microbatches that skip stages; 0: all */
	/* Stages that are visited for the first time start from copies of trained stages */
	bool stack;
	const char *recipe; /* name of the recipe (base/skip_schedule.h); NULL: not given */
	/* Phases such as "4,3,1,0", which replace `skip` (base/skip_schedule.h); NULL: not given */
	const char *skip_schedule;
	/* stages that every microbatch visits, such as "0,5"; NULL: not given */
	const char *always;
	uint64_t iterations; /* length of the run in iterations; 0: until it is stopped */
	uint64_t keep_tasks; /* the store keeps all tasks of this many newest iterations */
	uint32_t eval_every, eval_batches;
	/* How many times in a row the data of an iteration may be skipped because of bad numbers */
	uint32_t skip_bad_steps;
	uint32_t checkpoint_every; /* number of commits between checkpoints; 0: no checkpoints */
	/* Shell command that copies checkpoints to a store (model/files/remote.h); NULL: none */
	const char *checkpoint_to;
	struct options_mode mode;
	struct options_cluster cluster;
	struct options_training training;
	struct options_planning planning;
	struct options_limits limits;
	bool changed[CHANGES]; /* CHANGE_x: the command line sets this option */
	struct scripted_act acts[OPTIONS_MOST_ACTS];
	uint32_t n_acts;
};

/* Returns 0: the options are valid; 1: the help was requested and printed; -EINVAL, with a message.
 * *o borrows from argv. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);
/* Sets the options of a controller that continues a run in the process of an earlier controller.
 * The options that the record does not have are copied from `was`, the options of the earlier
 * controller. *o borrows the texts that `was` borrows, and `listen`. */
int options_again(struct options *o, const struct options *was, const char *listen,
		  struct error *err);

#endif
