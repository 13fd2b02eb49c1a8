/* store.h - the record of a run: plans, commits, events.
 *
 * The record is one SQLite file, RUN-DIR/run.db, in WAL mode. One process writes it (the
 * controller). Any number of processes may read it at the same time (verify, replays).
 *
 * Durability. A commit is one durable transaction: when store_commit has returned 0, the iteration
 * survives kill -9 and a power cut. If store_commit has failed, the file holds the state before the
 * call and never a mixture. The controller announces a commit only after the transaction. Plans and
 * a few other rows are durable too, as their functions say. All other rows are written without a
 * sync of their own: they survive kill -9, and the next commit makes them safe from a power cut.
 *
 * One writer. The writer holds a flock on RUN-DIR/run.lock. The file also names the writer's epoch.
 * Every transaction checks that the file still has this epoch. If flock failed to exclude another
 * writer, that writer has changed the epoch, and the transaction fails (-ESTALE).
 *
 * Errors. Functions return 0 or a negative errno, and *err names the file and the cause: -ENOENT no
 * such run or row, -EEXIST, -EBUSY another writer, -ENOSPC, -EROFS, -EIO, -EBADMSG the file is
 * damaged, -EINVAL the file is not a run or an argument contradicts the record, -EPROTONOSUPPORT
 * another version of the schema, -ENOMEM. After a failed write the file holds the state before the
 * call, and the call may be repeated.
 *
 * Not thread-safe: one thread at a time uses a store. Text is UTF-8 without NUL bytes inside.
 * Arguments are borrowed during the call. The argument of a reader's `visit` is borrowed until
 * `visit` returns. A nonzero result of `visit` ends the walk and becomes the walk's result.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tensor_format.h"
#include "base/route.h"

struct store; /* opaque */

enum {
	STORE_VERSION = 10, /* version of the schema */
	/* store_thin keeps the tasks of iterations that are multiples of this number. */
	STORE_THINNED = 100,
	STORE_RESERVE = 8 << 20 /* size of the reserve file, in bytes (store_reserve) */
};

/* The properties of a run. These properties are fixed when the run starts. Only store_stages and
 * store_recut change the properties that depend on the stages. */
struct store_run {
	const char *name;
	const char *version;   /* version of the program that started the run */
	const char *model;     /* skippipe.model/1 JSON */
	const char *cluster;   /* skippipe.cluster/1 JSON of the cluster */
	const char *optimizer; /* JSON of the optimizer's settings */
	uint64_t id;
	uint64_t seed;
	/* Name of the hash function, which the record keeps under the key "hash". */
	const char *hash;
	uint64_t corpus_hash; /* hash of the corpus; 0: unknown until store_corpus */
	int64_t started_wall_us;
	uint32_t batch, sequence;
	uint32_t n_shards;  /* number of data shards */
	uint32_t per_shard; /* number of microbatches of a shard in an iteration */
	/* Number of threads with which an agent computes; another number of threads gives other
	 * rounding. */
	uint32_t threads;
	/* Formats of transferred tensors when the run begins; kept under "wire" and "sum_wire". */
	struct tensor_formats formats;
	size_t n_corpus;           /* number of paths; 0: the default corpus */
	const char *const *corpus; /* the n_corpus paths */
	/* Where the first weights came from (model/files/origin.h); NULL: the program made them
	 * from the seed. Kept under the key "origin". */
	const char *origin;
	/* The controller's other options; NULL: none. Kept under the key "options". Opening a run
	 * leaves this field NULL; read the options with store_get. */
	const char *options;
};

struct store_plan {
	uint64_t epoch;     /* unique number of the plan; later plans have higher numbers */
	uint64_t iteration; /* first iteration for which the plan is used */
	const char *reason;
	uint32_t path_length;
	const char *plan;           /* skippipe.plan/1 JSON */
	/* Predicted times of an iteration and of summing its gradients. */
	double iteration_s, sync_s;
};

/* A gradient that a node added to its sum. */
struct store_counted {
	uint32_t microbatch;
	/* 'L': gradient of the loss layer, on a data node; 'B': gradient of a backward pass */
	char kind;
};

/* The gradients that a node added to its sum during an iteration. */
struct store_order {
	uint16_t node;
	uint8_t stage; /* stage that the node held during this iteration */
	uint32_t n_counted;
	/* The n_counted gradients in the order in which the node added them. This order affects
	 * rounding. */
	const struct store_counted *counted;
	const char *device;                  /* device that the node reported; NULL: unknown */
};

/* The nodes whose gradient sums were added for a stage. The weights of a stage without a reduction
 * did not change in this iteration. */
struct store_reduction {
	uint8_t stage;
	uint32_t n_nodes;
	const uint16_t *nodes; /* the n_nodes nodes in ascending order */
};

struct store_collisions {
	uint32_t n;
	/* Time that tasks waited because their node ran another microbatch's task, in plan seconds
	 * (real seconds divided by the run's time scale). */
	double wait_s;
};

struct store_repeats {
	uint32_t rerun; /* number of microbatches that ran again */
	/* Number of times in this run that the data of an iteration was skipped, because the loss
	 * or the gradient was not finite. */
	uint64_t skipped;
};

struct store_commit {
	uint64_t iteration; /* number of the iteration; iterations count from 1 without gaps */
	uint64_t epoch;     /* epoch of the plan */
	uint32_t attempt;   /* number of the attempt in which the gradients were summed */
	/* The step that the controller announced. The summed gradient is multiplied by `scale`
	 * and, if visits.n is not 0, divided by the stage's visits. AdamW then applies the result
	 * as step number `iteration`. */
	float scale, lr, beta1, beta2, eps, weight_decay;
	/* A set of stages (base/stage_set.h). After the step, each stage outside the set takes
	 * the weights and moments of a stage in the set, as stage_set_source says. 0: no stage
	 * takes weights. */
	uint64_t stack_from;
	struct stage_visits visits;
	/* Formats of the iteration's transferred tensors; the formats affect rounding. */
	struct tensor_formats formats;
	float loss; /* mean loss over the iteration's microbatches */
	double gradient_norm;
	/* Measured and predicted time of the iteration, in plan seconds (see store_collisions). */
	double iteration_s, predicted_s;
	double sync_s;
	double real_s; /* wall time from the previous commit to this commit */
	struct store_collisions collisions;
	uint32_t alive, path_length; /* number of live nodes; number of stages in a path */
	struct store_repeats repeats;
	int64_t wall_us;
	size_t n_routes, n_orders, n_reductions;
	/* For each of the n_routes microbatches, the route of the attempt that finished, without
	 * the field `since`. In its shard, the microbatch's data is at position (iteration - 1 +
	 * repeats.skipped) * per_shard + wave. */
	const struct route *routes;
	/* For each of n_orders nodes, the gradients that the node added. */
	const struct store_order *orders;
	/* For each of n_reductions stages, the nodes whose sums were added. */
	const struct store_reduction *reductions;
	void *owned; /* private to the store; NULL in a commit that is to be written */
};

/* A hash of a stage's weights after an iteration, as a node of the stage reported it. */
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
	char kind; /* 'F': forward pass, 'L': loss layer, 'B': backward pass, 'E': evaluation */
	bool counted;
	/* The microbatch whose task occupied the node while this task waited; -1: no
	 * microbatch. */
	int64_t waited_for;
	int64_t arrived_us, start_us, end_us; /* times by the controller's clock */
};

struct store_validation {
	uint64_t iteration; /* the weights are those after this iteration */
	double loss;
	int64_t wall_us;
};

/* An entry of the journal. */
struct store_note {
	uint64_t id; /* ascending number that the store assigns; ignored when written */
	uint64_t iteration;
	int64_t wall_us;
	const char *kind; /* "log", "event", "command", "prediction", "warning", "alert", ... */
	/* Letter on the loss curve. 'S': skip ratio changed, 'C': other stages, 'F': node failed,
	 * 'R': node or stage is back; 0: none. */
	char mark;
	int32_t node;     /* node that the entry concerns; -1: none */
	const char *text;
};

/* A failure that an operator injected. When the failure ends, the row is written again under the
 * same id. */
struct store_fault {
	uint32_t id;
	uint64_t iteration;
	const char *kind;
	/* node: the affected node. peer: the other end of the affected link. peer -1: the failure
	 * affects all links of the node, or it does not affect links. */
	int32_t node, peer;
	double factor;
	uint32_t ttl_ms;
	int64_t started_wall_us;
	int64_t ended_wall_us; /* time at which the failure ended; 0: the failure is active */
};

/* `who` of an act of --at. No console can have this name, because no name begins with '-'. */
#define STORE_SCRIPT "--at"

/* An operator's command. When the outcome of the command is known, the row is written again under
 * the same id. */
struct store_command {
	uint64_t id;
	uint64_t iteration; /* first iteration on which the command has an effect */
	int64_t wall_us;
	const char *who; /* name of the operator's console; STORE_SCRIPT: the command is of --at */
	const char *verb;
	/* node: the affected node; -1: none. peer: the other end of an affected link; -1: no
	 * link */
	int32_t node, peer;
	int64_t value;
	const char *text;
	int32_t status; /* 0: done; 1: in progress; otherwise a negative errno */
	const char *reply;
	/* The command that would undo this command, in the controller's format; NULL: none. */
	const char *undo;
	uint64_t undone_by; /* id of the command that has undone this command; 0: none */
};

/* An event of the run, with its time on the controller's clock and on the wall clock. A replay
 * shows the rows of the other tables at the times that these events give.
 *
 *     kind               event                                  word, value, text
 *     phase              the iteration entered a phase          word: the phase
 *     node               a node entered a state                 word: the state; value: its process
 *                                                               number; text: the reason
 *     plan               a plan took effect                     value: its epoch
 *     commit             an iteration was committed             value: microseconds that the nodes
 *                                                               spent in the iteration's tasks
 *     compute            the plan's times of a node were        (forward_s, backward_s, loss_s)
 *                        corrected
 *     link               the plan's delay from `node` to        value: the other node
 *                        another node was corrected             (forward_s: the new delay)
 *     gpu                load of the node's GPU at a commit     text: the figures in JSON
 *     device             how long the node's device was busy    value: the iteration; text: the
 *                        and what it waited for, in the         times in JSON
 *                        iteration that was just committed
 *     checkpoint         a checkpoint was completed or failed,  word: complete, failed or newest;
 *                        or newer ones became void: which is    value: its iteration; text: the
 *                        the newest now                         reason of the failure
 *     recovery           a step after a node's death            word: the step
 */
struct store_moment {
	uint64_t id; /* ascending number that the store assigns; ignored when written */
	/* store_writer_epoch of the writer; ignored when written. Compare at_us only between events
	 * of one writer, because another writer may have run on another machine, whose clock
	 * differs. */
	uint64_t writer;
	uint64_t iteration; /* the iteration that was under way */
	/* Time of the event on the controller's clock. The times of store_task are on this clock
	 * too. */
	int64_t at_us;
	int64_t wall_us;
	const char *kind;
	int32_t node, stage; /* node and stage that the event concerns; -1: none */
	int64_t value;
	const char *word;
	const char *text;
	/* For kinds node and compute: the plan's times of a forward pass, a backward pass and the
	 * loss layer. For kind link: forward_s is the plan's delay. 0: not measured yet. */
	double forward_s, backward_s, loss_s;
	/* Only for kind node: the node's device, its host, the name under which it was admitted,
	 * and its place. NULL is written as "". */
	const char *device, *host, *name, *place;
};

/* One file of a checkpoint: the weights of a stage, complete and on the disk of `host`. A
 * checkpoint is complete when every stage has a file of the same iteration. */
struct store_shard {
	uint64_t iteration;
	uint8_t stage;
	uint16_t node; /* node that wrote the file */
	const char *host;
	uint64_t hash; /* hash of the file's content */
	uint64_t bytes;
	int64_t wall_us;
};

/* A stage whose weights were restored, because no live node held these weights. */
struct store_restore {
	uint64_t iteration; /* the run continues after this iteration; later commits are deleted */
	/* In: the last committed iteration. Out: the highest iteration that was ever committed. The
	 * files of a checkpoint of this iteration may still exist. */
	uint64_t last;
	uint8_t stage;
	uint16_t node; /* node that holds the restored stage */
	uint64_t hash; /* hash of the restored weights */
	int64_t wall_us;
	/* Number of averaged stages; 0: the weights come from a checkpoint. */
	uint32_t n_from;
	/* the n_from stages that were averaged, as they were after `iteration` */
	uint8_t from[2];
	float weight[2]; /* factor of each of the n_from stages in the average */
};

/* New stages for a run (store_recut). */
struct store_recut {
	uint64_t id; /* new identity of the run, which makes agents drop their former stages */
	const char *model, *cluster;
	uint32_t n_shards, per_shard;
	size_t n_files;
	/* The n_files files with the weights of the new stages after the last commit. The rows of
	 * all former checkpoints are deleted, because the files of these checkpoints hold the
	 * former stages. */
	const struct store_shard *files;
	size_t n_values;
	/* n_values values of the controller's own state. They are set as store_set sets them. A
	 * NULL value removes the key. */
	const struct store_value {
		const char *key, *value;
	} *values;
};

/* ---- opening ---- */

/* Starts a new run: creates the file and the lock. Creates the folder too if it is missing. The
 * caller closes *out with store_close. -EEXIST: the folder has a run already. */
int store_create(struct store **out, const char *folder, const struct store_run *run,
		 struct error *err);
/* Opens an existing run as its writer, after a controller's end or crash. -EBUSY: the run has a
 * writer; the message names the process. */
int store_resume(struct store **out, const char *folder, struct error *err);
/* Opens an existing run as a reader. A writer may have the run open too, and the file system may
 * be read-only. Writes are refused (-EROFS). */
int store_open(struct store **out, const char *folder, struct error *err);
void store_close(struct store *s); /* NULL is allowed */
/* Returns true if a process has the run in this folder open as its writer. */
bool store_has_writer(const char *folder);

/* Returns true if another program, a backup for example, has locked the file. Functions whose rows
 * must be durable then return -EBUSY: store_commit, store_plan, store_cluster, store_restore. All
 * other functions keep their rows in memory, up to 64 MiB, and the first write after the unlocking
 * writes them. */
bool store_is_locked(const struct store *s);
/* Writes the rows in memory (store_is_locked). Returns 0 if no row is left in memory. -EBUSY: the
 * file is still locked. */
int store_unlocked(struct store *s, struct error *err);

/* Reserves STORE_RESERVE bytes of the disk in the file RUN-DIR/run.reserve. When the disk is full,
 * the store deletes this file and repeats the failed write, so that the controller can still record
 * the last commits. Returns 0 if the reserve exists. -ENOSPC: the disk has no room for the reserve.
 * store_close deletes the reserve. */
int store_reserve(struct store *s, struct error *err);
/* Returns true if the reserve exists. */
bool store_reserved(const struct store *s);

/* Returns the properties of the run; borrowed until store_close. */
const struct store_run *store_run_of(const struct store *s);
/* Returns how often a writer has opened this run; 1 when it was created. */
uint64_t store_writer_epoch(const struct store *s);

/* ---- writing ---- */

/* Records the hash of the corpus. The first data node that has read the corpus reports it. -EEXIST:
 * another hash is recorded. */
int store_corpus(struct store *s, uint64_t hash, struct error *err);
/* Replaces the description of the cluster, after it was measured. Durable. */
int store_cluster(struct store *s, const char *cluster, struct error *err);
/* Replaces the model, the number of sequences in a microbatch, the number of data shards, and the
 * number of microbatches of a shard in an iteration. Call it when the stages have been chosen,
 * before the first plan. Durable. */
int store_stages(struct store *s, const char *model, uint32_t batch, uint32_t n_shards,
		 uint32_t per_shard, struct error *err);
/* Records a plan that takes effect. Durable. */
int store_plan(struct store *s, const struct store_plan *plan, struct error *err);
/* Commits an iteration. Durable. -EEXIST: the iteration is committed already; -EINVAL: the
 * iteration does not follow the newest committed iteration. */
int store_commit(struct store *s, const struct store_commit *commit, struct error *err);
/* Deletes details of iterations up to `upto`: tasks, and events of the kinds phase, commit, gpu
 * and device. Every STORE_THINNED-th iteration keeps its details. One call handles only a few
 * iterations, so that no call takes long. Rows that verify needs are kept. */
int store_thin(struct store *s, uint64_t upto, struct error *err);
/* Records hashes of weights. If a node announces a second hash for an iteration, the first hash
 * stays. */
int store_hashes(struct store *s, const struct store_hash *hashes, size_t n, struct error *err);
/* Deletes a node's hash of an iteration and stage, if there is one. */
int store_forget_hash(struct store *s, const struct store_hash *hash, struct error *err);
int store_tasks(struct store *s, const struct store_task *tasks, size_t n, struct error *err);
/* Records a measured validation loss. */
int store_validation(struct store *s, const struct store_validation *v, struct error *err);
/* Adds an entry to the journal. */
int store_note(struct store *s, const struct store_note *note, struct error *err);
/* Records an injected failure. Call it when the failure begins, and again when it ends. */
int store_fault(struct store *s, const struct store_fault *fault, struct error *err);
/* Records an operator's command. Call it when the command is given, and again when its outcome is
 * known. */
int store_command(struct store *s, const struct store_command *command, struct error *err);
/* Records an event of the run. */
int store_moment(struct store *s, const struct store_moment *moment, struct error *err);
/* Records a stage's file of a checkpoint. */
int store_shard(struct store *s, const struct store_shard *k, struct error *err);
/* Records n >= 1 stages that were restored together to the same iteration, and deletes the rows
 * of later iterations, in one durable transaction. The next commit is that of iteration + 1. */
int store_restore(struct store *s, const struct store_restore *rows, size_t n,
		  struct error *err);
/* Divides the model of the run into other stages, in one durable transaction. The run has the new
 * stages from the last commit on. */
int store_recut(struct store *s, const struct store_recut *r, struct error *err);
/* Sets a value of the controller's own state by key. A NULL value removes the key. Durable, because
 * the next controller must know what this controller has announced to agents. While the file is
 * locked, the value waits in memory. */
int store_set(struct store *s, const char *key, const char *value, struct error *err);

/* ---- reading (a writer may read, too) ---- */

/* Sets *iteration to the last committed iteration; 0: none yet. */
int store_last_commit(struct store *s, uint64_t *iteration, struct error *err);
/* Sets *iteration to the newest iteration for which the record has an act of --at (STORE_SCRIPT);
 * 0: none. */
int store_last_scripted(struct store *s, uint64_t *iteration, struct error *err);
/* Sets *visited to true if any committed iteration had paths longer than path_length, or stages
 * that took the weights of other stages (stack_from). */
int store_visited(struct store *s, uint32_t path_length, bool *visited, struct error *err);
/* Fills *out; the caller frees its arrays with store_commit_clear. -EBADMSG: a list in the file
 * does not have the form that store_commit writes. */
int store_read_commit(struct store *s, uint64_t iteration, struct store_commit *out,
		      struct error *err);
/* Frees the arrays of a commit and zeroes it. A zeroed commit is allowed. */
void store_commit_clear(struct store_commit *c);

/* Visits the commits of the iterations `from` to `to`. The visited commits lack their routes,
 * orders and reductions. */
int store_each_commit(struct store *s, uint64_t from, uint64_t to,
		      int (*visit)(void *context, const struct store_commit *c), void *context,
		      struct error *err);
/* Visits each device name that nodes reported, with the number of nodes that computed on it; the
 * most frequent device comes first. Makes no visit if the record names no device. */
int store_each_device(struct store *s,
		      int (*visit)(void *context, const char *device, uint32_t nodes),
		      void *context, struct error *err);
/* Visits the plans whose epoch is at least `from`, in ascending order. */
int store_each_plan(struct store *s, uint64_t from,
		    int (*visit)(void *context, const struct store_plan *p), void *context,
		    struct error *err);
/* Visits the hashes of an iteration in ascending order of stage. Visits the hashes of one stage
 * in ascending order of node. */
int store_each_hash(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_hash *h), void *context,
		    struct error *err);
/* Visits the tasks of an iteration in the order in which they were written. */
int store_each_task(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_task *t), void *context,
		    struct error *err);
int store_each_validation(struct store *s,
			  int (*visit)(void *context, const struct store_validation *v),
			  void *context, struct error *err);
/* Visits the entries of the journal in the order in which they were written. */
int store_each_note(struct store *s, int (*visit)(void *context, const struct store_note *n),
		    void *context, struct error *err);
/* Sets *id to the highest id of the journal; 0: the journal is empty. */
int store_last_note(struct store *s, uint64_t *id, struct error *err);
/* Visits the injected failures in ascending order of id. */
int store_each_fault(struct store *s, int (*visit)(void *context, const struct store_fault *f),
		     void *context, struct error *err);
/* Visits the events whose id is above `after`, in the order in which they were written. */
int store_each_moment(struct store *s, uint64_t after,
		      int (*visit)(void *context, const struct store_moment *m), void *context,
		      struct error *err);
/* Visits the files of checkpoints, the newest iteration first. Visits the files of one iteration
 * in ascending order of stage. */
int store_each_shard(struct store *s, int (*visit)(void *context, const struct store_shard *k),
		     void *context, struct error *err);
/* Visits the restored stages in the order in which they were written. */
int store_each_restore(struct store *s,
		       int (*visit)(void *context, const struct store_restore *r),
		       void *context, struct error *err);
/* Reads a value of the controller's own state; the caller frees it. -ENOENT: the key has no
 * value. */
int store_get(struct store *s, const char *key, char **value, struct error *err);

#endif
