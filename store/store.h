/* store.h - the history of a run: what was planned, what was committed, what happened.
 *
 * One SQLite file, RUN-DIR/run.db, in WAL mode. One process writes it (the controller), any
 * number read it at the same time (verify, replay). A commit is one durable transaction: when
 * store_commit has returned 0 the iteration survives kill -9 and a power cut, and when it has
 * not, the file holds the state before it, never a mixture. The controller announces a commit
 * only after that. Everything but commits and plans is written without a sync of its own: it
 * survives kill -9, and becomes safe from a power cut with the next commit.
 *
 * Two writers are impossible: RUN-DIR/run.lock is held with flock, and every transaction checks
 * that the writer's epoch in the file is still its own (-ESTALE when another took over, where
 * flock does not reach).
 *
 * Functions return 0 or a negative errno and say in *err which file and what: -ENOENT no such
 * run or row, -EEXIST, -EBUSY another writer, -ENOSPC, -EROFS, -EIO, -EBADMSG the file is
 * damaged, -EINVAL not a run's file or a contradictory argument, -EPROTONOSUPPORT another
 * version of the schema, -ENOMEM. After a failed write the file holds what it held before, and
 * the call may be repeated. Not thread-safe: one store, one thread at a time.
 *
 * Text is UTF-8 without NUL inside. Arguments are borrowed during the call. What a reader's
 * `visit` is shown is borrowed until it returns; a nonzero return ends the walk and is the
 * walk's result.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct store; /* opaque */

enum { STORE_VERSION = 2, STORE_THINNED = 100 /* iterations */, STORE_RESERVE = 8 << 20 /* bytes */ };

/* What a run is, fixed when it starts. */
struct store_run {
	const char *name;
	const char *version;   /* of the program that started it */
	const char *model;     /* skippipe.model/1 JSON */
	const char *cluster;   /* skippipe.cluster/1 JSON */
	const char *optimizer; /* JSON */
	uint64_t id;
	uint64_t seed;
	/* Which hash the run's hashes are, kept under the key "hash" (store_get); NULL: begun before
	 * records said so, with one that other weights can be made to have. */
	const char *hash;
	uint64_t corpus_hash; /* 0: not known yet (store_corpus) */
	int64_t started_wall_us;
	uint32_t batch, sequence;
	uint32_t n_shards;  /* data shards; shard k is read by whoever runs its microbatches */
	uint32_t per_shard; /* microbatches a shard gives an iteration */
	uint32_t threads;   /* of an agent's arithmetic: part of what makes the bits */
	bool bf16;          /* and so is this: what goes from stage to stage is rounded to bf16. Kept
			     * under the key "wire" (store_get), "fp32" or "bf16" */
	size_t n_corpus;    /* 0: the default corpus */
	const char *const *corpus; /* (n_corpus) paths */
	/* What else its controller was told, kept under the key "options" (store_get); NULL nothing.
	 * When the run is read it is NULL. */
	const char *options;
};

struct store_plan {
	uint64_t epoch;     /* unique, rising */
	uint64_t iteration; /* the first it holds for */
	const char *reason;
	uint32_t path_length;
	const char *plan;           /* skippipe.plan/1 JSON */
	double iteration_s, sync_s; /* predicted */
};

/* One microbatch's committed way: the stages it visited, in order, and the nodes of the attempt
 * that finished. */
struct store_route {
	uint32_t microbatch;
	uint32_t shard,
		wave; /* its data: position (iteration - 1) * per_shard + wave of the shard */
	uint32_t attempt;
	uint32_t n_hops;
	const uint16_t *nodes; /* (n_hops) the data node first */
	const uint8_t *stages; /* (n_hops) */
};

/* One gradient that was added to a node's sum: of the head in the loss ('L', on a data node) or
 * of a backward pass ('B'). */
struct store_counted {
	uint32_t microbatch;
	char kind; /* 'L' or 'B' */
};

/* What one node counted, in the order in which it did. */
struct store_order {
	uint16_t node;
	uint8_t stage; /* it held during this iteration */
	uint32_t n_counted;
	const struct store_counted *counted; /* (n_counted) */
	const char *device; /* what computed it, as the node told; NULL: not known */
};

/* The nodes whose sums made a stage's gradient. A stage without one took no step. */
struct store_reduction {
	uint8_t stage;
	uint32_t n_nodes;
	const uint16_t *nodes; /* (n_nodes) ascending */
};

struct store_commit {
	uint64_t iteration; /* from 1; each the one before plus 1 */
	uint64_t epoch;     /* the plan's */
	uint32_t attempt;   /* of the reduction */
	/* The step, as announced: the summed gradient times scale, then AdamW number
	 * `iteration`. */
	float scale, lr, beta1, beta2, eps, weight_decay;
	float loss; /* mean over the microbatches */
	double gradient_norm, clip;
	double iteration_s, predicted_s; /* plan seconds */
	double sync_s;
	double real_s; /* wall time, commit to commit */
	uint32_t collisions;
	double wait_s;
	uint32_t alive, path_length;
	uint32_t rerun; /* microbatches run again */
	int64_t wall_us;
	size_t n_routes, n_orders, n_reductions;
	const struct store_route *routes;         /* (n_routes) */
	const struct store_order *orders;         /* (n_orders) */
	const struct store_reduction *reductions; /* (n_reductions) */
	void *owned; /* of a commit that was read; NULL in one to be written */
};

/* A node's weights after an iteration, as it announced them. */
struct store_hash {
	uint64_t iteration;
	uint64_t hash;
	uint16_t node;
	uint8_t stage;
};

struct store_task {
	uint64_t iteration;
	uint32_t microbatch, attempt;
	uint16_t node;
	char kind; /* 'F', 'L', 'B', 'E' evaluation */
	bool counted;
	int64_t waited_for;                   /* the microbatch it had to wait for; -1 none */
	int64_t arrived_us, start_us, end_us; /* controller's clock */
};

struct store_validation {
	uint64_t iteration; /* committed iterations the weights hold */
	double loss;
	int64_t wall_us;
};

struct store_note {
	uint64_t id; /* of a note that was read; ignored when written */
	uint64_t iteration;
	int64_t wall_us;
	const char *kind; /* "log", "event", "command", "prediction", "warning", "alert", ... */
	char mark;        /* for the loss curve: 'S', 'F', 'R'; 0 none */
	int32_t node;     /* -1 none */
	const char *text;
};

/* Injected. Written again under the same id when it ends. */
struct store_fault {
	uint32_t id;
	uint64_t iteration;
	const char *kind;
	int32_t node, peer; /* -1 none, all */
	double factor;
	uint32_t ttl_ms;
	int64_t started_wall_us;
	int64_t ended_wall_us; /* 0: active */
};

/* An operator's command. Written again under the same id when its outcome is known. */
struct store_command {
	uint64_t id;
	uint64_t iteration; /* it took effect with */
	int64_t wall_us;
	const char *who; /* the console's name */
	const char *verb;
	int32_t node, peer; /* -1 none */
	int64_t value;
	const char *text;
	int32_t status; /* 0 done; 1 under way; else a negative errno */
	const char *reply;
	const char
		*undo; /* what undoes it, in the controller's own words; NULL: nothing does */
	uint64_t undone_by; /* command id; 0 */
};

/* An instant of the run, on both clocks: what a replay needs beside the rows above, to show
 * each of them at its time. */
struct store_moment {
	uint64_t id;     /* rises; of one that was read, ignored when written */
	uint64_t writer; /* the same: store_writer_epoch of who wrote it. at_us compares within
			  * one writer only: another may have run on another machine */
	uint64_t iteration; /* under way */
	int64_t at_us;      /* the controller's clock, as in store_task */
	int64_t wall_us;
	/* "phase", "node": word says which state began, of a node `value` is the process; "plan": `value` is the epoch
	 * that took effect; "commit": `value` is the microseconds that nodes spent in the iteration's tasks; "compute",
	 * "link": what is planned against was corrected, a node's times or the delay (forward_s) from `node` to
	 * `value`; "recovery": a step after a node's death */
	const char *kind;
	int32_t node, stage; /* -1 none */
	int64_t value;
	const char *word;
	const char *text; /* node: why it is in that state */
	double forward_s, backward_s,
		loss_s;            /* node: as measured there; 0 not yet. compute, link */
	const char *device, *host; /* node */
};

/* A stage's file of a checkpoint: on that host's disk, whole. A checkpoint is an iteration of
 * which every stage has one. */
struct store_shard {
	uint64_t iteration;
	uint8_t stage;
	uint16_t node;    /* who wrote it */
	const char *host; /* and where */
	uint64_t hash;    /* of the file's data */
	uint64_t bytes;
	int64_t wall_us;
};

/* A stage that was put back when nobody held it any more. */
struct store_restore {
	uint64_t iteration; /* its weights are of this one; what was committed after it is gone
			     */
	uint64_t last;      /* the last committed one before that */
	uint8_t stage;
	uint16_t node; /* who has it now */
	uint64_t hash; /* of the weights as put back */
	int64_t wall_us;
	uint32_t n_from; /* 0: read from a checkpoint; else the weighed average of */
	uint8_t from[2]; /* (n_from) these stages after that iteration */
	float weight[2]; /* (n_from) */
};

/* ---- opening ---- */

/* A new run: makes the folder where needed, the file and the lock. -EEXIST: there is a run in
 * that folder. Gives *out to the caller (store_close). */
int store_create(struct store **out, const char *folder, const struct store_run *run,
		 struct error *err);
/* The writer of a run that exists: after a controller's end, or its crash. -EBUSY: it has a
 * writer; the message says which process. */
int store_resume(struct store **out, const char *folder, struct error *err);
/* A reader. Works beside a writer and on read-only file systems; writes are refused (-EROFS).
 */
int store_open(struct store **out, const char *folder, struct error *err);
void store_close(struct store *s); /* NULL is allowed */

/* Holds STORE_RESERVE bytes of the disk back in RUN-DIR/run.reserve, so that a disk which others
 * fill does not keep this run from writing what it must: the first write that finds no room gives
 * them up and is done again. 0: they are held, since now or before. -ENOSPC: there is no room
 * for them. store_close gives them up. */
int store_reserve(struct store *s, struct error *err);
bool store_reserved(const struct store *s);

const struct store_run *store_run_of(const struct store *s); /* borrowed until store_close */
/* How often a writer has opened this run: 1 when it was created. */
uint64_t store_writer_epoch(const struct store *s);

/* ---- writing ---- */

/* What the first data node to read the corpus says of it. -EEXIST: another hash is recorded. */
int store_corpus(struct store *s, uint64_t hash, struct error *err);
/* The cluster of the run was measured: its text from here on, copied; durable when it returns 0. */
int store_cluster(struct store *s, const char *cluster, struct error *err);
/* A plan that comes into force; copied, as is all that is written below. */
int store_plan(struct store *s, const struct store_plan *plan, struct error *err);
/* Durable when it returns 0. -EEXIST: this iteration is committed already; -EINVAL: it is not
 * the one after the last. */
int store_commit(struct store *s, const struct store_commit *commit, struct error *err);
/* Forgets the tasks and phases of iterations up to `upto`, but those of every STORE_THINNED-th: some
 * at each call, so that none takes long. What verify needs stays. */
int store_thin(struct store *s, uint64_t upto, struct error *err);
/* A node's first word on an iteration stands: repetitions are ignored. */
int store_hashes(struct store *s, const struct store_hash *hashes, size_t n, struct error *err);
/* Removes that hash of the iteration, stage and node; none is no error. */
int store_forget_hash(struct store *s, const struct store_hash *hash, struct error *err);
int store_tasks(struct store *s, const struct store_task *tasks, size_t n, struct error *err);
/* A validation loss that was measured. */
int store_validation(struct store *s, const struct store_validation *v, struct error *err);
/* One entry of the journal. */
int store_note(struct store *s, const struct store_note *note, struct error *err);
/* An injected failure, as it begins or ends. */
int store_fault(struct store *s, const struct store_fault *fault, struct error *err);
/* An operator's act and its answer. */
int store_command(struct store *s, const struct store_command *command, struct error *err);
int store_moment(struct store *s, const struct store_moment *moment, struct error *err);
/* A stage's file of a checkpoint. */
int store_shard(struct store *s, const struct store_shard *k, struct error *err);
/* All of one event, n >= 1, of one iteration: recorded, and what the store holds of later
 * iterations removed, in one durable transaction. The next commit is iteration + 1. */
int store_restore(struct store *s, const struct store_restore *rows, size_t n,
		  struct error *err);
/* The controller's own odds and ends, by key. value NULL removes it. Durable when it returns 0: agents act on what
 * it was told they were, and a successor must know it. */
int store_set(struct store *s, const char *key, const char *value, struct error *err);

/* ---- reading (a writer may, too) ---- */

/* 0 into *iteration: none yet. */
int store_last_commit(struct store *s, uint64_t *iteration, struct error *err);
/* Fills *out; store_commit_clear frees what it holds. Text that is not as store_commit wrote it
 * is -EBADMSG. */
int store_read_commit(struct store *s, uint64_t iteration, struct store_commit *out,
		      struct error *err);
void store_commit_clear(struct store_commit *c); /* then it is empty; a zeroed one is allowed */

/* Commits of [from, to], without routes, orders and reductions. */
int store_each_commit(struct store *s, uint64_t from, uint64_t to,
		      int (*visit)(void *context, const struct store_commit *c), void *context,
		      struct error *err);
/* What computed, as nodes told it, and how many of them ever did with it: the commonest first. None
 * where the record does not say. */
int store_each_device(struct store *s,
		      int (*visit)(void *context, const char *device, uint32_t nodes),
		      void *context, struct error *err);
int store_each_plan(struct store *s, uint64_t from,
		    int (*visit)(void *context, const struct store_plan *p), void *context,
		    struct error *err); /* of that epoch and later, by epoch */
int store_each_hash(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_hash *h), void *context,
		    struct error *err); /* by stage, then node */
int store_each_task(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_task *t), void *context,
		    struct error *err); /* as written */
int store_each_validation(struct store *s,
			  int (*visit)(void *context, const struct store_validation *v),
			  void *context, struct error *err);
/* Every entry of the journal. */
int store_each_note(struct store *s, int (*visit)(void *context, const struct store_note *n),
		    void *context, struct error *err);
int store_last_note(struct store *s, uint64_t *id, struct error *err); /* 0: none yet */
/* Every injected failure. */
int store_each_fault(struct store *s, int (*visit)(void *context, const struct store_fault *f),
		     void *context, struct error *err);
/* Every act of operators: for tests; the controller only writes them, for who reads the table. */
int store_each_command(struct store *s,
		       int (*visit)(void *context, const struct store_command *c),
		       void *context, struct error *err);
int store_each_moment(struct store *s, uint64_t after,
		      int (*visit)(void *context, const struct store_moment *m), void *context,
		      struct error *err); /* ids above `after`, as written */
int store_each_shard(struct store *s, int (*visit)(void *context, const struct store_shard *k),
		     void *context,
		     struct error *err); /* by iteration, newest first, then stage */
int store_each_restore(struct store *s,
		       int (*visit)(void *context, const struct store_restore *r),
		       void *context, struct error *err); /* as written */
/* The value for the caller to free; -ENOENT. */
int store_get(struct store *s, const char *key, char **value, struct error *err);

#endif
