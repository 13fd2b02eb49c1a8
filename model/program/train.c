/* skippipe train: trains in one process with the same stages, data and steps as a run over many
 * nodes, so that the two can be compared. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/output.h"
#include "base/skip_schedule.h"
#include "model/files/checkpoint.h"
#include "model/files/tokenizer_files.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"
#include "model/program/options.h"
#include "model/program/out.h"
#include "model/program/plan_paths.h"
#include "model/text/corpus.h"
#include "model/text/tokenizer.h"

static const char intro[] =
	"usage: skippipe train [--preset NAME | --model FILE | --from CHECKPOINT] [options]\n"
	"\n"
	"Trains a model in one process, and prints its loss.\n";

struct training {
	struct options o;
	char schedule[SKIP_SCHEDULE_RECIPE]; /* skip schedule of the recipe, as text */
	struct trainer *trainer;
	struct corpus *corpus;
	struct planned_paths planned; /* the paths of --plan */
	/* Paths (M, n_stages) and their lengths (M), if they are drawn without a plan. */
	uint32_t *paths, *lengths;
	int32_t *tokens, *targets; /* (B, T) of a microbatch */
	uint64_t iteration, position;
	uint64_t trained_on; /* corpus_hash of the checkpoint's corpus; 0: unknown */
	uint64_t started_at; /* the iteration at which this process began */
	int64_t start_us, training_us;
	uint64_t tokens_trained;
	double flops; /* floating-point operations of the training so far */
	/* Number of iterations in a row whose loss or gradient was not finite. */
	uint32_t bad_steps;
	bool unread; /* standard output has no reader any more */
	struct out_place place;
	bool bar;
};

static void session_fini(struct training *s)
{
	out_release(&s->place);
	trainer_free(s->trainer);
	corpus_free(s->corpus);
	planned_paths_free(&s->planned);
	free(s->paths);
	free(s->lengths);
	free(s->tokens);
	free(s->targets);
	options_fini(&s->o);
}

/* Sets the options that are part of the recipe of --recipe. */
static int take_recipe(struct training *s, struct error *err)
{
	struct train_options *t = &s->o.train;
	struct visit_rules *v = &s->o.visits;
	uint32_t n = s->o.config.n_stages;

	if (!t->recipe)
		return 0;
	if (t->skip_schedule || t->stack || v->skip || v->whole_first || v->whole_last)
		return error_set(err, -EINVAL,
				 "--recipe: not with --skip, --skip-schedule, --stack or "
				 "--whole-first and --whole-last");
	v->always |= 1 | (stage_set)1 << (n - 1);
	t->skip_schedule = s->schedule;
	t->stack = true;
	s->o.grad_norm = GRAD_NORM_VISITS;
	return skip_schedule_of_recipe(s->schedule, t->recipe, visit_rules_droppable(v->always, n),
				       err);
}

/* Refuses options about paths together with --plan, because the plans decide the paths. */
static int check_beside_plans(const struct options *o, uint32_t microbatches, struct error *err)
{
	static const char *const paths[] = { "recipe",	    "skip-schedule", "skip",
					     "skip-share",  "always",	     "whole-first",
					     "whole-last",  "swap",	     "break" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (options_given(o, paths[i]))
			return error_set(err, -EINVAL,
					 "--%s: not with --plan, which has its own paths",
					 paths[i]);
	if (options_given(o, "microbatches") && o->microbatches != microbatches)
		return error_set(err, -EINVAL,
				 "--microbatches %" PRIu32 ": %s has %" PRIu32, o->microbatches,
				 o->train.plan, microbatches);
	return 0;
}

/* Reads the plans of --plan. Plans of a run's phases also set the skip schedule, which decides when
 * stages are stacked. */
static int read_plans(struct training *s, struct error *err)
{
	const char *file = s->o.train.plan;
	struct visit_rules *v = &s->o.visits;
	int rc = planned_paths_read(&s->planned, file, err);

	if (rc)
		return rc;
	if (s->planned.plans[0].n_stages != s->o.config.n_stages)
		return error_set(err, -1, "%s: has %" PRIu32 " stages, the model has %" PRIu32,
				 file, s->planned.plans[0].n_stages, s->o.config.n_stages);
	rc = check_beside_plans(&s->o, s->planned.plans[0].n, err);
	if (rc)
		return rc;
	s->o.microbatches = s->planned.plans[0].n;
	if (s->planned.phases.n > 0) {
		v->schedule = s->planned.phases;
		v->always = s->planned.always;
	}
	return 0;
}

static int open_plans(struct training *s, struct error *err)
{
	const struct model_config *c = &s->o.config;
	int rc;

	if (s->o.train.stack || s->o.train.recipe) {
		rc = model_cut_check_stack(c, err);
		if (rc)
			return rc;
	}
	if (s->o.train.plan)
		return read_plans(s, err);
	rc = take_recipe(s, err);
	if (rc)
		return rc;
	rc = visit_rules_check(&s->o.visits, c->n_stages, err);
	return rc || !s->o.train.skip_schedule
		       ? rc
		       : skip_schedule_parse(&s->o.visits.schedule, s->o.train.skip_schedule,
					     s->o.iterations,
					     visit_rules_droppable(s->o.visits.always, c->n_stages),
					     err);
}

/* Makes the schedule of the learning rate end when the training ends, unless the user has given the
 * schedule's length.
 */
static void end_schedule(struct training *s)
{
	struct hyperparameters *r = &s->o.hyper;

	if (!s->o.set.length && (s->o.from || r->iterations == 0))
		hyper_end_with(r, s->iteration, s->o.iterations);
}

/* Reads the progress of the training from its checkpoint's manifest. */
static int load_manifest(struct training *s, struct error *err)
{
	struct checkpoint c;
	int rc;

	if (!s->o.from)
		return 0;
	rc = checkpoint_read(s->o.from, &c, err);
	if (rc)
		return rc;
	s->iteration = c.iteration;
	s->position = hyper_position(&c.hyper, &s->o.hyper, c.position);
	s->trained_on = c.corpus;
	if (!options_given(&s->o, "seed"))
		s->o.seed = c.seed;
	return 0;
}

static int load_weights(struct training *s, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; s->o.from && i < s->o.config.n_stages && !rc; i++)
		rc = checkpoint_read_stage(s->o.from, trainer_stages(s->trainer)[i], err);
	return rc;
}

/* Compares the corpus with the checkpoint's. A new corpus is read from its start, even if the
 * training continues. */
static int check_corpus(struct training *s, struct error *err)
{
	if (!s->trained_on || s->trained_on == corpus_hash(s->corpus))
		return 0;
	if (!s->o.train.new_corpus)
		return error_set(err, -EINVAL,
				 "%s was trained on another corpus: give that corpus with "
				 "--corpus, or continue on this corpus with --new-corpus",
				 s->o.from);
	s->position = 0;
	return 0;
}

/* Checks the plan, model, checkpoint, corpus, memory and output folder, so that an error is found
 * before hours of work. */
static int session_init(struct training *s, struct error *err)
{
	const struct hyperparameters *r = &s->o.hyper;
	size_t n = (size_t)r->batch * r->sequence;
	int rc = open_plans(s, err);

	if (!s->o.tokenizer && s->o.from && tokenizer_is_in(s->o.from))
		s->o.tokenizer = s->o.from;
	if (!rc)
		rc = load_manifest(s, err);
	end_schedule(s);
	if (!rc)
		rc = open_trainer(&s->trainer, &s->o, err);
	if (!rc)
		rc = trainer_set_formats(s->trainer, s->o.train.wire, s->o.train.sum_wire, err);
	if (!rc)
		rc = load_weights(s, err);
	if (!rc)
		rc = load_corpus(&s->corpus, &s->o, s->o.tokenizer, err);
	if (!rc)
		rc = check_corpus(s, err);
	if (!rc && s->o.microbatches == 0)
		rc = error_set(err, -EINVAL, "--microbatches 0: expected at least 1");
	if (!rc && s->o.out)
		rc = out_claim(&s->place, &s->o, MODEL_CHECKPOINT, err);
	if (rc)
		return rc;
	s->tokens = calloc(n, sizeof(*s->tokens));
	s->targets = calloc(n, sizeof(*s->targets));
	s->paths = calloc((size_t)s->o.microbatches * s->o.config.n_stages, sizeof(*s->paths));
	s->lengths = calloc(s->o.microbatches, sizeof(*s->lengths));
	if (!s->tokens || !s->targets || !s->paths || !s->lengths)
		return error_set(err, -1, "no memory for microbatches");
	s->started_at = s->iteration;
	s->start_us = clock_monotonic_us();
	s->bar = !s->o.jsonl && isatty(STDERR_FILENO);
	return 0;
}

/* Returns the floating-point operations of a microbatch. For each token there are 6 for each weight
 * of the visited stages, and 12 * layers * dim * T for attention. The weights of the embedding do
 * not count, because they are looked up and not multiplied. */
static double microbatch_flops(const struct training *s, const uint32_t *path, uint32_t n)
{
	const struct model_config *c = &s->o.config;
	struct stage *const *stages = trainer_stages(s->trainer);
	double weights = (double)stage_parameters(stages[0]), layers;

	if (!c->tied)
		weights -= (double)c->vocab * c->dim;
	layers = model_layer_count(c, 0);
	for (uint32_t i = 0; i < n; i++) {
		weights += (double)stage_parameters(stages[path[i]]);
		layers += model_layer_count(c, path[i]);
	}
	return (6 * weights + 12 * layers * c->dim * s->o.hyper.sequence) * s->o.hyper.batch *
	       s->o.hyper.sequence;
}

/* Reports a loss or gradient that is not finite. when: a phrase such as "in iteration 7". */
static int report_divergence(const struct training *s, const char *when, const char *what,
			     struct error *err)
{
	return error_set(err, -ERANGE,
			 "the training has diverged %s: the %s is not finite; a learning rate of "
			 "%g may be too high",
			 when, what, (double)hyper_lr(&s->o.hyper, s->iteration + 1));
}

/* Gives the path of microbatch m of this iteration, and its data. */
static void next_microbatch(struct training *s, uint32_t m, const uint32_t **path, uint32_t *n)
{
	const struct options *o = &s->o;
	uint32_t stages = o->config.n_stages;

	corpus_batch(s->corpus, 0, 1, s->position + m, o->hyper.batch, s->tokens, s->targets);
	if (o->train.plan) {
		const struct plan_paths *plan = planned_paths_at(&s->planned, s->iteration);

		*path = plan->paths + (size_t)m * stages;
		*n = plan->lengths[m];
	} else {
		*path = s->paths + (size_t)m * stages;
		*n = s->lengths[m];
	}
}

/* Adds up the gradients of all microbatches, each along its path. *loss: the mean loss. */
static int run_microbatches(struct training *s, double *loss)
{
	const struct options *o = &s->o;
	struct visit_rules rules = o->visits;
	int rc = 0;

	*loss = 0;
	rules.skip = visits_skip(&rules, s->iteration, o->iterations, &rules.share);
	if (!o->train.plan)
		visits_draw(&rules, o->config.n_stages, o->microbatches, o->seed, s->iteration,
			    s->paths, s->lengths);
	for (uint32_t m = 0; m < o->microbatches && !rc; m++) {
		const uint32_t *path;
		uint32_t n;
		float one;

		next_microbatch(s, m, &path, &n);
		rc = trainer_microbatch(s->trainer, path, n, s->tokens, s->targets, &one);
		*loss += (double)one / o->microbatches;
		s->flops += microbatch_flops(s, path, n);
	}
	s->position += o->microbatches;
	return rc;
}

/* Returns true if all microbatches of an iteration skip all droppable stages. */
static bool skips_all(const struct training *s, uint64_t iteration, uint32_t droppable)
{
	uint32_t share;

	return visits_skip(&s->o.visits, iteration, s->o.iterations, &share) == droppable &&
	       share == 0;
}

/* Before the first iteration that visits droppable stages, copies the state of a trained stage to
 * each droppable stage. */
static int stack_stages(struct training *s)
{
	const struct visit_rules *v = &s->o.visits;
	uint32_t droppable = visit_rules_droppable(v->always, s->o.config.n_stages);
	int rc = 0;

	if (!s->o.train.stack || s->iteration == 0 || droppable == 0 ||
	    skips_all(s, s->iteration, droppable))
		return 0;
	for (uint64_t i = s->iteration; i-- > 0;)
		if (!skips_all(s, i, droppable))
			return 0;
	for (uint32_t i = 1; i < s->o.config.n_stages && !rc; i++)
		if (!visit_rules_always(v->always, i))
			rc = trainer_stack(s->trainer, i,
					   (uint32_t)stage_set_source(v->always | 1, (int)i));
	return rc;
}

/* Computes one iteration. If the loss or a gradient is not finite, makes no step and writes no
 * checkpoint. Then the iteration is repeated with the next text, or the training ends. */
static int train_iteration(struct training *s, double *loss, double *norm, struct error *err)
{
	const struct options *o = &s->o;
	int64_t begin = clock_monotonic_us();
	char when[64];

	snprintf(when, sizeof(when), "in iteration %" PRIu64, s->iteration + 1);
	for (;;) {
		int rc = stack_stages(s);

		if (!rc)
			rc = run_microbatches(s, loss);
		if (!rc)
			rc = isfinite(*loss) ? trainer_step(s->trainer, s->iteration + 1,
							    o->grad_norm, norm)
					     : -ERANGE;
		if (!rc)
			break;
		if (rc == -ERANGE) {
			const char *what = isfinite(*loss) ? "gradient" : "loss";

			if (s->bad_steps++ == o->train.skip_bad_steps)
				return report_divergence(s, when, what, err);
			fprintf(stderr,
				"skippipe train: the %s %s is not finite; its microbatches are "
				"skipped\n",
				what, when);
			rc = trainer_drop_gradient(s->trainer);
		}
		if (rc)
			return error_set(err, rc, "iteration %" PRIu64 " failed: %s",
					 s->iteration + 1, load_failure(s->trainer, rc));
	}
	s->bad_steps = 0;
	s->iteration++;
	s->tokens_trained += (uint64_t)o->microbatches * o->hyper.batch * o->hyper.sequence;
	s->training_us += clock_monotonic_us() - begin;
	return 0;
}

static int measure_validation(struct training *s, double *loss, struct error *err)
{
	uint32_t path[1024];
	char when[64];
	int rc = 0;

	*loss = 0;
	for (uint32_t i = 0; i + 1 < s->o.config.n_stages; i++)
		path[i] = i + 1;
	for (uint32_t k = 0; k < s->o.batches && !rc; k++) {
		float one = 0;

		corpus_validation_batch(s->corpus, k, s->o.hyper.batch, s->tokens, s->targets);
		rc = trainer_evaluate(s->trainer, path, s->o.config.n_stages - 1, s->tokens,
				      s->targets, &one);
		*loss += (double)one / s->o.batches;
	}
	if (rc)
		return error_set(err, rc, "validation failed: %s", load_failure(s->trainer, rc));
	snprintf(when, sizeof(when), "after iteration %" PRIu64, s->iteration);
	return isfinite(*loss) ? 0 : report_divergence(s, when, "validation loss", err);
}

static bool validation_due(const struct training *s)
{
	uint32_t every = s->o.train.validate_every;

	return every && s->o.batches &&
	       (s->iteration % every == 0 || s->iteration == s->o.iterations ||
		s->iteration == s->started_at);
}

static void draw_bar(const struct training *s, double loss)
{
	enum { WIDTH = 24 };
	double done = s->o.iterations ? (double)s->iteration / s->o.iterations : 1;
	double seconds = (double)s->training_us / 1e6;
	double each = seconds / (double)(s->iteration - s->started_at);
	int full = (int)(done * WIDTH);

	fprintf(stderr,
		"\r[%.*s%.*s] %" PRIu64 "/%" PRIu32 " loss %.4f %.0f tok/s ETA %.0f s   ", full,
		"########################", WIDTH - full, "                        ",
		s->iteration, s->o.iterations, loss, (double)s->tokens_trained / seconds,
		each * (double)(s->o.iterations - s->iteration));
	if (s->iteration == s->o.iterations)
		fputc('\n', stderr);
}

static void print_step_json(const struct training *s, double loss, double norm,
			    const double *validation)
{
	double seconds = (double)s->training_us / 1e6;
	double rate = s->training_us ? (double)s->tokens_trained / seconds : 0;

	printf("{\"event\":\"iteration\",\"n\":%" PRIu64, s->iteration);
	if (s->iteration > s->started_at)
		printf(",\"loss\":%.6f,\"norm\":%.6f,\"lr\":%.3g,\"tokens_per_s\":%.1f,"
		       "\"model_gflops\":%.2f",
		       loss, norm, (double)hyper_lr(&s->o.hyper, s->iteration), rate,
		       s->flops / seconds / 1e9);
	if (validation)
		printf(",\"validation\":%.6f", *validation);
	printf(",\"elapsed_s\":%.3f}\n", (double)(clock_monotonic_us() - s->start_us) / 1e6);
}

/* Prints a step. If the output cannot be written, a training without --out fails. A training with
 * --out continues when the disk is full, and ends in an orderly way when the reader of its output
 * has ended. */
static int report_step(struct training *s, double loss, double norm, const double *validation,
		       struct error *err)
{
	int rc;

	if (s->o.jsonl) {
		print_step_json(s, loss, norm, validation);
	} else {
		if (s->bar && s->iteration > s->started_at)
			draw_bar(s, loss);
		if (validation)
			printf("%siteration %" PRIu64 "  validation loss %.4f\n",
			       s->bar ? "\r\033[K" : "", s->iteration, *validation);
	}
	rc = output_flush(s->o.out ? NULL : err);
	s->unread = rc == -EPIPE;
	return rc && !s->o.out ? -EIO : 0;
}

static int save_checkpoint(struct training *s, struct error *err)
{
	struct checkpoint c = { .config = s->o.config,
				.hyper = s->o.hyper,
				.iteration = s->iteration,
				.seed = s->o.seed,
				.position = s->position,
				.corpus = corpus_hash(s->corpus) };

	int rc;

	if (!s->o.out)
		return 0;
	rc = checkpoint_write(s->o.out, &c, trainer_stages(s->trainer), err);
	if (!rc && s->o.from)
		rc = tokenizer_files_copy(s->o.from, s->o.out, err);
	if (!rc && s->place.replaces)
		rc = tokenizer_files_remove(s->o.out, s->o.from, s->o.tokenizer, err);
	if (!rc && s->o.tokenizer)
		rc = tokenizer_copy(s->o.tokenizer, s->o.out, err);
	/* From now on o->out has a checkpoint of this training, so no older model is left to
	 * replace. */
	s->place.replaces = false;
	return rc;
}

static int run_training(struct training *s, struct error *err)
{
	double loss = 0, norm = 0, validation = 0;
	int rc = 0;

	for (;;) {
		bool due = validation_due(s), every;

		if (due)
			rc = measure_validation(s, &validation, err);
		if (!rc && (due || s->iteration > s->started_at))
			rc = report_step(s, loss, norm, due ? &validation : NULL, err);
		if (rc)
			return rc;
		if (s->iteration >= s->o.iterations || interrupt_seen() || s->unread)
			break;
		rc = train_iteration(s, &loss, &norm, err);
		if (rc)
			return rc;
		every = s->o.train.checkpoint_every &&
			s->iteration % s->o.train.checkpoint_every == 0;
		if (every && s->iteration < s->o.iterations)
			rc = save_checkpoint(s, err);
		if (rc)
			return rc;
	}
	return save_checkpoint(s, err);
}

static void print_summary(const struct training *s)
{
	double seconds = (double)s->training_us / 1e6;

	if (s->o.from && s->iteration >= s->o.iterations && s->iteration == s->started_at)
		fprintf(stderr,
			"skippipe train: %s is at iteration %" PRIu64
			" already, and --iterations is %" PRIu32 ": nothing was trained\n",
			s->o.from, s->iteration, s->o.iterations);
	if (s->o.jsonl || s->iteration == s->started_at)
		return;
	printf("%zu parameters, %.1f MiB for the stages (recompute %s), %" PRIu64
	       " tokens in %.1f s: %.0f tokens/s, %.1f model GFLOP/s\n"
	       "(6 FLOP a weight visited and 12 * layers * dim * T for attention, each "
	       "token)\n",
	       trainer_parameters(s->trainer), (double)trainer_memory_bytes(s->trainer) / 0x1p20,
	       recompute_name(trainer_recompute(s->trainer)), s->tokens_trained, seconds,
	       (double)s->tokens_trained / seconds, s->flops / seconds / 1e9);
	if (s->o.out)
		printf("checkpoint of iteration %" PRIu64 " in %s\n", s->iteration, s->o.out);
}

int command_train(int argc, char **argv)
{
	struct training s = { .place = OUT_PLACE_NONE };
	struct error err = { "" };
	int rc = options_parse(&s.o, argc, argv, intro);

	if (rc) {
		options_fini(&s.o);
		return rc < 0 ? 0 : rc;
	}
	interrupt_catch();
	if (s.o.out)
		/* Without this, a write to a closed pipe would end the process. Now output_flush
		 * returns -EPIPE. */
		signal(SIGPIPE, SIG_IGN);
	rc = session_init(&s, &err);
	if (!rc)
		rc = run_training(&s, &err);
	if (!rc)
		print_summary(&s);
	else
		rc = options_fail(argv[0], &err);
	if (!rc && interrupt_seen())
		rc = EXIT_INTERRUPTED;
	session_fini(&s);
	return rc;
}
