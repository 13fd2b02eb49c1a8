/* skippipe simulate: predicts the times of a plan on a cluster, and checks SkipPipe's rules. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/process/output.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/format/plan.h"
#include "planner/commands.h"
#include "planner/program.h"

static void print_text(const struct simulation *s, const struct check_report *r, const char *stop)
{
	if (s) {
		printf("iteration_s %.6f\nsync_s %.6f\ncollisions %d\ncollision_wait_s %.6f\n",
		       s->iteration_s, s->sync_s, s->collisions, s->collision_wait_s);
		printf("idle_fraction %.4f\nexposure", s->idle_fraction);
		for (int i = 0; i < s->n_stages; i++)
			printf(" %d", s->exposure[i]);
		putchar('\n');
	}
	if (stop)
		printf("broken TC1: %s\n", stop);
	for (int i = 0; i < r->n_breaches; i++)
		printf("broken %s\n", r->breaches[i]);
}

static void print_json_text(const char *text)
{
	json_t *json = json_string(text);

	json_dumpf(json, stdout, JSON_ENCODE_ANY);
	json_decref(json);
}

/* Prints the results of a simulation and the broken rules. s is NULL if the plan could not be
 * simulated to its end; in this case `stop` says how the plan came to a standstill, or is
 * NULL. */
static void print_json(const struct simulation *s, const struct check_report *r, const char *stop)
{
	bool comma = false;

	putchar('{');
	if (s) {
		printf("\"iteration_s\":%.17g,\"sync_s\":%.17g,\"collisions\":%d,"
		       "\"collision_wait_s\":%.17g,\"idle_fraction\":%.17g,\"exposure\":[",
		       s->iteration_s, s->sync_s, s->collisions, s->collision_wait_s,
		       s->idle_fraction);
		for (int i = 0; i < s->n_stages; i++)
			printf("%s%d", i ? "," : "", s->exposure[i]);
		printf("],\"peak_slots\":[");
		for (int i = 0; i < s->n_nodes; i++)
			printf("%s%d", i ? "," : "", s->peak_slots[i]);
		printf("],");
	}
	printf("\"valid\":%s,\"broken\":[", r->n_breaches == 0 && !stop ? "true" : "false");
	if (stop) {
		char text[600];

		snprintf(text, sizeof(text), "TC1: %s", stop);
		print_json_text(text);
		comma = true;
	}
	for (int i = 0; i < r->n_breaches; i++) {
		if (comma || i > 0)
			putchar(',');
		print_json_text(r->breaches[i]);
	}
	printf("]}\n");
}

struct simulate_options {
	const char *files[2]; /* paths of the cluster and of the plan */
	const char *trace;
	bool text;
	struct wires wires;
};

/* Simulates and checks the plan, prints the result and writes the trace. Reports a standstill as a
 * breach of TC1. Returns an error if the plan cannot be simulated although it breaks no rule. */
static int judge_plan(const struct cluster *c, const struct plan *p,
		      const struct simulate_options *options)
{
	struct simulation *s = NULL;
	struct check_report report;
	struct error err = { "" };
	int rc = simulate(c, p, &s, &err), status;
	bool standstill = rc == -EDEADLK;

	check_plan(c, p, s, NULL, &report);
	if (rc != 0 && report.n_breaches == 0 && !standstill) {
		status = program_fail(&err, FAILED);
		goto fini_report;
	}
	if (options->text)
		print_text(s, &report, standstill ? err.text : NULL);
	else
		print_json(s, &report, standstill ? err.text : NULL);
	for (int i = 0; i < report.n_breaches; i++)
		fprintf(stderr, "skippipe: %s\n", report.breaches[i]);
	if (standstill)
		fprintf(stderr, "skippipe: TC1: %s\n", err.text);
	status = standstill || report.n_breaches > 0 ? BROKEN : DONE;
	if (options->trace && s) {
		char *json = simulation_trace(c, p, s);

		if (!json || file_write(options->trace, json, strlen(json), FILE_RESULT, &err) != 0)
			status = program_fail(&err, FAILED);
		free(json);
	}
	if (output_flush(&err) != 0)
		status = program_fail(&err, FAILED);
fini_report:
	check_report_fini(&report);
	simulation_free(s);
	return status;
}

static int take_activations(void *options, const char *text, struct error *err)
{
	struct simulate_options *o = options;

	return wires_take_activations(&o->wires, text, err);
}

static int take_sums(void *options, const char *text, struct error *err)
{
	struct simulate_options *o = options;

	return wires_take_sums(&o->wires, text, err);
}

static int take_file(void *options, const char *word, struct error *err)
{
	struct simulate_options *o = options;

	if (o->files[1])
		return error_set(err, -EINVAL, "simulate: expected a cluster file and a plan file");
	o->files[o->files[0] != NULL] = word;
	return 0;
}

static const char *const formats[] = { "json", "text", NULL };

#define AT(field) .at = offsetof(struct simulate_options, field)
static const struct options_row rows[] = {
	{ "trace", OPTIONS_TEXT, "trace.json", AT(trace),
	  .help = "write the tasks for chrome://tracing or Perfetto" },
	{ "format", OPTIONS_SECOND, "json|text", "text", "", AT(text), .words = formats },
	{ "wire", OPTIONS_PARSED, "fp32|bf16|q8|q6", .parse = take_activations,
	  .help = "format of activations and their gradients. CLUSTER gives sizes and times in "
		  "fp32; this option needs links and activation_bytes in it [fp32]" },
	{ "sum-wire", OPTIONS_PARSED, "fp32|q8|q6|q4", .parse = take_sums,
	  .help = "format of the sums; the times of a sync_pair_s shrink as a whole [fp32]" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT

const struct options_table options_of_simulate = {
	rows, sizeof(rows) / sizeof(rows[0]), .word = take_file,
	.intro = "usage: skippipe simulate CLUSTER PLAN [options]\n"
		 "\n"
		 "Predicts the times of a plan on a cluster and checks the rules. A file named -\n"
		 "is read from standard input.\n"
		 "\n",
	.end = PROGRAM_EXIT_STATUS
};

int command_simulate(int argc, char **argv)
{
	struct simulate_options options = { .trace = NULL };
	struct cluster *c = NULL;
	struct plan *p = NULL;
	struct error err = { "" };
	int rc = options_read(&options_of_simulate, &options, argc, argv, NULL, &err), status;

	if (rc > 0) {
		options_help(&options_of_simulate, stdout);
		return DONE;
	}
	if (rc < 0)
		return program_refuse(&options_of_simulate, err.text);
	if (!options.files[1])
		return program_refuse(&options_of_simulate,
				      "simulate: expected a cluster file and a plan file");
	for (int i = 0; options.trace && i < 2; i++)
		if (file_refuse_input("--trace", options.trace, options.files[i], &err) != 0)
			return program_fail(&err, FAILED);
	if (program_read_cluster(options.files[0], &options.wires, &c, &err) != 0)
		return program_fail(&err, FAILED);
	if (plan_read(options.files[1], &p, &err) != 0) {
		cluster_free(c);
		return program_fail(&err, FAILED);
	}
	status = judge_plan(c, p, &options);
	plan_free(p);
	cluster_free(c);
	return status;
}
