/* A drill is a file that lists acts (commands and faults at given iterations) and limits. This
 * program runs a demo with the acts and without a console, measures the demo's events as they
 * arrive, and prints every limit that was exceeded. */
#include "cli/drill.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process/ending.h"
#include "base/process/options.h"
#include "cli/args.h"
#include "cli/verbs.h"

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	FILE_MOST = 1 << 20,
	/* Longest time for which the demo may run after it has closed its output. The demo needs
	 * less (supervise.c). */
	END_US = 40000000
};

struct drill_options {
	/* path: the drill's file. run_dir: the run folder. NULL: not given. */
	const char *path, *run_dir;
	bool headless;
};

static const struct options_row rows[] = {
	{ "headless", OPTIONS_FLAG, .at = offsetof(struct drill_options, headless),
	  .help = "as skippipe demo; a drill has no console" },
	{ "run-dir", OPTIONS_TEXT, "DIR", .at = offsetof(struct drill_options, run_dir),
	  .help = "the folder that records the run [a new folder in "
		  "~/.local/state/skippipe/runs]" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};

static const struct options_table table_of_drill = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.only_word_expected = "one FILE",
	.only_word = offsetof(struct drill_options, path),
	.intro = "usage: skippipe drill FILE [--headless] [--run-dir DIR]\n"
		 "\n"
		 "Repeats the commands and faults of a drill on a demo cluster and checks its "
		 "limits.\n"
		 "Every run with commands or faults writes RUN-DIR/drill.json (skippipe.drill/1).\n"
		 "\n",
	.end = "\n"
	       "Exit status: 0 within the limits; 1 outside the limits, the run failed, or a "
	       "command or\n"
	       "fault did not happen; 2 bad file or usage.\n",
};

static const char *const limit_names[] = { "iteration_s", "slowest_s", "loss", "recovery_s" };
enum { LIMIT_ITERATION, LIMIT_SLOWEST, LIMIT_LOSS, LIMIT_RECOVERY, LIMITS };

struct drill {
	json_t *file;
	double limits[LIMITS]; /* largest accepted value of each measurement; NAN: no limit */
	double seen[LIMITS];   /* measured values in the order of limit_names; NAN: not measured */
	double *iterations;    /* duration of each iteration, in plan seconds */
	size_t n_iterations, room;
	/* Monotonic time of the first death of a node since the last commit; 0: no node died. */
	int64_t lost_us;
	uint64_t commits;
	/* Outcome of each act. NULL: not reported yet; "": done; any other text: the reason why
	 * the act was not done. */
	char **outcomes;
};

/* ---- the file ---- */

static int check_known_keys(const json_t *o, const char *where, const char *const *keys, size_t n,
			    struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)o, key, value) {
		size_t i = 0;

		while (i < n && strcmp(keys[i], key) != 0)
			i++;
		if (i == n)
			return error_set(err, -EINVAL, "%s%s: unknown key", where, key);
	}
	return 0;
}

/* The keys of the object `run`, in the order in which they become options of the demo. */
enum run_key_kind { KEY_INTEGER, KEY_NUMBER, KEY_TEXT, KEY_FLAG, KEY_STAGES, KEY_SHARE };

static const struct run_key {
	const char *key, *option;
	enum run_key_kind kind;
} run_keys[] = {
	{ "agents", "agents", KEY_INTEGER },
	{ "iterations", "iterations", KEY_INTEGER },
	{ "seed", "seed", KEY_INTEGER },
	{ "stages", "stages", KEY_STAGES },
	{ "skip", "skip", KEY_INTEGER },
	{ "skip_share", "skip-share", KEY_SHARE },
	{ "skip_schedule", "skip-schedule", KEY_TEXT },
	{ "recipe", "recipe", KEY_TEXT },
	{ "always", "always", KEY_TEXT },
	{ "stack", "stack", KEY_FLAG },
	{ "no_swaps", "no-swaps", KEY_FLAG },
	{ "phase_moves", "phase-moves", KEY_FLAG },
	{ "grad_norm", "grad-norm", KEY_TEXT },
	{ "algorithm", "algorithm", KEY_TEXT },
	{ "wire", "wire", KEY_TEXT },
	{ "sum_wire", "sum-wire", KEY_TEXT },
	{ "time_scale", "time-scale", KEY_NUMBER },
};

enum { RUN_KEYS = sizeof(run_keys) / sizeof(run_keys[0]) };

static bool is_of_kind(const json_t *value, enum run_key_kind kind)
{
	switch (kind) {
	case KEY_TEXT:
		return json_is_string(value);
	case KEY_FLAG:
		return json_is_boolean(value);
	case KEY_STAGES:
		return json_is_array(value);
	case KEY_NUMBER:
		return json_is_number(value);
	default:
		return json_is_integer(value);
	}
}

static int check_run(const json_t *run, struct error *err)
{
	static const char *const expected[] = { [KEY_INTEGER] = "a whole number",
						[KEY_NUMBER] = "a number",
						[KEY_TEXT] = "a text",
						[KEY_FLAG] = "true or false",
						[KEY_STAGES] = "an array of numbers",
						[KEY_SHARE] = "a whole number" };
	const char *keys[RUN_KEYS];

	for (int i = 0; i < RUN_KEYS; i++)
		keys[i] = run_keys[i].key;
	if (check_known_keys(run, "run.", keys, RUN_KEYS, err) != 0)
		return -EINVAL;
	for (int i = 0; i < RUN_KEYS; i++) {
		const json_t *value = json_object_get(run, keys[i]);

		if (value && !is_of_kind(value, run_keys[i].kind))
			return error_set(err, -EINVAL, "run.%s: expected %s", keys[i],
					 expected[run_keys[i].kind]);
	}
	return 0;
}

static int check_limits(struct drill *d, const json_t *limits, struct error *err)
{
	if (check_known_keys(limits, "limits.", limit_names, LIMITS, err) != 0)
		return -EINVAL;
	for (int i = 0; i < LIMITS; i++) {
		const json_t *v = json_object_get(limits, limit_names[i]);

		d->limits[i] = d->seen[i] = NAN;
		if (!v)
			continue;
		if (!json_is_number(v) || json_number_value(v) <= 0)
			return error_set(err, -EINVAL, "limits.%s: expected a number above 0",
					 limit_names[i]);
		d->limits[i] = json_number_value(v);
	}
	return 0;
}

static int check_file(struct drill *d, struct error *err)
{
	static const char *const keys[] = { "format", "name", "run", "acts", "limits" };
	const json_t *format = json_object_get(d->file, "format");
	const json_t *acts = json_object_get(d->file, "acts");
	const json_t *run = json_object_get(d->file, "run");
	const json_t *limits = json_object_get(d->file, "limits");
	size_t i;

	if (!json_is_object(d->file) || !json_is_string(format) ||
	    strcmp(json_string_value(format), "skippipe.drill/1") != 0)
		return error_set(err, -EINVAL, "format: expected \"skippipe.drill/1\"");
	if (check_known_keys(d->file, "", keys, 5, err) != 0)
		return -EINVAL;
	if (!json_is_array(acts))
		return error_set(err, -EINVAL,
				 "acts: expected an array of texts like \"10:kill:4\"");
	for (i = 0; i < json_array_size(acts); i++)
		if (!json_is_string(json_array_get(acts, i)))
			return error_set(err, -EINVAL,
					 "acts[%zu]: expected a text like \"10:kill:4\"", i);
	if (run && !json_is_object(run))
		return error_set(err, -EINVAL, "run: expected an object");
	if (limits && !json_is_object(limits))
		return error_set(err, -EINVAL, "limits: expected an object");
	if (run && check_run(run, err) != 0)
		return -EINVAL;
	return check_limits(d, limits, err);
}

static int load_drill(struct drill *d, const char *path, struct error *err)
{
	int rc = json_read_object(path, FILE_MOST, &d->file, err);

	if (rc != 0)
		return rc;
	rc = check_file(d, err);
	return rc ? error_prefix(err, rc, "%s", path) : 0;
}

/* ---- the run ---- */

static void add_stages(struct args *a, const json_t *stages)
{
	char text[512] = "--stages=";
	size_t i, at = strlen(text);

	for (i = 0; i < json_array_size(stages) && at + 24 < sizeof(text); i++)
		at += (size_t)sprintf(text + at, i ? ",%lld" : "%lld",
				      (long long)json_integer_value(json_array_get(stages, i)));
	args_add(a, text);
}

static void add_option(struct args *a, const struct run_key *k, const json_t *run)
{
	const json_t *v = json_object_get(run, k->key);

	if (!v)
		return;
	switch (k->kind) {
	case KEY_TEXT:
		args_addf(a, "--%s=%s", k->option, json_string_value(v));
		break;
	case KEY_FLAG:
		if (json_is_true(v))
			args_addf(a, "--%s", k->option);
		break;
	case KEY_STAGES:
		add_stages(a, v);
		break;
	case KEY_SHARE:
		args_addf(a, "--%s=%lld%%:%lld", k->option, (long long)json_integer_value(v),
			  (long long)json_integer_value(json_object_get(run, "skip")));
		break;
	case KEY_NUMBER:
		args_addf(a, "--%s=%.17g", k->option, json_number_value(v));
		break;
	default:
		args_addf(a, "--%s=%lld", k->option, (long long)json_integer_value(v));
	}
}

/* Makes the demo's command line. Each act becomes an option --at. */
static void make_command_line(const struct drill *d, const char *self, const char *run_dir,
			      struct args *a)
{
	const json_t *acts = json_object_get(d->file, "acts");

	args_add(a, self);
	args_add(a, "demo");
	args_add(a, "--headless");
	args_add(a, "--format=jsonl");
	for (int i = 0; i < RUN_KEYS; i++)
		add_option(a, &run_keys[i], json_object_get(d->file, "run"));
	if (run_dir)
		args_addf(a, "--run-dir=%s", run_dir);
	for (size_t i = 0; i < json_array_size(acts); i++)
		args_addf(a, "--at=%s", json_string_value(json_array_get(acts, i)));
}

static void keep_iteration(struct drill *d, double s)
{
	array_reserve(&d->iterations, &d->room, d->n_iterations + 1, sizeof(*d->iterations));
	d->iterations[d->n_iterations++] = s;
}

static void keep_largest(double *seen, double v)
{
	if (isnan(*seen) || v > *seen)
		*seen = v;
}

static size_t count_acts(const struct drill *d)
{
	return json_array_size(json_object_get(d->file, "acts"));
}

static void take_act(struct drill *d, const json_t *e)
{
	json_int_t act = json_integer_value(json_object_get(e, "act"));
	const char *text = json_string_value(json_object_get(e, "text"));

	if (act < 0 || (size_t)act >= count_acts(d) || !text)
		return;
	free(d->outcomes[act]);
	d->outcomes[act] = alloc_string(json_is_true(json_object_get(e, "done")) ? "" : text);
}

static void take_event(struct drill *d, const json_t *e)
{
	const char *kind = json_string_value(json_object_get(e, "event"));
	const char *state = json_string_value(json_object_get(e, "state"));

	if (!kind)
		return;
	if (strcmp(kind, "commit") == 0) {
		d->commits++;
		if (d->lost_us)
			keep_largest(&d->seen[LIMIT_RECOVERY],
				     (double)(clock_monotonic_us() - d->lost_us) * 1e-6);
		d->lost_us = 0;
	} else if (strcmp(kind, "iteration") == 0) {
		keep_iteration(d, json_number_value(json_object_get(e, "iteration_s")));
		keep_largest(&d->seen[LIMIT_SLOWEST],
			     json_number_value(json_object_get(e, "real_s")));
	} else if (strcmp(kind, "validation") == 0) {
		d->seen[LIMIT_LOSS] = json_number_value(json_object_get(e, "loss"));
	} else if (strcmp(kind, "node") == 0 && state &&
		   (strcmp(state, "dead") == 0 || strcmp(state, "failed") == 0) && !d->lost_us) {
		d->lost_us = clock_monotonic_us();
	} else if (strcmp(kind, "act") == 0) {
		take_act(d, e);
	}
}

/* Prints each act that did not take place, and why. Returns the number of these acts. */
static int count_missed(const struct drill *d)
{
	const json_t *acts = json_object_get(d->file, "acts");
	int missed = 0;

	for (size_t i = 0; i < count_acts(d); i++) {
		const char *outcome = d->outcomes[i] ? d->outcomes[i] : "the run ended before it";

		if (!*outcome)
			continue;
		printf("MISSED %s: %s\n", json_string_value(json_array_get(acts, i)), outcome);
		missed++;
	}
	return missed;
}

/* Prints the acts that did not take place, and each measurement with its limit. Returns the exit
 * status. */
static int judge_drill(struct drill *d)
{
	int over;

	if (d->n_iterations > 0)
		d->seen[LIMIT_ITERATION] = array_median(d->iterations, d->n_iterations);
	printf("%llu iterations committed\n", (unsigned long long)d->commits);
	over = count_missed(d);
	for (int i = 0; i < LIMITS; i++) {
		bool held = isnan(d->limits[i]) || d->seen[i] <= d->limits[i];

		if (isnan(d->seen[i]) && !held)
			printf("MISSED %s: the run had nothing to measure\n", limit_names[i]);
		over += !held;
		if (isnan(d->seen[i]))
			continue;
		printf("%-4s %-12s %10.3f", held ? "ok" : "OVER", limit_names[i], d->seen[i]);
		if (isnan(d->limits[i]))
			printf("\n");
		else
			printf("  limit %.3f\n", d->limits[i]);
	}
	return over || d->commits == 0 ? EXIT_FAILED : 0;
}

/* Runs the demo as a child process. Measures each event that the demo prints as a line of JSON. */
static int run_demo(struct drill *d, const struct args *a, int *status)
{
	int pipes[2];
	char *line = NULL;
	size_t room = 0;
	FILE *events;
	pid_t pid;

	if (pipe(pipes) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* SIGTERM ends the demo when the drill dies */
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execv(a->list[0], a->list);
		_exit(127);
	}
	close(pipes[1]);
	events = fdopen(pipes[0], "r");
	while (pid > 0 && events && getline(&line, &room, events) > 0) {
		json_t *e = json_loads(line, 0, NULL);

		take_event(d, e);
		json_decref(e);
	}
	free(line);
	if (events)
		fclose(events);
	else
		close(pipes[0]);
	/* The demo closes its output just before it ends. */
	if (pid > 0 && (!events || process_wait(pid, END_US, status) != 0))
		process_end(pid, false, END_US, status);
	return pid < 0 || !events ? -ECHILD : 0;
}

static int run_drill(struct drill *d, const char *run_dir)
{
	struct args args = { 0 };
	struct error err = { "" };
	char self[PATH_MAX];
	int status = 0, rc = verbs_program("skippipe", self, sizeof(self), &err);

	if (rc != 0) {
		fprintf(stderr, "skippipe drill: %s\n", err.text);
		return EXIT_FAILED;
	}
	make_command_line(d, self, run_dir, &args);
	rc = run_demo(d, &args, &status);
	args_free(&args);
	if (rc != 0) {
		fprintf(stderr, "skippipe drill: cannot start the demo\n");
		return EXIT_FAILED;
	}
	rc = judge_drill(d);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "skippipe drill: the run failed\n");
		return EXIT_FAILED;
	}
	return rc;
}

/* Runs the drill: reads the file, runs the demo, and compares the measurements with the limits.
 * Returns the exit status. */
int drill_main(char **argv)
{
	struct drill_options o = { .path = NULL };
	struct drill d = { 0 };
	struct error err = { "" };
	int argc = 0, status;

	while (argv[argc])
		argc++;
	status = options_read(&table_of_drill, &o, argc, argv, NULL, &err);
	if (status > 0) {
		options_help(&table_of_drill, stdout);
		return 0;
	}
	if (status == 0 && !o.path) {
		options_help(&table_of_drill, stderr);
		return EXIT_USAGE;
	}
	if (status < 0) {
		fprintf(stderr, "skippipe drill: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (load_drill(&d, o.path, &err) != 0) {
		fprintf(stderr, "skippipe drill: %s\n", err.text);
		status = EXIT_USAGE;
	} else {
		d.outcomes = alloc_array(count_acts(&d), sizeof(*d.outcomes));
		status = run_drill(&d, o.run_dir);
	}
	for (size_t i = 0; d.outcomes && i < count_acts(&d); i++)
		free(d.outcomes[i]);
	free(d.outcomes);
	json_decref(d.file);
	free(d.iterations);
	return status;
}
