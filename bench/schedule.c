/* Runs every planning algorithm on every instance and prints one table.
 *
 *   build/bench/schedule [--budget SECONDS] [--seed N] [--threads N] [--most-nodes N]
 *                        [--algorithm NAME] [--cpu-time] [--out STEM] [--repairs] [--phases]
 *
 * The instances are the four of schedule/tests/data, and clusters that are generated from the
 * measured regions with the seed. The columns are:
 *
 *   - the seconds of an iteration and of the sum of gradients
 *   - the gap to the lower bound
 *   - if the published scheduler's schedule is known: the iteration divided by the published
 *     schedule's iteration, both under our execution model (below 1 is better), and the
 *     milliseconds until a better plan was found
 *   - the milliseconds to the first valid plan, and to a plan within 1% of the final one
 *   - evaluations per second
 *   - the microseconds of a full run of the final plan in the fast simulation
 *
 * --out also writes the table to STEM.csv and STEM.json, with 0 for a missing figure. --algorithm
 * runs only the named algorithm. --cpu-time, for one thread, measures the budget and all times in
 * CPU seconds, so that other work on the machine matters less.
 *
 * --repairs prints another table. Up to twenty nodes of each instance are lost, one at a time, and
 * the plan is repaired without the node. Its columns are:
 *
 *   - the milliseconds to the first valid plan, median and longest
 *   - the iteration of a plan that was repaired for a tenth of a second, divided by the iteration
 *     of a fresh plan that took the whole budget: the mean, the worst, and the number of plans
 *     within 2%
 *   - the same ratio for a repair that begins at a plan without the node, made in advance
 *   - the same ratio for a second fresh plan with another seed
 *
 * --phases plans runs of 1,200 iterations with tensors in 6 bits and overlapping sums. It prints
 * the seconds of a run with one allocation of nodes to stages for all phases, and with one for each
 * phase. It also prints the seconds for which the run waits for moving nodes. For each phase it
 * prints the seconds of an iteration, the moves, and the nodes of each stage. --budget is the
 * budget of each search.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/skip_schedule.h"
#include "schedule/format/cluster.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/format/regions.h"
#include "schedule/search/phase_plans.h"
#include "schedule/search/search.h"

struct options {
	double budget_s;
	uint64_t seed;
	int threads, most_nodes;
	bool cpu_time, repairs, phases;
	/* out NULL: no files are written. algorithm NULL: all algorithms are run. */
	const char *out, *algorithm;
};

struct row {
	char instance[32];
	int nodes;
	const char *assignment, *algorithm;
	/* ratio: iteration_s divided by that of the published schedule; 0: no schedule was
	 * published for this instance. */
	double iteration_s, sync_s, bound_s, ratio;
	/* Milliseconds until a plan was better than the published schedule; 0: no plan was better,
	 * or no schedule was published. */
	double beats_ms;
	double first_ms, within_ms, per_s, run_us;
};

/* The seconds of an iteration of the published schedules, under our execution model with an
 * overhead of 0.13 s. The figure of shipped20 comes from the published paths, the other figures
 * from the output of the published code. 0: this code had no output after ten minutes. */
static const struct {
	const char *name;
	double seconds;
} published[] = {
	{ "shipped20", 33.13 }, { "geo18_s4", 36.13 }, { "geo20_s8", 78.01 }, { "one20_s16", 0 }
};

static const struct {
	int nodes, stages;
} generated[] = { { 20, 6 }, { 50, 8 }, { 100, 8 }, { 300, 12 }, { 1000, 16 } };

#define RUNS_US 10000 /* total time of the runs that are measured for one row, in microseconds */

static int64_t read_clock(void *arg)
{
	const struct options *o = arg;
	struct timespec t;

	if (!o->cpu_time)
		return clock_monotonic_us();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Returns the milliseconds that the search needed to find an iteration of at most this length; 0:
 * the search found none. */
static double reached_ms(const struct plan *p, double iteration_s)
{
	for (int i = 0; i < p->search.n_history; i++) {
		if (p->search.history[i][1] <= iteration_s)
			return 1e3 * p->search.history[i][0];
	}
	return 0;
}

static double within_one_percent_ms(const struct plan *p)
{
	double ms = reached_ms(p, 1.01 * p->predicted.iteration_s);

	return ms > 0 ? ms : 1e3 * p->search.elapsed_s;
}

/* Returns the mean time of a full run in the fast simulation, over as many runs as fit into
 * RUNS_US. */
static double run_us(const struct cluster *c, const struct plan *plan, const struct options *o)
{
	struct plan_request q;
	struct problem p;
	struct fast_simulate e;
	int64_t start_us, spent_us = 0;
	int runs = 0;

	plan_request_init(&q);
	q.path_length = plan->path_length;
	if (problem_init(&p, c, &q, NULL) != 0)
		return 0;
	fast_simulate_init(&e, &p);
	for (int i = 0; i < p.n_mb; i++)
		fast_simulate_set_path(&e, i, plan->visits + (size_t)i * (size_t)p.length);
	start_us = read_clock((void *)o);
	for (; spent_us < RUNS_US && fast_simulate_run(&e, INFINITY); runs++)
		spent_us = read_clock((void *)o) - start_us;
	fast_simulate_fini(&e);
	problem_fini(&p);
	return runs ? (double)spent_us / runs : 0;
}

static int measure(const struct cluster *c, const char *name, double published_s,
		   enum plan_algorithm algorithm, bool placed, const struct options *o,
		   struct row *row)
{
	struct plan_request q;
	struct plan *p = NULL;
	struct error err = { "" };

	plan_request_init(&q);
	q.algorithm = algorithm;
	q.free_assignment = placed;
	q.budget_s = o->budget_s;
	q.seed = o->seed;
	q.threads = o->threads;
	q.clock_us = read_clock;
	q.clock_arg = (void *)o;
	if (plan_search(c, &q, &p, &err) != 0) {
		printf("%-12s %5d %-5s %-9s %s\n", name, c->n_nodes, placed ? "free" : "given",
		       plan_algorithm_name(algorithm), err.text);
		return -1;
	}
	*row = (struct row){
		.nodes = c->n_nodes,
		.assignment = placed ? "free" : "given",
		.algorithm = plan_algorithm_name(algorithm),
		.iteration_s = p->predicted.iteration_s,
		.sync_s = p->predicted.sync_s,
		.bound_s = p->predicted.lower_bound_s,
		.ratio =
			placed || published_s <= 0 ? 0 : p->predicted.iteration_s / published_s,
		.first_ms = p->search.n_history ? 1e3 * p->search.history[0][0] : 0,
		.within_ms = within_one_percent_ms(p),
		.per_s = p->search.elapsed_s > 0
				 ? (double)p->search.evaluations / p->search.elapsed_s
				 : 0,
		.run_us = run_us(c, p, o),
	};
	if (!placed)
		row->beats_ms = reached_ms(p, published_s);
	snprintf(row->instance, sizeof(row->instance), "%s", name);
	plan_free(p);
	return 0;
}

static void print_row(const struct row *r)
{
	char ratio[16] = "-", beats_ms[16] = "-";

	if (r->ratio > 0)
		snprintf(ratio, sizeof(ratio), "%.3f", r->ratio);
	if (r->beats_ms > 0)
		snprintf(beats_ms, sizeof(beats_ms), "%.2f", r->beats_ms);
	printf("%-12s %5d %-5s %-9s %9.2f %8.2f %9.2f %6.1f%% %6s %8s %9.2f %9.1f %9.0f "
	       "%8.1f\n",
	       r->instance, r->nodes, r->assignment, r->algorithm, r->iteration_s, r->sync_s,
	       r->bound_s, r->bound_s > 0 ? 100 * (r->iteration_s / r->bound_s - 1) : 0, ratio,
	       beats_ms, r->first_ms, r->within_ms, r->per_s, r->run_us);
	fflush(stdout);
}

struct table {
	struct row rows[128];
	int n;
};

/* ---- repairs ---- */

#define LOST_MAX 20
#define REPAIR_S 0.1

enum { REPAIRED, IN_ADVANCE, FRESH, METHODS };

struct repairs {
	/* Number of lost nodes; number of plans within 2% of the fresh plan. */
	int n, close[METHODS];
	double first_ms[LOST_MAX], ratio[METHODS][LOST_MAX];
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Repairs the plan `from` after the loss of a node, in each of the three ways, and compares the
 * results with a fresh plan. fresh_q: the request for a fresh plan, with the node excluded. */
static int repair_one(const struct cluster *c, const struct plan_request *fresh_q,
		      const struct plan *from, struct repairs *r, struct error *err)
{
	struct plan_request q = *fresh_q;
	struct plan *fresh = NULL, *in_advance = NULL, *by[METHODS] = { NULL };
	int rc = plan_search(c, &q, &fresh, err);

	q.seed++;
	if (rc == 0)
		rc = plan_search(c, &q, &by[FRESH], err);
	q.seed--;
	q.from = from;
	if (rc == 0)
		rc = plan_search(c, &q, &in_advance, err);
	q.budget_s = REPAIR_S;
	if (rc == 0)
		rc = plan_search(c, &q, &by[REPAIRED], err);
	q.from = in_advance;
	if (rc == 0)
		rc = plan_search(c, &q, &by[IN_ADVANCE], err);
	for (int k = 0; rc == 0 && k < METHODS; k++) {
		double ratio = by[k]->predicted.iteration_s / fresh->predicted.iteration_s;

		r->ratio[k][r->n] = ratio;
		r->close[k] += ratio <= 1.02;
	}
	if (rc == 0)
		r->first_ms[r->n++] = 1e3 * by[REPAIRED]->search.history[0][0];
	for (int k = 0; k < METHODS; k++)
		plan_free(by[k]);
	plan_free(fresh);
	plan_free(in_advance);
	return rc;
}

static void print_repairs(const char *name, int nodes, struct repairs *r)
{
	qsort(r->first_ms, (size_t)r->n, sizeof(double), compare_doubles);
	printf("%-12s %5d %5d %9.2f %9.2f", name, nodes, r->n, r->first_ms[r->n / 2],
	       r->first_ms[r->n - 1]);
	for (int k = 0; k < METHODS; k++) {
		double sum = 0;

		qsort(r->ratio[k], (size_t)r->n, sizeof(double), compare_doubles);
		for (int i = 0; i < r->n; i++)
			sum += r->ratio[k][i];
		printf(" %9.3f %6.3f %6d", sum / r->n, r->ratio[k][r->n - 1], r->close[k]);
	}
	printf("\n");
	fflush(stdout);
}

static void run_repairs(const struct cluster *c, const char *name, const struct options *o)
{
	bool *excluded = alloc_array((size_t)c->n_nodes, sizeof(*excluded));
	int lost = c->n_nodes < LOST_MAX ? c->n_nodes : LOST_MAX;
	struct repairs r = { 0 };
	struct plan_request q;
	struct plan *from = NULL;
	struct error err = { "" };
	int rc;

	plan_request_init(&q);
	q.budget_s = o->budget_s;
	q.seed = o->seed;
	q.threads = o->threads;
	q.clock_us = read_clock;
	q.clock_arg = (void *)o;
	rc = plan_search(c, &q, &from, &err);
	q.excluded = excluded;
	for (int i = 0; rc == 0 && i < lost; i++) {
		int node = (int)((long)i * c->n_nodes / lost);

		excluded[node] = true;
		rc = repair_one(c, &q, from, &r, &err);
		excluded[node] = false;
		/* No other node can take over the stage of the lost node. */
		if (rc == PLAN_INFEASIBLE)
			rc = 0;
	}
	if (rc == 0 && r.n > 0)
		print_repairs(name, c->n_nodes, &r);
	else
		printf("%-12s %5d %s\n", name, c->n_nodes, err.text);
	plan_free(from);
	free(excluded);
}

/* ---- instances ---- */

static void run_instance(const struct cluster *c, const char *name, double published_s,
			 const struct options *o, struct table *t)
{
	static const enum plan_algorithm algorithms[] = { PLAN_DTFM,   PLAN_DTFM_SKIP,
							  PLAN_NO_TC2, PLAN_CBS,
							  PLAN_BEST,   PLAN_BEST };

	if (o->repairs) {
		run_repairs(c, name, o);
		return;
	}
	for (int a = 0; a < 6; a++) {
		if (o->algorithm &&
		    strcmp(o->algorithm, plan_algorithm_name(algorithms[a])) != 0)
			continue;
		if (t->n == 128 || measure(c, name, published_s, algorithms[a], a == 5, o,
					   &t->rows[t->n]) != 0)
			continue;
		print_row(&t->rows[t->n++]);
	}
}

/* Generates a cluster. Stages are assigned to nodes at random, so algorithms that keep the given
 * assignment do not start from a good assignment. */
static struct cluster *generate(const struct regions *regions, int nodes, int stages,
				uint64_t seed, struct error *err)
{
	struct regions_request q;
	struct cluster *c = NULL;
	struct rng rng;
	int at = 0;

	regions_request_init(&q, 4, 8);
	q.n_nodes = nodes;
	q.n_stages = stages;
	q.path_length = stages - stages / 3;
	q.shuffle = true;
	q.seed = seed;
	if (regions_cluster(regions, &q, &c, err) != 0)
		return NULL;
	free(c->bytes_s); /* like a published instance, this instance has only delays */
	c->bytes_s = NULL;
	for (int s = 0; s < stages; s++) {
		for (int k = 0; k < c->stages[s]; k++)
			c->nodes[at++].stage = s;
	}
	rng_init_stream(&rng, seed, 1);
	for (int i = nodes - 1; i > 0; i--) {
		int j = (int)rng_below(&rng, (uint32_t)i + 1), stage = c->nodes[i].stage;

		c->nodes[i].stage = c->nodes[j].stage;
		c->nodes[j].stage = stage;
	}
	return c;
}

/* Changes the delays of an instance to the delays of tensors in 6 bits. Only the transfer time of
 * the bytes changes. The file does not say how long the bytes take. This time is computed: the
 * delay, minus the overhead, minus the latency between the regions. */
static void shorten(struct cluster *c, const struct regions *regions)
{
	const struct tensor_formats formats = { FORMAT_Q6, FORMAT_Q6 };
	const double overhead_s = 0.35;
	size_t n = (size_t)c->n_nodes;

	c->bytes_s = alloc_array(n * n, sizeof(*c->bytes_s));
	for (size_t i = 0; i < n * n; i++) {
		double latency_s, speed;

		if (i / n != i % n &&
		    regions_link(regions, c->nodes[i / n].location, c->nodes[i % n].location,
				 &latency_s, &speed, NULL) == 0)
			c->bytes_s[i] = c->delay_s[i] - latency_s - overhead_s;
	}
	cluster_reformat(c, &formats);
	free(c->bytes_s);
	c->bytes_s = NULL;
}

static void print_phases(const struct phase_plans *p)
{
	const struct phase_plan_list *l = &p->with_moves;
	double late_s = 0;

	for (int k = 0; k < l->n; k++)
		late_s += l->phases[k].delay_s;
	printf(" %9.0f %9.0f %6.1f%% %6.0f", p->without_moves.total_s, l->total_s,
	       100 * (l->total_s / p->without_moves.total_s - 1), late_s);
	for (int k = 0; k < l->n; k++) {
		const struct plan *plan = l->phases[k].plan;

		printf("%s %.1f-%.1f/%d/", k ? "," : "", p->without_moves.phases[k].seconds,
		       l->phases[k].seconds, l->phases[k].moves);
		for (int s = 0; s < plan->n_stages; s++)
			printf("%s%d", s ? "." : "",
			       plan->stage_start[s + 1] - plan->stage_start[s]);
	}
	putchar('\n');
}

/* Plans a whole run: with a recipe, or with one number of skipped stages. */
static void run_phases(const struct cluster *given, const char *name, const char *run,
		       const struct options *o)
{
	struct phase_plans_request q = {
		.iterations = 1200,
		.state_ratio = phase_plans_state_ratio(tensor_format_sum_share(FORMAT_Q6)),
	};
	struct cluster *c = cluster_copy(given);
	struct skip_schedule schedule;
	char text[SKIP_SCHEDULE_RECIPE];
	struct phase_plans plans;
	struct error err = { "" };
	int rc = 0;

	plan_request_init(&q.search);
	q.search.free_assignment = q.search.overlap_sync = true;
	q.search.budget_s = o->budget_s;
	q.search.seed = o->seed;
	q.search.threads = o->threads;
	q.search.clock_us = read_clock;
	q.search.clock_arg = (void *)o;
	q.schedule = &schedule;
	q.stack = strcmp(run, "full") != 0 && strcmp(run, "third") != 0;
	q.search.ascending = q.stack; /* --recipe sets this too */
	if (q.stack) {
		c->always |= (stage_set)1 << (c->n_stages - 1);
		rc = skip_schedule_of_recipe(text, run, (uint32_t)cluster_most_skipped(c), &err);
	} else {
		snprintf(text, sizeof(text), "%d", strcmp(run, "full") == 0 ? 0 : c->n_stages / 3);
	}
	if (rc == 0)
		rc = skip_schedule_parse(&schedule, text, q.iterations,
					 (uint32_t)cluster_most_skipped(c), &err);
	if (rc == 0)
		rc = phase_plans_choose(c, &q, &plans, &err);
	printf("%-12s %-7s", name, run);
	if (rc == 0) {
		print_phases(&plans);
		phase_plans_fini(&plans);
	} else {
		printf(" %s\n", err.text);
	}
	cluster_free(c);
}

/* Plans an instance as the options say. */
static void run_one(struct cluster *c, const char *name, double published_s,
		    const struct regions *regions, const struct options *o, struct table *t)
{
	static const char *const runs[] = { "full", "third", "speed", "robust" };

	if (!o->phases) {
		run_instance(c, name, published_s, o, t);
		return;
	}
	shorten(c, regions);
	for (int i = 0; i < 4; i++)
		run_phases(c, name, runs[i], o);
}

static void print_csv(FILE *f, const struct table *t)
{
	fprintf(f, "instance,nodes,assignment,algorithm,iteration_s,sync_s,lower_bound_s,"
		   "ratio_to_published,first_ms,within_one_percent_ms,evaluations_per_s,"
		   "beats_published_ms,run_us\n");
	for (int i = 0; i < t->n; i++) {
		const struct row *r = &t->rows[i];

		fprintf(f, "%s,%d,%s,%s,%.6f,%.6f,%.6f,%.4f,%.3f,%.3f,%.0f,%.3f,%.2f\n",
			r->instance, r->nodes, r->assignment, r->algorithm, r->iteration_s,
			r->sync_s, r->bound_s, r->ratio, r->first_ms, r->within_ms, r->per_s,
			r->beats_ms, r->run_us);
	}
}

static void print_json(FILE *f, const struct table *t)
{
	fprintf(f, "[");
	for (int i = 0; i < t->n; i++) {
		const struct row *r = &t->rows[i];

		fprintf(f,
			"%s\n{\"instance\":\"%s\",\"nodes\":%d,\"assignment\":\"%s\","
			"\"algorithm\":\"%s\",\"iteration_s\":%.6f,\"sync_s\":%.6f,"
			"\"lower_bound_s\":%.6f,\"ratio_to_published\":%.4f,\"first_ms\":%.3f,"
			"\"within_one_percent_ms\":%.3f,\"evaluations_per_s\":%.0f,"
			"\"beats_published_ms\":%.3f,\"run_us\":%.2f}",
			i ? "," : "", r->instance, r->nodes, r->assignment, r->algorithm,
			r->iteration_s, r->sync_s, r->bound_s, r->ratio, r->first_ms,
			r->within_ms, r->per_s, r->beats_ms, r->run_us);
	}
	fprintf(f, "\n]\n");
}

static int write_table(const struct table *t, const char *stem, const char *ending,
		       void (*print)(FILE *f, const struct table *t), struct error *err)
{
	char path[512], *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc;

	if (!f)
		return error_set(err, -ENOMEM, "out of memory");
	print(f, t);
	fclose(f);
	snprintf(path, sizeof(path), "%s%s", stem, ending);
	rc = file_write(path, text, size, 0644, err);
	free(text);
	return rc;
}

static int run_all(const struct options *o, struct table *t, struct error *err)
{
	struct regions *regions;
	struct cluster *c;
	char name[64];
	int rc = regions_read("deploy/regions.json", &regions, err);

	if (rc != 0)
		return rc;
	if (o->repairs)
		printf("%-12s %5s %5s %9s %9s %9s %6s %6s %9s %6s %6s %9s %6s %6s\n",
		       "instance", "nodes", "lost", "first_ms", "longest", "repaired", "worst",
		       "in 2%", "advance", "worst", "in 2%", "fresh", "worst", "in 2%");
	else if (o->phases)
		printf("%-12s %-7s %9s %9s %7s %6s  %s\n", "instance", "run", "one_s", "each_s",
		       "", "late_s", "phases: seconds with one-with each/moves/nodes of stages");
	else
		printf("%-12s %5s %-5s %-9s %9s %8s %9s %7s %6s %8s %9s %9s %9s %8s\n",
		       "instance", "nodes", "where", "algorithm", "iter_s", "sync_s", "bound_s",
		       "gap", "ratio", "beats_ms", "first_ms", "1%_ms", "evals/s", "run_us");
	for (int i = 0; rc == 0 && i < 4; i++) {
		snprintf(name, sizeof(name), "schedule/tests/data/%s.json", published[i].name);
		rc = cluster_read(name, &c, err);
		if (rc == 0) {
			run_one(c, published[i].name, published[i].seconds, regions, o, t);
			cluster_free(c);
		}
	}
	for (int i = 0; rc == 0 && i < 5 && generated[i].nodes <= o->most_nodes; i++) {
		c = generate(regions, generated[i].nodes, generated[i].stages, o->seed, err);
		rc = c ? 0 : -EINVAL;
		snprintf(name, sizeof(name), "regions%d", generated[i].nodes);
		if (c)
			run_one(c, name, 0, regions, o, t);
		cluster_free(c);
	}
	regions_free(regions);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "budget", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 't' },
		{ "most-nodes", required_argument, NULL, 'n' },
		{ "cpu-time", no_argument, NULL, 'c' },
		{ "algorithm", required_argument, NULL, 'a' },
		{ "out", required_argument, NULL, 'o' },
		{ "repairs", no_argument, NULL, 'r' },
		{ "phases", no_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .budget_s = 1, .seed = 1, .threads = 1, .most_nodes = 1000 };
	struct table *t = alloc_new(sizeof(*t));
	struct error err = { "" };
	int option, rc;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'b':
			o.budget_s = atof(optarg);
			break;
		case 's':
			o.seed = (uint64_t)atoll(optarg);
			break;
		case 't':
			o.threads = atoi(optarg);
			break;
		case 'n':
			o.most_nodes = atoi(optarg);
			break;
		case 'a':
			o.algorithm = optarg;
			break;
		case 'r':
			o.repairs = true;
			break;
		case 'p':
			o.phases = true;
			break;
		case 'c':
			o.cpu_time = true;
			break;
		case 'o':
			o.out = optarg;
			break;
		default:
			fputs("usage: schedule [--budget SECONDS] [--seed N] [--threads N] "
			      "[--most-nodes N]\n"
			      "                [--algorithm NAME] [--cpu-time] [--out STEM] "
			      "[--repairs] [--phases]\n",
			      stderr);
			free(t);
			return 2;
		}
	}
	rc = run_all(&o, t, &err);
	if (rc == 0 && o.out && !o.repairs && !o.phases)
		rc = write_table(t, o.out, ".csv", print_csv, &err);
	if (rc == 0 && o.out && !o.repairs && !o.phases)
		rc = write_table(t, o.out, ".json", print_json, &err);
	free(t);
	if (rc != 0)
		fprintf(stderr, "schedule: %s\n", err.text);
	return rc == 0 ? 0 : 1;
}
