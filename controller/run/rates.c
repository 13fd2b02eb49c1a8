/* rates.c - the learning rate of each iteration of a run, and the end on command.
 *
 * An operator pays for hours, and often does not know at the beginning when the run will end. A run
 * without a fixed length therefore holds its learning rate. The command `finish` lets the rate fall
 * over the next iterations and then ends the run. A falling rate lowers the loss more than many
 * iterations with a high rate would.
 *
 * The order is saved before it takes effect, so a restarted controller continues the decay with the
 * same rates. */
#include "controller/run/rates.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/array.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/outlook.h"
#include "controller/run/run.h"

enum { FINISH_MOST = 1 << 24, /* float is exact up to this integer */ TIMES = 32 };

static uint64_t trained(const struct run *run, uint64_t iteration)
{
	return run->training.origin.steps + iteration;
}

static uint64_t length_of(const struct run *run)
{
	uint64_t n = run->options.iterations;

	return n > 0 ? trained(run, n) : 0;
}

/* ---- the hyperparameters of a new run ---- */

/* Sets one hyperparameter from "FIELD=VALUE". */
static int set_field(struct hyperparameters *r, const char *text, struct error *err)
{
	const char *equals = strchr(text, '=');
	char name[64];
	int rc;

	if (!equals || (size_t)(equals - text) >= sizeof(name))
		return error_set(err, -EINVAL, "--set: expected FIELD=VALUE, got \"%s\"", text);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	rc = model_config_set(NULL, r, name, equals + 1, err);
	return rc ? error_prefix(err, rc, "--set") : 0;
}

int rates_begin(struct run *run, bool trained_before, struct error *err)
{
	const struct options_training *o = &run->options.training;
	struct hyperparameters *r = &run->training.hyper;
	bool is_length_given = !trained_before && r->iterations > 0;
	int rc = 0;

	for (uint32_t i = 0; i < o->n_set && rc == 0; i++) {
		rc = set_field(r, o->set[i], err);
		is_length_given |= strncmp(o->set[i], "iterations=", 11) == 0;
	}
	if (rc == 0 && !is_length_given)
		hyper_end_with(r, run->training.origin.steps, length_of(run));
	return rc;
}

/* ---- the rates ---- */

/* Returns the hyperparameters with which the run ends after the operator has ordered its end. Their
 * schedule is WSD: the rate falls from its value in iteration f->begin to the lowest rate of the
 * run's hyperparameters. If these hyperparameters never lower the rate, the rate falls to a tenth
 * of the peak. */
static struct hyperparameters finish_hyperparameters(const struct run *run,
						     const struct finish_order *f)
{
	struct hyperparameters r = run->training.hyper;
	float lowest = r.adamw.lr * (r.final_lr < 1 ? r.final_lr : 0.1f);
	uint64_t begin = trained(run, f->begin);

	r.adamw.lr = hyper_lr(&r, begin);
	r.final_lr = lowest < r.adamw.lr ? lowest / r.adamw.lr : 1;
	r.schedule = r.schedule == LR_WSD_SQRT ? LR_WSD_SQRT : LR_WSD;
	r.iterations = (uint32_t)(begin + f->n);
	r.decay = (float)f->n;
	return r;
}

static struct hyperparameters hyperparameters_of(const struct run *run, uint64_t iteration)
{
	const struct finish_order *f = &run->wanted.finish;

	return f->n > 0 && iteration > f->begin ? finish_hyperparameters(run, f)
						: run->training.hyper;
}

float rates_of(const struct run *run, uint64_t iteration)
{
	struct hyperparameters r = hyperparameters_of(run, iteration);

	return hyper_lr(&r, trained(run, iteration));
}

struct hyperparameters rates_hyperparameters(const struct run *run)
{
	return hyperparameters_of(run, run->committed);
}

uint64_t rates_last(const struct run *run)
{
	return run->wanted.finish.n > 0 ? run->wanted.finish.last : run->options.iterations;
}

void rates_change_length(struct run *run)
{
	struct finish_order *f = &run->wanted.finish;

	if (f->n > 0 && run->committed > f->begin) {
		f->last = run->options.iterations;
		return;
	}
	f->n = 0;
	hyper_end_with(&run->training.hyper, trained(run, run->committed), length_of(run));
}

/* ---- the end on command ---- */

bool rates_may_finish(const struct run *run, int64_t n, struct outcome *o)
{
	const struct finish_order *f = &run->wanted.finish;
	uint64_t begin = run->committed + 1;

	if (n < 0 || n > FINISH_MOST || trained(run, begin) + (uint64_t)n > UINT32_MAX)
		outcome_set(o, -EINVAL, "the rate falls over 1 to %d iterations", FINISH_MOST);
	else if (n == 0 && f->n == 0)
		outcome_set(o, -EALREADY, "no end was ordered");
	else if (f->n > 0 && run->committed > f->begin)
		outcome_set(o, -EPERM,
			    "the rate falls since it%" PRIu64 ": the run ends with it%" PRIu64,
			    f->begin + 1, f->last);
	else if (n > 0 && f->n > 0)
		outcome_set(o, -EALREADY,
			    "the run ends with it%" PRIu64 " already: undo that first", f->last);
	else if (n > 0 && trained(run, begin) < run->training.hyper.warmup)
		outcome_set(o, -EAGAIN, "the rate still rises: its warm-up has %u iterations",
			    run->training.hyper.warmup);
	else
		return true;
	return false;
}

/* Predicts the range of the final losses from the losses in the present phase of the skip
 * schedule. */
static void predict_losses(const struct run *run, struct finish_order *f)
{
	const struct curves *c = &run->record.curves;
	const struct skip_schedule *s = &run->wanted.schedule;
	uint64_t from = s->n > 0 ? s->phases[run->wanted.phase].from : 0;
	double *at = alloc_array(2 * (size_t)c->n_iterations + 1, sizeof(*at));
	double *loss = at + c->n_iterations;
	struct outlook look;
	size_t n = 0;

	if (trained(run, from) <= run->training.hyper.warmup)
		from = run->training.hyper.warmup;
	for (uint32_t i = 0; i < c->n_iterations; i++) {
		uint64_t t = trained(run, c->iterations[i].iteration);

		if (t <= run->training.hyper.warmup || c->iterations[i].iteration < from)
			continue;
		at[n] = (double)t;
		loss[n++] = (double)c->iterations[i].loss;
	}
	if (outlook_make(&look, at, loss, n, (double)trained(run, f->begin + f->n))) {
		f->low = look.low;
		f->high = look.high;
	}
	free(at);
}

void rates_plan_finish(const struct run *run, uint32_t n, struct finish_order *f)
{
	*f = (struct finish_order){ .begin = run->committed + 1, .n = n };
	f->last = f->begin + n;
	predict_losses(run, f);
}

/* Returns the median time from commit to commit of the newest iterations; 0: unknown. */
static double iteration_seconds(const struct run *run)
{
	const struct curves *c = &run->record.curves;
	double times[TIMES];
	uint32_t n = 0;

	for (uint32_t i = c->n_iterations; i-- > 0 && n < TIMES;)
		if (c->iterations[i].real_s > 0)
			times[n++] = (double)c->iterations[i].real_s;
	return n > 0 ? array_median(times, n) : 0;
}

void rates_finish_text(const struct run *run, const struct finish_order *f, char text[RATES_TEXT])
{
	double s = iteration_seconds(run) * (double)(f->last - run->committed);
	char time[24] = "", loss[56] = "";

	if (s > 0)
		snprintf(time, sizeof(time), s < 5400 ? " in %.0f min" : " in %.1f h",
			 s < 5400 ? ceil(s / 60) : s / 3600);
	if (f->low > 0)
		snprintf(loss, sizeof(loss), "; training loss %.3g to %.3g expected",
			 (double)f->low, (double)f->high);
	snprintf(text, RATES_TEXT,
		 "the rate falls from it%" PRIu64 " to it%" PRIu64 "; the run ends%s%s",
		 f->begin + 1, f->last, *time ? time : " then", loss);
}

/* Reports how the mean loss of the newest iterations compares with the prediction. */
static void note_result(struct run *run)
{
	const struct finish_order *f = &run->wanted.finish;
	const struct curves *c = &run->record.curves;
	uint32_t n = f->n / 10 < 1 ? 1 : f->n / 10 > TIMES ? TIMES : f->n / 10;
	double loss = 0;

	if (n > c->n_iterations || f->low <= 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		loss += (double)c->iterations[c->n_iterations - 1 - i].loss / n;
	note(run, NOTE_PREDICTION, -1, 0,
	     "the end on command: training loss %.3g to %.3g predicted, %.3g measured (mean of %u "
	     "iterations) %s",
	     (double)f->low, (double)f->high, loss, n,
	     loss >= (double)f->low && loss <= (double)f->high ? "ok" : "MISS");
}

void rates_turn(struct run *run)
{
	const struct finish_order *f = &run->wanted.finish;

	if (f->n > 0 && run->committed == f->begin)
		note(run, NOTE_EVENT, -1, 'E',
		     "the learning rate falls from it%" PRIu64 ", and the run ends with it%" PRIu64,
		     f->begin + 1, f->last);
	if (f->n > 0 && run->committed == f->begin + f->n)
		note_result(run);
}

/* ---- saving and loading, for a restarted controller ---- */

struct json_t *rates_save(const struct run *run)
{
	const struct finish_order *f = &run->wanted.finish;
	const struct hyperparameters *r = &run->training.hyper;

	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:f, s:f}", "iterations",
			 (json_int_t)r->iterations, "decay", (double)r->decay, "begin",
			 (json_int_t)f->begin, "finish", (json_int_t)f->n, "last",
			 (json_int_t)f->last, "low", (double)f->low, "high", (double)f->high);
}

int rates_load(struct run *run, const struct json_t *from)
{
	struct finish_order *f = &run->wanted.finish;
	json_int_t iterations, begin, n, last;
	double decay, low, high;

	if (!from)
		return 0;
	if (json_unpack((json_t *)(uintptr_t)from, "{s:I, s:F, s:I, s:I, s:I, s:F, s:F}",
			"iterations", &iterations, "decay", &decay, "begin", &begin, "finish", &n,
			"last", &last, "low", &low, "high", &high) != 0 ||
	    iterations < 0 || iterations > UINT32_MAX || begin < 0 || n < 0 || n > FINISH_MOST ||
	    last < 0 || !(decay >= 0 && decay <= FINISH_MOST))
		return -EINVAL;
	run->training.hyper.iterations = (uint32_t)iterations;
	run->training.hyper.decay = (float)decay;
	*f = (struct finish_order){ (uint64_t)begin, (uint32_t)n, (uint64_t)last, (float)low,
				    (float)high };
	return 0;
}
