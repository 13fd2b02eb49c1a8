/* skippipe simulate: predicts the times of a plan on a cluster, and checks SkipPipe's rules. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/output.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/format/plan.h"
#include "schedule/program/commands.h"
#include "schedule/program/program.h"

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

/* Without a complete run (s NULL) only the breaches and the standstill are printed. */
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

enum { TRACE = 256, FORMAT, WIRE, SUM_WIRE };

struct simulate_options {
	const char *trace;
	bool text;
	struct wires wires;
};

/* Simulates and checks the plan, prints the result and writes the trace. A standstill is a breach
 * of TC1; a plan that cannot be run at all and breaks no rule is an error. */
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

/* Returns NULL, or the error if the option is not valid. */
static const char *take_simulate_option(struct simulate_options *o, int option)
{
	switch (option) {
	case TRACE:
		o->trace = optarg;
		return NULL;
	case FORMAT:
		return program_parse_choice(optarg, "text", "json", &o->text)
			? NULL : "--format: expected text or json";
	case WIRE:
		return wires_take_activations(&o->wires, optarg);
	case SUM_WIRE:
		return wires_take_sums(&o->wires, optarg);
	default:
		return "simulate: an unknown option, or an option without its value";
	}
}

int command_simulate(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "trace", required_argument, NULL, TRACE },
		{ "format", required_argument, NULL, FORMAT },
		{ "wire", required_argument, NULL, WIRE },
		{ "sum-wire", required_argument, NULL, SUM_WIRE },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct simulate_options options = { .text = true };
	struct cluster *c = NULL;
	struct plan *p = NULL;
	struct error err = { "" };
	int option, status;
	const char *why;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(program_help, stdout);
			return DONE;
		}
		why = take_simulate_option(&options, option);
		if (why)
			return program_refuse(why);
	}
	if (argc - optind != 2)
		return program_refuse("simulate: expected a cluster file and a plan file");
	for (int i = optind; options.trace && i < argc; i++)
		if (file_refuse_input("--trace", options.trace, argv[i], &err) != 0)
			return program_fail(&err, FAILED);
	if (program_read_cluster(argv[optind], &options.wires, &c, &err) != 0)
		return program_fail(&err, FAILED);
	if (plan_read(argv[optind + 1], &p, &err) != 0) {
		cluster_free(c);
		return program_fail(&err, FAILED);
	}
	status = judge_plan(c, p, &options);
	plan_free(p);
	cluster_free(c);
	return status;
}
