/* skippipe-verify: replays a recorded run in one process and says whether it gives the same. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "verify/compare.h"

enum { EXIT_SAME, EXIT_DIFFERENT, EXIT_USAGE };

static const char help[] =
	"usage: skippipe verify RUN-DIR [options]\n"
	"\n"
	"Computes a recorded run again in one process, from its committed routes, data positions\n"
	"and orders of accumulation, and compares the weights of every stage after every iteration\n"
	"(bit for bit) and the losses (to 1e-5 of their size). What each node computed with is in\n"
	"the record: what this machine can compute as they did it does, by several instruction\n"
	"sets if need be. Where it cannot, it says so: then losses are compared to 0.1% of their\n"
	"size (1% with bf16), gradients' norms to ten times that, and replicas with one another.\n"
	"It checks first that every microbatch was counted exactly once in every stage it visited.\n"
	"A run that is still going on may be verified up to its last commit.\n"
	"\n"
	"  --from N        compare from iteration N; those before are only replayed  [1]\n"
	"  --to N          stop after iteration N  [the last]\n"
	"  --device D      compute all of it on D (skippipe help agent), whatever the agents had\n"
	"  --format F      text or json  [text]\n"
	"\n"
	"Exit status: 0 the same, 1 different, or nothing could be proved, 2 usage.\n";

struct options {
	const char *run;
	struct compare_options compare;
	bool json, help;
};

static int parse_number(const char *name, const char *text, uint64_t *out, struct error *err)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || v == 0)
		return error_set(err, -EINVAL, "%s: expected an iteration from 1, got \"%s\"", name,
				 text);
	*out = v;
	return 0;
}

static int take_value(struct options *o, const char *name, const char *value, struct error *err)
{
	if (strcmp(name, "--from") == 0)
		return parse_number(name, value, &o->compare.from, err);
	if (strcmp(name, "--to") == 0)
		return parse_number(name, value, &o->compare.to, err);
	if (strcmp(name, "--device") == 0) {
		o->compare.device = value;
		return 0;
	}
	if (strcmp(name, "--format") != 0)
		return error_set(err, -EINVAL, "%s: unknown option (see --help)", name);
	if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
		return error_set(err, -EINVAL, "--format: expected text or json, got \"%s\"", value);
	o->json = *value == 'j';
	return 0;
}

static int parse_options(struct options *o, int argc, char **argv, struct error *err)
{
	*o = (struct options){ .compare = { .from = 1 } };
	for (int i = 1; i < argc; i++) {
		int rc;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			o->help = true;
			return 0;
		}
		if (argv[i][0] != '-') {
			if (o->run)
				return error_set(err, -EINVAL, "%s: unexpected (see --help)", argv[i]);
			o->run = argv[i];
			continue;
		}
		if (i + 1 == argc)
			return error_set(err, -EINVAL, "%s: unknown, or needs a value (see --help)",
					 argv[i]);
		rc = take_value(o, argv[i], argv[i + 1], err);
		if (rc != 0)
			return rc;
		i++;
	}
	if (!o->run)
		return error_set(err, -EINVAL, "which run? (see --help)");
	return 0;
}

static void show_progress(void *context, uint64_t iteration, uint64_t last)
{
	(void)context;
	fprintf(stderr, "\rreplaying %" PRIu64 "/%" PRIu64 "%s", iteration, last,
		iteration == last ? "\r\033[K" : "");
}

static void print_kinds(const struct compare_result *r)
{
	for (uint32_t i = 0; i < r->n_kinds; i++) {
		const struct compare_kind *k = &r->kinds[i];

		if (k->device[0])
			printf("computed: %u node%s with %s, here %s%s\n", k->nodes,
			       k->nodes == 1 ? "" : "s", k->device,
			       k->exact ? "too" : "with ", k->exact ? "" : k->here);
		else
			printf("computed: the record does not say with what, here with %s\n",
			       k->here);
	}
	if (r->unlike_from)
		printf("not bit for bit from iteration %" PRIu64
		       " on: %s; losses to %g%%, gradients' norms to %g%%\n",
		       r->unlike_from, r->unlike_why, 100 * r->unlike_limit,
		       100 * COMPARE_NORM_TIMES * r->unlike_limit);
}

/* What was compared, what differed, and by how much, most important first. */
static void print_text(const struct compare_result *r, double elapsed_s)
{
	printf("%s: %" PRIu64 " iterations replayed in %.1f s\n",
	       compare_equal(r) ? "the same" : "DIFFERENT", r->replayed, elapsed_s);
	if (r->broken.text[0])
		printf("a rule is broken: %s\n", r->broken.text);
	print_kinds(r);
	printf("weights: %" PRIu64 " announced hashes compared, %" PRIu64 " differ", r->announced,
	       r->differing);
	if (r->unlike_from > 1)
		printf(" (with the replay before iteration %" PRIu64 ", then replicas among themselves)",
		       r->unlike_from);
	else if (r->unlike_from)
		printf(" (replicas among themselves)");
	else if (r->differing == 0 && !r->broken.text[0])
		printf(" (bit for bit)");
	if (r->unannounced)
		printf("; %" PRIu64 " stages were not announced", r->unannounced);
	if (r->restored || r->averaged)
		printf("\nput back: %" PRIu64 " stages from checkpoints, %" PRIu64
		       " made of their neighbours",
		       r->restored, r->averaged);
	printf("\nnodes: %u counted gradients\n", r->nodes);
	printf("losses: %" PRIu64 " compared, %" PRIu64 " equal to the bit, largest difference %.3g\n",
	       r->losses, r->losses_equal, r->worst_loss);
	if (r->unlike_from)
		printf("gradients' norms: largest difference %.3g\n", r->worst_norm);
	if (r->first.iteration)
		printf("first difference: iteration %" PRIu64 ", stage %u: node %u announced %016" PRIx64
		       ", the replay has %016" PRIx64 "\n",
		       r->first.iteration, r->first.stage, r->first.node, r->first.hash,
		       r->first_here);
	if (r->first_loss_iteration)
		printf("first differing loss: iteration %" PRIu64 ": recorded %.9g, the replay has %.9g\n",
		       r->first_loss_iteration, r->first_loss_recorded, r->first_loss_here);
	if (r->first_norm_iteration)
		printf("first differing gradient's norm: iteration %" PRIu64 "\n",
		       r->first_norm_iteration);
}

static json_t *json_hex(uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

/* JSON has no infinities. */
static json_t *json_finite(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *list_kinds(const struct compare_result *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->n_kinds; i++)
		json_array_append_new(list, json_pack("{ss sI ss sb}", "device", r->kinds[i].device,
						      "agents", (json_int_t)r->kinds[i].nodes, "here",
						      r->kinds[i].here, "bit_for_bit",
						      r->kinds[i].exact));
	return list;
}

/* The facts of print_text for programs, in one object. */
static int print_json(const struct compare_result *r, double elapsed_s)
{
	json_t *first = json_null(), *loss = json_null(), *o;
	int rc;

	if (r->first.iteration)
		first = json_pack("{sI si si so so}", "iteration",
				  (json_int_t)r->first.iteration, "stage", r->first.stage,
				  "node", r->first.node, "announced", json_hex(r->first.hash),
				  "replayed", json_hex(r->first_here));
	if (r->first_loss_iteration)
		loss = json_pack("{sI so so}", "iteration", (json_int_t)r->first_loss_iteration,
				 "recorded", json_finite(r->first_loss_recorded), "replayed",
				 json_finite(r->first_loss_here));
	o = json_pack(
		"{ss sb sI sI sI sI sI sI sI sI sI sI so so so so so sI so sf}", "format",
		"skippipe.verify/1", "same", compare_equal(r), "committed", (json_int_t)r->last,
		"replayed", (json_int_t)r->replayed, "nodes", (json_int_t)r->nodes, "hashes",
		(json_int_t)r->announced, "differing", (json_int_t)r->differing, "unannounced",
		(json_int_t)r->unannounced, "restored", (json_int_t)r->restored, "averaged",
		(json_int_t)r->averaged, "losses", (json_int_t)r->losses, "losses_bit_equal",
		(json_int_t)r->losses_equal, "loss_difference", json_finite(r->worst_loss),
		"first_difference", first, "first_differing_loss", loss, "broken_rule",
		r->broken.text[0] ? json_string(r->broken.text) : json_null(), "computed",
		list_kinds(r), "unlike_from", (json_int_t)r->unlike_from, "norm_difference",
		r->unlike_from ? json_finite(r->worst_norm) : json_null(), "elapsed_s",
		elapsed_s);
	if (!o)
		return -ENOMEM;
	rc = json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(o);
	return rc;
}

static int run_verify(const struct options *o, struct error *err)
{
	struct compare_options compare = o->compare;
	struct compare_result result;
	struct store *s;
	int64_t start = clock_monotonic_us();
	double elapsed_s;
	int rc = store_open(&s, o->run, err);

	if (rc != 0)
		return rc;
	if (isatty(STDERR_FILENO))
		compare.progress = show_progress;
	rc = compare_run(s, &compare, &result, err);
	store_close(s);
	if (rc != 0)
		return error_prefix(err, rc, "%s", o->run);
	elapsed_s = (double)(clock_monotonic_us() - start) / 1e6;
	if (!o->json)
		print_text(&result, elapsed_s);
	else if (print_json(&result, elapsed_s) != 0)
		return error_set(err, -EIO, "the result could not be written");
	if (fflush(stdout) != 0)
		return error_set(err, -errno, "stdout: %s", strerror(errno));
	return compare_equal(&result) ? EXIT_SAME : EXIT_DIFFERENT;
}

int main(int argc, char **argv)
{
	struct options o;
	struct error err = { "" };
	int rc;

	if (parse_options(&o, argc, argv, &err) != 0) {
		fprintf(stderr, "skippipe verify: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (o.help) {
		fputs(help, stdout);
		return EXIT_SAME;
	}
	rc = run_verify(&o, &err);
	if (rc < 0) {
		fprintf(stderr, "skippipe verify: %s\n", err.text);
		return EXIT_DIFFERENT;
	}
	return rc;
}
