/* compute.c - runs the jobs of the worker thread on the stage, the standby copy and the corpus.
 *
 * Only the worker thread uses these three objects, so they need no locks. A job carries all its
 * inputs and outputs. If a stage cannot be restored from the given file, the node keeps its present
 * stage.
 */
#include "agent/execution/compute.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sums/slices.h"
#include "agent/tensors/body.h"
#include "agent/weights/fetch.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/process/cgroup.h"
#include "model/average.h"
#include "model/cpu/pool.h"
#include "model/hash.h"
#include "model/files/checkpoint.h"
#include "model/text/corpus.h"
#include "model/stage.h"
#include "wire/msg.h"

enum {
	MEASURE_TIMES = 3,
	POOL_MOST = 8,         /* limit of the threads that add sums */
	POOL_FLOATS = 1 << 20, /* a sum of fewer floats runs in one thread */
};

/* Number that identifies the input of measured tasks. The inputs of microbatches have the numbers
 * 1, 2, 3 and so on. */
#define MEASURED_INPUT UINT64_MAX

/* The times of one kind of pass. */
struct pass_times {
	/* time of the shortest pass; sum of the times of all passes but the first */
	double least_s, later_s;
	int count;
};

struct compute {
	struct compute_setup setup;
	struct stage *stage;
	struct stage *copy; /* the standby copy; NULL: none */
	struct pool *pool;  /* threads that add sums; NULL: none */
	bool pristine;      /* the stage has its initial weights */
	bool measured;
	struct pass_times forward, backward, loss;
	/* the run's corpus, which only stage 0 needs; NULL: not opened */
	struct corpus *corpus;
	int32_t *tokens, *targets; /* tokens of a microbatch, shape (B, T) */
};

int compute_new(struct compute **out, const struct compute_setup *setup)
{
	size_t tokens = (size_t)setup->batch * setup->sequence;
	struct compute *c = alloc_new(sizeof(*c));

	c->setup = *setup;
	c->setup.corpus = malloc(setup->corpus_size + 1);
	c->tokens = calloc(tokens, sizeof(c->tokens[0]));
	c->targets = calloc(tokens, sizeof(c->targets[0]));
	if (!c->setup.corpus || !c->tokens || !c->targets) {
		compute_free(c);
		return -ENOMEM;
	}
	if (setup->corpus_size)
		memcpy(c->setup.corpus, setup->corpus, setup->corpus_size);
	*out = c;
	return 0;
}

void compute_free(struct compute *c)
{
	if (!c)
		return;
	stage_free(c->stage);
	stage_free(c->copy);
	pool_free(c->pool);
	corpus_free(c->corpus);
	free(c->setup.corpus);
	free(c->tokens);
	free(c->targets);
	free(c);
}

static bool same_config(const struct model_config *a, const struct model_config *b)
{
	return a->vocab == b->vocab && a->dim == b->dim && a->n_layers == b->n_layers &&
	       a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads &&
	       a->ffn_dim == b->ffn_dim && a->context == b->context &&
	       a->n_stages == b->n_stages &&
	       memcmp(&a->stage_layers, &b->stage_layers, sizeof(a->stage_layers)) == 0 &&
	       a->rope_theta == b->rope_theta &&
	       a->norm_eps == b->norm_eps && a->tied == b->tied &&
	       a->rope_factor == b->rope_factor &&
	       a->rope_low_freq_factor == b->rope_low_freq_factor &&
	       a->rope_high_freq_factor == b->rope_high_freq_factor &&
	       a->rope_original_context == b->rope_original_context &&
	       a->rehearsal == b->rehearsal;
}

bool compute_fits(const struct compute *c, const struct compute_setup *s)
{
	const struct compute_setup *o = &c->setup;

	return same_config(&o->config, &s->config) && o->batch == s->batch &&
	       o->sequence == s->sequence && o->slots == s->slots &&
	       o->threads == s->threads && o->n_shards == s->n_shards && o->seed == s->seed &&
	       o->steps_before == s->steps_before &&
	       o->n_corpus == s->n_corpus && o->corpus_size == s->corpus_size &&
	       (s->corpus_size == 0 || memcmp(o->corpus, s->corpus, s->corpus_size) == 0);
}

static int open_corpus(struct compute *c, const struct job_prepare *p, struct error *err)
{
	uint32_t n = p->corpus ? p->n_corpus : c->setup.n_corpus;
	char **paths = calloc(n + 1, sizeof(paths[0]));
	char *at = p->corpus ? (char *)p->corpus : c->setup.corpus;
	int rc;

	if (!paths)
		return error_set(err, -ENOMEM, "no memory for the corpus");
	for (uint32_t i = 0; i < n; i++, at += strlen(at) + 1)
		paths[i] = at;
	rc = corpus_new(&c->corpus, paths, n, c->setup.sequence, c->setup.seed, err);
	free(paths);
	if (!rc)
		rc = corpus_check(c->corpus, c->setup.config.vocab, c->setup.has_tokenizer, err);
	if (rc < 0) {
		corpus_free(c->corpus);
		c->corpus = NULL;
	}
	return rc;
}

static int prepare_stage(struct compute *c, struct job *j)
{
	struct stage_options o = { .slots = c->setup.slots,
				   .batch = c->setup.batch,
				   .sequence = c->setup.sequence,
				   .threads = c->setup.threads,
				   .seed = c->setup.seed,
				   .device = c->setup.device,
				   .memory_bytes = c->setup.memory_bytes,
				   .recompute = c->setup.recompute,
				   .sums = true,
				   /* If the weights are not made from the seed, they come from a
				    * checkpoint, a standby copy or the neighbours. To draw
				    * initial weights would then be wasted work. */
				   .without_weights = !j->prepare.from_seed };
	bool other = !c->stage || stage_index(c->stage) != j->prepare.stage;
	int rc = 0;

	if (j->folder)
		rc = checkpoint_check_stage(j->folder, j->prepare.stage, j->iteration,
					    j->expected_hash, &j->err);
	j->refused = rc < 0;
	if (rc)
		return rc;
	if (j->prepare.stage == 0 && !c->corpus)
		rc = open_corpus(c, &j->prepare, &j->err);
	if (rc == 0 && (other || (j->prepare.from_seed && !c->pristine))) {
		/* Frees the old stage first, because the memory may not suffice for two stages. */
		stage_free(c->stage);
		c->stage = NULL;
		c->measured = false;
		rc = stage_new(&c->stage, &c->setup.config, j->prepare.stage, &o, &j->err);
		c->pristine = j->prepare.from_seed;
	}
	if (rc)
		return rc;
	j->prepare.parameters = stage_parameters(c->stage);
	j->prepare.activation = stage_activation(c->stage);
	j->prepare.stage_bytes = stage_host_bytes(c->stage);
	j->prepare.takes_encoded = stage_takes_encoded(c->stage);
	return 0;
}

/* ---- copies ---- */

enum { KINDS = 3 };

/* Sets parts[k] to element `at` of array k of a stage's state. The arrays are the weights and both
 * moments, n floats each. */
static void split_state(float *state, size_t n, size_t at, float *parts[KINDS])
{
	for (int k = 0; k < KINDS; k++)
		parts[k] = state + (size_t)k * n + at;
}

static int load_copy(struct compute *c, struct job *j)
{
	if (!c->copy || stage_index(c->copy) != stage_index(c->stage))
		return error_set(&j->err, -EINVAL, "this node has no copy of stage %u",
				 stage_index(c->stage));
	c->pristine = false;
	stage_copy_state(c->stage, c->copy);
	return 0;
}

static int restore_file(struct compute *c, struct job *j)
{
	c->pristine = false;
	return checkpoint_load_stage(j->folder, c->stage, j->iteration, j->expected_hash, &j->err);
}

/* Adds floats [at, at + floats) of a neighbour's weighted state to the same floats of the stage's
 * state. If m->first is true, replaces the stage's floats instead. `part` is scratch memory with
 * room for 3 * `floats` numbers. */
static void mix_part(struct compute *c, const struct job_mix *m, size_t at, size_t floats,
		     float *part)
{
	size_t n = stage_parameters(c->stage);
	float *own[KINDS];

	split_state(part, floats, 0, own);
	if (!m->first)
		stage_get_state(c->stage, at, floats, own);
	for (int k = 0; k < KINDS; k++)
		average_add(own[k], m->state + (size_t)k * n + at, floats, m->weight, m->first);
	stage_put_state(c->stage, at, floats, (const float *const *)own);
}

static int mix_state(struct compute *c, struct job *j)
{
	size_t n = stage_parameters(c->stage), most = n < STATE_PART ? n : STATE_PART;
	float *part;

	j->refused = j->expected_hash && hash_floats(j->mix.state, n) != j->expected_hash;
	if (j->refused)
		return error_set(&j->err, -EBADMSG,
				 "a neighbour's weights were damaged on the way here");
	part = malloc(KINDS * most * sizeof(*part));
	if (!part)
		return error_set(&j->err, -ENOMEM, "no memory for a part of the stage");
	c->pristine = false;
	for (size_t at = 0, floats; at < n; at += floats) {
		floats = n - at < most ? n - at : most;
		mix_part(c, &j->mix, at, floats, part);
	}
	free(part);
	return 0;
}

/* Allocates the standby copy, which makes steps but never computes a microbatch. */
static int make_copy(struct compute *c, struct job *j)
{
	struct stage_options o = { .slots = 1,
				   .batch = 1,
				   .sequence = 1,
				   .threads = c->setup.threads,
				   .device = c->setup.device,
				   .only_steps = true,
				   .sums = true,
				   .without_weights = true };
	int rc;

	stage_free(c->copy);
	c->copy = NULL;
	if (j->prepare.stage == MSG_NO_STAGE)
		return 0;
	rc = stage_new(&c->copy, &c->setup.config, j->prepare.stage, &o, &j->err);
	if (rc == 0)
		j->prepare.parameters = stage_parameters(c->copy);
	return rc;
}

static void put_fresh(struct stage *s, const struct job *j)
{
	size_t n = stage_parameters(s), at, floats;

	for (uint32_t i = 0; fetch_piece(n, i, &at, &floats); i++) {
		const float *from = j->follow.state + at;
		const float *state[KINDS] = { from, from + n, from + 2 * n };

		if (j->follow.fresh[i])
			stage_put_state(s, at, floats, state);
	}
}

/* Returns the sum that the last JOB_NORM of the stage has decoded. */
static const float *sum_of(const struct stage *s, const struct slices *slices)
{
	return stage_sums_on_device(s) ? stage_summed(s) : slices_staging(slices);
}

static int follow_commit(struct compute *c, struct job *j)
{
	int rc = 0;

	if (j->follow.fresh)
		put_fresh(c->copy, j);
	if (j->slices)
		rc = stage_step(c->copy, sum_of(c->copy, j->slices), j->step.scale,
				&j->step.adamw, c->setup.steps_before + j->iteration);
	if (rc)
		return error_set(&j->err, rc, "the copy of stage %u: step: %s",
				 stage_index(c->copy), strerror(-rc));
	if (j->follow.whole)
		j->hash = stage_hash(c->copy);
	return 0;
}

/* The start of a pass that is timed. */
struct pass_start {
	int64_t at_us;      /* time at which the pass began */
	int64_t process_us; /* processor time of this process when the pass began */
};

static struct pass_start pass_start(void)
{
	return (struct pass_start){ clock_monotonic_us(), clock_process_us() };
}

/* Adds a pass to the times of its kind. If a process with a CPU quota was idle, the kernel runs a
 * short pass of this process at full speed, and stops the process later. Therefore the time of a
 * pass is the longer of two times: its elapsed time, and its processor time divided by the
 * quota. */
static void add_pass(const struct compute *c, struct pass_times *p, struct pass_start start)
{
	double s = (double)(clock_monotonic_us() - start.at_us) * 1e-6;

	if (c->setup.quota > 0)
		s = fmax(s, (double)(clock_process_us() - start.process_us) * 1e-6 /
				    c->setup.quota);
	if (p->count == 0 || s < p->least_s)
		p->least_s = s;
	if (p->count++ > 0)
		p->later_s += s;
}

/* Returns the time of a pass. Without a quota this is the shortest time, because other programs
 * can only delay a pass. With a quota it is the mean of all passes but the first. The first pass
 * is slower than the others. The kernel stops passes under a quota a varying number of times. A
 * node that reported its shortest time would get more microbatches than it can compute. */
static double pass_s(const struct compute *c, const struct pass_times *p)
{
	return c->setup.quota > 0 && p->count > 1 ? p->later_s / (p->count - 1) : p->least_s;
}

/* Times a task under the conditions of a microbatch's task. On a GPU, the input of the next task
 * is copied in during the task, and the task's output leaves after the task. All timed tasks have
 * the same input, so MEASURED_INPUT identifies it. */
static int time_task(struct compute *c, enum task_kind kind, const float *in, float *out,
		     struct pass_times *times)
{
	bool first = stage_index(c->stage) == 0, gives = kind != TASK_BACKWARD || !first;
	bool leaves = gives && stage_takes_encoded(c->stage);
	struct stage_task t = { .kind = kind, .keep = true, .count = true, .in = in,
				.in_number = MEASURED_INPUT, .next = in,
				.next_number = MEASURED_INPUT, .leaves = leaves,
				.out = gives && !leaves ? out : NULL };
	struct pass_start start = pass_start();
	struct error err;
	int rc;

	if (first && kind == TASK_FORWARD) {
		corpus_batch(c->corpus, 0, 1, 0, c->setup.batch, c->tokens, c->targets);
		t.in = NULL;
	}
	if (first && kind != TASK_BACKWARD)
		t.tokens = kind == TASK_FORWARD ? c->tokens : c->targets;
	rc = stage_run(c->stage, &t);
	add_pass(c, times, start);
	return t.output ? stage_output_collect(t.output, out, &err) : rc;
}

/* Times one forward pass, loss and backward pass. The input's values do not matter. The caller
 * zeroes the gradient afterwards. */
static int measure_once(struct compute *c, const float *in, float *out)
{
	int rc = time_task(c, TASK_FORWARD, in, out, &c->forward);

	if (rc == 0 && stage_index(c->stage) == 0)
		rc = time_task(c, TASK_LOSS, in, out, &c->loss);
	return rc ? rc : time_task(c, TASK_BACKWARD, in, out, &c->backward);
}

static int measure_stage(struct compute *c, struct job *j)
{
	size_t n = stage_activation(c->stage);
	float *in = malloc(n * sizeof(float)), *out = malloc(n * sizeof(float));
	int rc = in && out ? 0 : -ENOMEM;

	if (!c->measured)
		c->forward = c->backward = c->loss = (struct pass_times){ 0 };
	for (size_t k = 0; in && k < n; k++)
		in[k] = (float)((k * 7919) % 1000) * 1e-3f - 0.5f;
	for (int i = 0; rc == 0 && !c->measured && i < MEASURE_TIMES; i++)
		rc = measure_once(c, in, out);
	stage_release(c->stage, 0);
	stage_zero_gradient(c->stage);
	free(in);
	free(out);
	if (rc)
		return error_set(&j->err, rc, "stage %u: measuring: %s", stage_index(c->stage),
				 strerror(-rc));
	c->measured = true;
	j->measured.forward_s = pass_s(c, &c->forward);
	j->measured.backward_s = pass_s(c, &c->backward);
	j->measured.loss_s = pass_s(c, &c->loss);
	j->measured.corpus_hash = stage_index(c->stage) == 0 ? corpus_hash(c->corpus) : 0;
	j->hash = stage_hash(c->stage);
	return 0;
}

static void read_data(struct compute *c, const struct job_task *t)
{
	if (t->evaluate)
		corpus_validation_batch(c->corpus, t->position, c->setup.batch, c->tokens,
					c->targets);
	else
		corpus_batch(c->corpus, t->shard, c->setup.n_shards, t->position, c->setup.batch,
			     c->tokens, c->targets);
}

/* Runs one task of a microbatch on the stage. On the data node this includes reading the tokens. */
static int run_task(struct compute *c, struct job *j)
{
	struct job_task *t = &j->task;
	bool first = stage_index(c->stage) == 0;
	bool ends = t->kind == TASK_LOSS ? t->evaluate : t->kind == TASK_BACKWARD && first;
	struct stage_task s = { .kind = t->kind,
				.slot = t->slot,
				.keep = !t->evaluate,
				.count = t->count,
				.in = t->in.at,
				.in_codec = t->in.codec,
				.in_number = t->in_number,
				.next = t->next.at,
				.next_codec = t->next.codec,
				.next_number = t->next_number,
				.out_codec = t->out.codec,
				.leaves = t->leaves && !ends };
	int rc;

	if (!ends && !s.leaves) {
		s.out = t->out.at =
			malloc(codec_bytes(&s.out_codec, stage_activation(c->stage)) + 1);
		if (!s.out)
			return error_set(&j->err, -ENOMEM, "no memory for an activation");
	}
	if (first && t->kind != TASK_BACKWARD) {
		read_data(c, t);
		s.tokens = t->kind == TASK_FORWARD ? c->tokens : c->targets;
	}
	rc = stage_run(c->stage, &s);
	t->loss = s.loss;
	t->leaving = s.output;
	if (rc)
		return error_set(&j->err, rc, "stage %u: a task failed: %s",
				 stage_index(c->stage), strerror(-rc));
	if (t->kind == TASK_BACKWARD)
		stage_release(c->stage, t->slot);
	return 0;
}

/* Returns the pool of threads for a sum of this many floats. Returns NULL if the sum is small,
 * because the caller's thread then computes it alone. The pool uses up to POOL_MOST cores,
 * because no task runs during the sum. The first large sum starts the threads. */
static struct pool *pool_for(struct compute *c, size_t floats)
{
	uint32_t threads = cores_usable() < POOL_MOST ? cores_usable() : POOL_MOST;
	struct error err;

	if (floats < POOL_FLOATS || threads < 2)
		return NULL;
	if (!c->pool && pool_new(&c->pool, threads, &err) != 0)
		c->pool = NULL;
	return c->pool;
}

/* If a sum on the stage's device has failed with rc, writes the error message. Returns rc. */
static int sum_error(const struct stage *s, struct job *j, int rc)
{
	return rc ? error_set(&j->err, rc, "stage %u: its gradient's sum: %s", stage_index(s),
			      strerror(-rc))
		  : 0;
}

/* Encodes a slice of the gradient on the stage's device, or on the CPU's cores. On a device, does
 * nothing for this node's own part, because this part stays on the device. */
static int encode_slice(struct compute *c, struct job *j, uint32_t slice, void *to)
{
	if (!stage_sums_on_device(c->stage))
		slices_encode(j->slices, slice, to, stage_gradient(c->stage),
			      pool_for(c, stage_parameters(c->stage)));
	else if (slice != slices_mine(j->slices))
		return sum_error(c->stage, j,
				 slices_encode_on(j->slices, slice, to, c->stage));
	return 0;
}

/* Encodes the gradient, one part for each replica. The job's bodies get the parts for the other
 * replicas, and the slices get this node's own part. */
static int encode_gradient(struct compute *c, struct job *j)
{
	uint32_t n = slices_count(j->slices), mine = slices_mine(j->slices);
	int rc = 0;

	j->bodies = alloc_array(n, sizeof(j->bodies[0]));
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		void *to = slices_own_part(j->slices);

		if (i != mine)
			to = j->bodies[i] = malloc(slices_bytes(j->slices, i) + 1);
		if (!to)
			return error_set(&j->err, -ENOMEM, "no memory for the gradient's copy");
		rc = encode_slice(c, j, i, to);
	}
	return rc;
}

/* Sums all replicas' parts of this node's slice, and copies the sum to the job's bodies, to be sent
 * to the other replicas. */
static int add_parts(struct compute *c, struct job *j)
{
	uint32_t n = slices_count(j->slices), mine = slices_mine(j->slices);
	size_t bytes = slices_bytes(j->slices, mine);
	int rc = 0;

	if (stage_sums_on_device(c->stage))
		rc = sum_error(c->stage, j, slices_sum_on(j->slices, c->stage));
	else
		slices_sum(j->slices, pool_for(c, stage_parameters(c->stage)));
	if (rc)
		return rc;
	j->bodies = alloc_array(n, sizeof(j->bodies[0]));
	j->bodies[mine] = malloc(bytes + 1);
	if (!j->bodies[mine])
		return error_set(&j->err, -ENOMEM, "no memory for the sum's copy");
	memcpy(j->bodies[mine], slices_own_sum(j->slices), bytes);
	return 0;
}

static int find_norm(struct compute *c, struct job *j)
{
	struct stage *s = j->of_copy ? c->copy : c->stage;
	size_t n = stage_parameters(s);

	if (stage_sums_on_device(s))
		return sum_error(s, j, slices_check_on(j->slices, s, &j->sum_squares));
	slices_decode(j->slices, pool_for(c, n));
	j->sum_squares = slices_hash(j->slices, pool_for(c, n));
	return 0;
}

static int take_step(struct compute *c, struct job *j)
{
	int rc = stage_step(c->stage, sum_of(c->stage, j->slices), j->step.scale, &j->step.adamw,
			    c->setup.steps_before + j->iteration);

	if (rc)
		return error_set(&j->err, rc, "stage %u: step: %s", stage_index(c->stage),
				 strerror(-rc));
	c->pristine = false;
	stage_zero_gradient(c->stage);
	j->hash = stage_hash(c->stage);
	return 0;
}

static int take_layers(struct compute *c, struct job *j)
{
	if (!c->copy)
		return error_set(&j->err, -EINVAL, "stage %u: there is no copy to take layers from",
				 stage_index(c->stage));
	c->pristine = false;
	stage_stack(c->stage, c->copy);
	stage_zero_gradient(c->stage);
	j->hash = stage_hash(c->stage);
	return 0;
}

/* Copies the next part of a stage's weights and moments. Tasks can run between two parts, so no
 * task waits for a whole copy. */
static int copy_state(struct compute *c, struct job *j)
{
	struct stage *s = j->of_copy ? c->copy : c->stage;
	size_t n = stage_parameters(s), left = n - j->state.copied;
	size_t part = left < j->state.most ? left : j->state.most;
	float *to[KINDS];

	if (!j->out)
		j->out = malloc(KINDS * n * sizeof(float));
	if (!j->out)
		return error_set(&j->err, -ENOMEM, "no memory for a copy of the weights");
	split_state(j->out, n, j->state.copied, to);
	stage_get_state(s, j->state.copied, part, to);
	j->state.copied += part;
	j->state.whole = j->state.copied == n;
	return 0;
}

static int perform_job(struct compute *c, struct job *j)
{
	switch (j->kind) {
	case JOB_PREPARE:
		return prepare_stage(c, j);
	case JOB_LOAD:
		return load_copy(c, j);
	case JOB_RESTORE:
		return restore_file(c, j);
	case JOB_MIX:
		return mix_state(c, j);
	case JOB_KEEP:
		return make_copy(c, j);
	case JOB_FOLLOW:
		return follow_commit(c, j);
	case JOB_MEASURE:
		return measure_stage(c, j);
	case JOB_TASK:
		return run_task(c, j);
	case JOB_ZERO:
		stage_zero_gradient(c->stage);
		return 0;
	case JOB_GRADIENT:
		return encode_gradient(c, j);
	case JOB_SUM:
		return add_parts(c, j);
	case JOB_NORM:
		return find_norm(c, j);
	case JOB_STEP:
		return take_step(c, j);
	case JOB_STACK:
		return take_layers(c, j);
	case JOB_STATE:
		return copy_state(c, j);
	}
	return -EINVAL;
}

/* Fails the job if the stage's device has failed. Results that the device did not overwrite would
 * otherwise pass as new gradients and hashes. The error names the operation that failed first. */
static void check_failure(const struct stage *s, struct job *j)
{
	const char *failure = s ? stage_failure(s) : "";

	if (!failure[0])
		return;
	if (j->rc < 0)
		error_prefix(&j->err, j->rc, "the device failed (%s)", failure);
	else
		j->rc = error_set(&j->err, -EIO, "stage %u: the device failed (%s)",
				  stage_index(s), failure);
}

/* Stores the device's free memory in the job, for the event loop. The event loop must not ask a
 * GPU itself, because a GPU that hangs would stop the heartbeats. */
static void note_free_memory(struct compute *c, struct job *j)
{
	struct stage_device d;

	if (j->rc == 0 && stage_device(&d, c->setup.device, NULL) == 0)
		j->prepare.device_free_bytes = d.free_bytes;
}

void compute_run(void *compute, void *job)
{
	struct compute *c = compute;
	struct job *j = job;

	j->began_us = clock_monotonic_us();
	j->rc = perform_job(c, j);
	check_failure(c->stage, j);
	check_failure(c->copy, j);
	if (j->kind == JOB_PREPARE || j->kind == JOB_KEEP)
		note_free_memory(c, j);
	j->ended_us = clock_monotonic_us();
}

void job_clear(struct job *j)
{
	if (j->bodies)
		for (uint32_t i = 0; i < slices_count(j->slices); i++)
			free(j->bodies[i]);
	free(j->bodies);
	free(j->out);
	free(j->task.out.at);
	stage_output_drop(j->task.leaving);
	body_drop(j->task.next_owner);
	j->bodies = NULL;
	j->out = NULL;
	j->task.out.at = NULL;
	j->task.leaving = NULL;
	j->task.next_owner = NULL;
}
