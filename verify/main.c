/* skippipe-verify: recomputes a recorded run in one process and reports whether the results agree.
 * An operator uses it to prove that the nodes computed what the record says. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/options.h"
#include "base/process/output.h"
#include "verify/compare.h"

enum { EXIT_SAME, EXIT_DIFFERENT, EXIT_USAGE };

static const char intro[] =
	"usage: skippipe verify RUN-DIR [options]\n"
	"\n"
	"Recomputes a recorded run in one process, from its committed routes, data positions\n"
	"and orders of additions. First checks that every microbatch was counted exactly once\n"
	"in every stage that it visited. Then compares the weights of every stage after every\n"
	"iteration (bit for bit) and the losses (to 1e-5 of their size).\n"
	"\n"
	"One device of this machine recomputes everything: the device of most nodes that this\n"
	"machine has, or else its CPU. From the first iteration in which another kind of\n"
	"device computed, weights drift apart. From there on losses are compared to 0.1% of\n"
	"their size (1% with bf16), norms of gradients to ten times that, and the weights of\n"
	"replicas with one another. The summary names the devices and says how each part was\n"
	"compared.\n"
	"\n"
	"If the run changed its stages, the model is cut here after the same iteration.\n"
	"\n"
	"If the weights with which a run began were deleted, its oldest checkpoint that is\n"
	"still in RUN-DIR replaces them. Earlier iterations are then only checked by their\n"
	"record. The exit status is 1, unless --from excludes these iterations.\n"
	"\n"
	"A run that is still going on can be verified up to its last commit. A rehearsal has no\n"
	"loss; its counts, orders of additions and weights are checked.\n"
	"\n";

struct options {
	const char *run;
	struct compare_options compare;
	bool json;
};

static const char *const formats[] = { "text", "json", NULL };

#define AT(field) .at = offsetof(struct options, field)
static const struct options_row rows[] = {
	{ "from", OPTIONS_U64, "N", "1",
	  "compare from iteration N; earlier ones are only recomputed", AT(compare.from),
	  .least = 1, .most = 9e15 },
	{ "to", OPTIONS_U64, "N", AT(compare.to), .least = 1, .most = 9e15,
	  .help = "stop after iteration N [the last]" },
	{ "weights", OPTIONS_TEXT, "DIR", AT(compare.weights),
	  .help = "the model with which the run began (controller --from), if neither the run's "
		  "folder nor the recorded folder has it" },
	{ "device", OPTIONS_TEXT, "D", AT(compare.device),
	  .help = "recompute on D (skippipe help agent) [the best match]" },
	{ "format", OPTIONS_SECOND, "text|json", "text", "", AT(json), .words = formats },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT

static const struct options_table table = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.intro = intro,
	.only_word_expected = "one RUN-DIR",
	.only_word = offsetof(struct options, run),
	.end = "\n"
	       "Exit status: 0 the same, 1 different, or nothing could be proved, 2 usage.\n"
};

static int parse_options(struct options *o, int argc, char **argv, struct error *err)
{
	int rc;

	*o = (struct options){ 0 };
	rc = options_read(&table, o, argc, argv, NULL, err);
	if (rc == 0 && !o->run)
		rc = error_set(err, -EINVAL, "the folder of a run is missing (see --help)");
	return rc;
}

/* Returns true if every iteration of the requested range was recomputed and agrees with the
 * record. */
static bool is_proved(const struct compare_result *r)
{
	return compare_equal(r) && r->unproved == 0;
}

static void show_progress(void *context, uint64_t iteration, uint64_t last)
{
	(void)context;
	fprintf(stderr, "\rrecomputing %" PRIu64 "/%" PRIu64 "%s", iteration, last,
		iteration == last ? "\r\033[K" : "");
}

static void print_devices(const struct devices *d)
{
	printf("recomputed with %s\n", d->text);
	for (uint32_t i = 0; i < d->n; i++) {
		const struct recorded_device *r = &d->list[i];

		if (r->text[0])
			printf("  %u node%s computed with %s: %s kind of device\n", r->nodes,
			       r->nodes == 1 ? "" : "s", r->text, r->matches ? "this" : "another");
		else
			printf("  the record does not name the nodes' devices\n");
	}
}

/* Prints which iterations were compared bit for bit, and which iterations within tolerances. */
static void print_strictness(const struct compare_result *r)
{
	if (r->tolerance_from != 1)
		printf("compared bit for bit");
	if (r->tolerance_from > 1)
		printf(" before iteration %" PRIu64 "\n", r->tolerance_from);
	else if (!r->tolerance_from)
		printf(": all iterations\n");
	if (r->tolerance_from)
		printf("compared within tolerances from iteration %" PRIu64
		       ", as another kind of device computed:\n"
		       "  losses to %g%%, norms of gradients to %g%%, replicas' weights with one "
		       "another\n",
		       r->tolerance_from, 100 * r->tolerance,
		       100 * COMPARE_NORM_FACTOR * r->tolerance);
}

static void print_weights(const struct compare_weights *w)
{
	printf("weights: %" PRIu64 " announced hashes compared, %" PRIu64 " differ", w->compared,
	       w->differing);
	if (w->unannounced)
		printf("; %" PRIu64 " stages were not announced", w->unannounced);
	if (w->restored || w->averaged)
		printf("\nrestored stages: %" PRIu64 " from checkpoints, %" PRIu64
		       " made from their neighbours", w->restored, w->averaged);
	printf("\n");
}

static void print_first_differences(const struct compare_result *r)
{
	const struct store_hash *h = &r->weights.first_differing;

	if (h->iteration)
		printf("first difference: iteration %" PRIu64 ", stage %u: node %u announced "
		       "%016" PRIx64 ", expected %016" PRIx64 "\n",
		       h->iteration, h->stage, h->node, h->hash, r->weights.first_expected);
	if (r->losses.first_differing)
		printf("first differing loss: iteration %" PRIu64
		       ": recorded %.9g, recomputed %.9g\n",
		       r->losses.first_differing, r->losses.first_recorded, r->losses.first_here);
	if (r->norms.first_differing)
		printf("first differing norm of the gradient: iteration %" PRIu64 "\n",
		       r->norms.first_differing);
}

/* Says which iterations could not be recomputed. */
static void print_beginning(const struct compare_result *r)
{
	if (!r->began_after)
		return;
	printf("NOT recomputed: iterations 1 to %" PRIu64 "; only their record was checked\n"
	       "  %s\n"
	       "  the replay began with the run's checkpoint of iteration %" PRIu64 "\n",
	       r->began_after, r->began_late_why.text, r->began_after);
	if (r->unproved)
		printf("  --from %" PRIu64 " compares only the iterations that can be recomputed\n",
		       r->began_after + 1);
}

static void print_text(const struct compare_result *r, double elapsed_s)
{
	if (r->rehearsal)
		printf("REHEARSAL: its nodes computed nothing, and nothing was trained. Checked:\n"
		       "every microbatch was counted once, and the weights are those that the\n"
		       "made-up gradients give in the recorded orders of additions.\n");
	printf("%s: %" PRIu64 " iterations recomputed in %.1f s\n",
	       !compare_equal(r) ? "DIFFERENT" : r->unproved ? "NOT PROVED" : "the same",
	       r->replayed, elapsed_s);
	print_beginning(r);
	if (r->broken_rule.text[0])
		printf("a rule is broken: %s\n", r->broken_rule.text);
	print_devices(&r->devices);
	print_strictness(r);
	print_weights(&r->weights);
	if (r->cuts)
		printf("stages: changed %" PRIu64 " times on the way\n", r->cuts);
	printf("nodes: %u counted gradients\n", r->nodes);
	if (!r->rehearsal)
		printf("losses: %" PRIu64 " compared, %" PRIu64 " equal to the bit, largest "
		       "difference %.3g\n",
		       r->losses.compared, r->losses.equal_bits, r->losses.largest);
	if (r->tolerance_from)
		printf("norms of gradients: largest difference %.3g\n", r->norms.largest);
	print_first_differences(r);
}

static json_t *json_hex(uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

/* Returns the reason as a JSON string. A reason may contain a path that is not UTF-8. JSON does
 * not allow this. */
static json_t *json_reason(const struct error *why)
{
	json_t *text = json_string(why->text);

	return text ? text : json_string("the reason is not UTF-8");
}

/* Returns the value as a JSON number. Returns null if the value is infinite or NaN, because JSON
 * has no such numbers. */
static json_t *json_finite(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_devices(const struct devices *d)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < d->n; i++)
		json_array_append_new(list, json_pack("{ss sI ss sb}", "device", d->list[i].text,
						      "agents", (json_int_t)d->list[i].nodes,
						      "here", d->text, "bit_for_bit",
						      d->list[i].matches));
	return list;
}

static json_t *json_first_hash(const struct compare_weights *w)
{
	const struct store_hash *h = &w->first_differing;

	if (!h->iteration)
		return json_null();
	return json_pack("{sI si si so so}", "iteration", (json_int_t)h->iteration, "stage",
			 h->stage, "node", h->node, "announced", json_hex(h->hash), "replayed",
			 json_hex(w->first_expected));
}

static json_t *json_first_loss(const struct compare_losses *l)
{
	if (!l->first_differing)
		return json_null();
	return json_pack("{sI so so}", "iteration", (json_int_t)l->first_differing, "recorded",
			 json_finite(l->first_recorded), "replayed", json_finite(l->first_here));
}

static int print_json(const struct compare_result *r, double elapsed_s)
{
	const struct compare_weights *w = &r->weights;
	json_t *o;
	int rc;

	o = json_pack(
		"{ss sb sb sI sI sI sI sI sI sI sI sI sI sI sI so so so so so sI so so sf}",
		"format", "skippipe.verify/1",
		"rehearsal", r->rehearsal > 0,
		"same", is_proved(r),
		"committed", (json_int_t)r->last,
		"replayed", (json_int_t)r->replayed,
		"began_after", (json_int_t)r->began_after,
		"nodes", (json_int_t)r->nodes,
		"cuts", (json_int_t)r->cuts,
		"hashes", (json_int_t)w->compared,
		"differing", (json_int_t)w->differing,
		"unannounced", (json_int_t)w->unannounced,
		"restored", (json_int_t)w->restored,
		"averaged", (json_int_t)w->averaged,
		"losses", (json_int_t)r->losses.compared,
		"losses_bit_equal", (json_int_t)r->losses.equal_bits,
		"loss_difference", json_finite(r->losses.largest),
		"first_difference", json_first_hash(w),
		"first_differing_loss", json_first_loss(&r->losses),
		"broken_rule",
		r->broken_rule.text[0] ? json_reason(&r->broken_rule) : json_null(),
		"computed", json_devices(&r->devices),
		"unlike_from", (json_int_t)r->tolerance_from,
		"norm_difference", r->tolerance_from ? json_finite(r->norms.largest) : json_null(),
		"began_late_why",
		r->began_after ? json_reason(&r->began_late_why) : json_null(),
		"elapsed_s", elapsed_s);
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
	compare.run = o->run;
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
	if (output_flush(err) != 0)
		return -EIO;
	return is_proved(&result) ? EXIT_SAME : EXIT_DIFFERENT;
}

int main(int argc, char **argv)
{
	struct options o;
	struct error err = { "" };
	int rc;

	output_check_at_exit("skippipe verify");
	rc = parse_options(&o, argc, argv, &err);
	if (rc < 0) {
		fprintf(stderr, "skippipe verify: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (rc > 0) {
		options_help(&table, stdout);
		return EXIT_SAME;
	}
	rc = run_verify(&o, &err);
	if (rc < 0) {
		fprintf(stderr, "skippipe verify: %s\n", err.text);
		return EXIT_DIFFERENT;
	}
	return rc;
}
