/* The checker. It uses only the cluster, the plan and a trace. The check of each rule adds its
 * breaches to the report. The rules about paths are checked only if all node ids in paths are
 * valid. */
#include "schedule/execution/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/skip_schedule.h"

struct checking {
	const struct cluster *c;
	const struct plan *p;
	struct check_report *report;
	int *stage_of; /* array of n_nodes: stage of each node in the plan's assignment; -1: none */
	bool is_sound; /* every node in a path exists and has a stage */
};

static void add_breach(struct checking *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_breach(struct checking *k, const char *format, ...)
{
	char text[256];
	va_list ap;

	if (k->report->n_breaches == CHECK_MOST_BREACHES)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	k->report->breaches[k->report->n_breaches++] = alloc_string(text);
}

static int size_of(const struct plan *p, int stage)
{
	return p->stage_start[stage + 1] - p->stage_start[stage];
}

/* Checks one assigned node: it exists, is assigned once, is not excluded, and is in the stage to
 * which it is pinned. */
static void check_node(struct checking *k, int node, int stage,
		       const struct check_options *options)
{
	int pinned;

	if (node < 0 || node >= k->c->n_nodes) {
		add_breach(k, "shape: stage %d: node %d does not exist", stage, node);
		return;
	}
	if (k->stage_of[node] >= 0)
		add_breach(k, "shape: node %d is assigned twice, to stages %d and %d", node,
			   k->stage_of[node], stage);
	k->stage_of[node] = stage;
	if (options && options->excluded && options->excluded[node])
		add_breach(k, "shape: node %d is excluded, but assigned to stage %d", node, stage);
	pinned = options && options->pins ? k->c->nodes[node].stage : -1;
	if (pinned >= 0 && pinned != stage)
		add_breach(k, "shape: node %d is pinned to stage %d, but assigned to %d", node,
			   pinned, stage);
}

static void check_assignment(struct checking *k, const struct check_options *options)
{
	const struct plan *p = k->p;
	int total = p->stage_start[p->n_stages];

	for (int s = 0; s < p->n_stages; s++) {
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++)
			check_node(k, p->assigned[i], s, options);
		if (size_of(p, s) > k->c->stages[s] ||
		    (total == k->c->n_nodes && size_of(p, s) != k->c->stages[s]))
			add_breach(k, "shape: stage %d has %d nodes, the cluster gives it %d", s,
				   size_of(p, s), k->c->stages[s]);
		if (size_of(p, s) == 0)
			add_breach(k, "shape: stage %d has no node", s);
	}
}

static void check_links(struct checking *k, const struct plan_microbatch *m)
{
	for (int h = 0; h < m->length; h++) {
		int from = m->path[h], to = m->path[(h + 1) % m->length];
		const double *delay = k->c->delay_s;
		size_t n = (size_t)k->c->n_nodes;

		if (from == to)
			continue;
		if (delay[(size_t)from * n + (size_t)to] < 0)
			add_breach(k, "shape: microbatch %d: no link from node %d to node %d",
				   m->id, from, to);
		if (delay[(size_t)to * n + (size_t)from] < 0)
			add_breach(k, "shape: microbatch %d: no return link from node %d to %d",
				   m->id, to, from);
	}
}

/* Checks first that nodes exist and have a stage, because the other rules need the stage of a node.
 */
static void check_path_shape(struct checking *k, const struct plan_microbatch *m)
{
	bool known = true;

	if (m->length != k->p->path_length &&
	    !(k->p->skip_share > 0 && m->length == k->p->n_stages))
		add_breach(k, "shape: microbatch %d visits %d nodes, the path length is %d", m->id,
			   m->length, k->p->path_length);
	for (int h = 0; h < m->length; h++) {
		if (m->path[h] < 0 || m->path[h] >= k->c->n_nodes) {
			add_breach(k, "shape: microbatch %d visits node %d, which does not exist",
				   m->id, m->path[h]);
			known = false;
		} else if (k->stage_of[m->path[h]] < 0) {
			add_breach(k, "shape: microbatch %d visits node %d, which has no stage",
				   m->id, m->path[h]);
			known = false;
		}
	}
	if (!known) {
		k->is_sound = false;
		return;
	}
	for (int h = 0; h < m->length; h++) {
		for (int g = 0; g < h; g++) {
			if (k->stage_of[m->path[g]] == k->stage_of[m->path[h]])
				add_breach(k, "shape: microbatch %d visits stage %d twice", m->id,
					   k->stage_of[m->path[h]]);
		}
	}
	check_links(k, m);
}

static void check_cc1(struct checking *k, const struct plan_microbatch *m)
{
	if (k->stage_of[m->path[0]] != 0)
		add_breach(k, "CC1: microbatch %d starts in stage %d, not 0", m->id,
			   k->stage_of[m->path[0]]);
	if (m->path[0] != m->data_node)
		add_breach(k, "CC1: microbatch %d starts at node %d, its data node is %d", m->id,
			   m->path[0], m->data_node);
}

static void check_cc2(struct checking *k, const struct plan_microbatch *m)
{
	int stages[PLAN_MOST_PATH], at, after;

	for (int h = 0; h < m->length; h++)
		stages[h] = k->stage_of[m->path[h]];
	at = stage_path_misplaced(stages, m->length, &after);
	if (at >= 0)
		add_breach(k, "CC2: microbatch %d: stage %d at place %d does not follow stage %d",
			   m->id, stages[at], at, after);
}

static void check_cc3(struct checking *k)
{
	const struct plan *p = k->p;
	long visits = (long)p->n_microbatches * p->path_length;
	int *exposure;

	if ((k->c->always & ~p->always) != 0)
		add_breach(k, "CC1: the cluster's always_visited has stages that the plan's lacks");
	exposure = alloc_array((size_t)p->n_stages, sizeof(*exposure));
	for (int i = 0; i < p->n_microbatches; i++) {
		visits += p->skip_share > 0 ? p->microbatches[i].length - p->path_length : 0;
		for (int h = 0; h < p->microbatches[i].length; h++)
			exposure[k->stage_of[p->microbatches[i].path[h]]]++;
	}
	for (int s = 1; s < p->n_stages; s++) {
		int low, high;

		stage_set_exposure(p->always, s, p->n_stages, p->n_microbatches, visits, &low,
				   &high);
		if (exposure[s] < low || exposure[s] > high)
			add_breach(k,
				   "CC3: stage %d is visited by %d microbatches, "
				   "expected %d to %d",
				   s, exposure[s], low, high);
	}
	free(exposure);
}

static void check_batch(struct checking *k)
{
	const struct plan *p = k->p;
	int each = k->c->microbatches_per_data_node, total = each * k->c->stages[0];
	int data_nodes = size_of(p, 0), shared = data_nodes ? total / data_nodes : 0;
	bool takes_over = data_nodes < k->c->stages[0] && p->n_microbatches == total;

	for (int i = p->stage_start[0]; i < p->stage_start[1]; i++) {
		int sends = 0, skip = 0;

		for (int m = 0; m < p->n_microbatches; m++) {
			bool own = p->microbatches[m].data_node == p->assigned[i];

			sends += own;
			skip += own && p->microbatches[m].length < p->n_stages;
		}
		if (p->path_length < p->n_stages && skip != skip_share_count(p->skip_share, sends))
			add_breach(k,
				   "share: %d of the %d microbatches of data node %d skip stages, "
				   "expected %d",
				   skip, sends, p->assigned[i],
				   skip_share_count(p->skip_share, sends));
		if (takes_over ? sends != shared && sends != shared + 1 : sends != each)
			add_breach(k, "batch: data node %d sends %d microbatches, expected %d",
				   p->assigned[i], sends, takes_over ? shared : each);
	}
}

struct slot_change {
	double at_s;
	int node, by;
};

/* Orders changes by node, then by time. At the same instant, a slot that is given back comes before
 * a slot that is taken. */
static int by_node_and_time(const void *a, const void *b)
{
	const struct slot_change *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return x->by - y->by;
}

/* Follows the number of slots in use on each node through the trace. Reports each node at most
 * once. */
static void check_tc1(struct checking *k, const struct simulation *trace)
{
	struct slot_change *changes = alloc_array((size_t)trace->n_tasks, sizeof(*changes));
	int n = 0, held = 0, reported = -1;

	for (int i = 0; i < trace->n_tasks; i++) {
		const struct sim_task *t = &trace->tasks[i];

		if (t->kind == TASK_FORWARD)
			changes[n++] = (struct slot_change){ t->start_s, t->node, 1 };
		else if (t->kind == TASK_BACKWARD)
			changes[n++] = (struct slot_change){ t->end_s, t->node, -1 };
	}
	qsort(changes, (size_t)n, sizeof(*changes), by_node_and_time);
	for (int i = 0; i < n; i++) {
		int node = changes[i].node;

		if (i == 0 || changes[i - 1].node != node)
			held = 0;
		held += changes[i].by;
		if (held > k->c->nodes[node].memory && reported != node) {
			add_breach(k,
				   "TC1: node %d holds %d microbatches at %.6f s, its memory is %d",
				   node, held, changes[i].at_s, k->c->nodes[node].memory);
			reported = node;
		}
		if ((i + 1 == n || changes[i + 1].node != node) && held != 0)
			add_breach(k, "TC1: some microbatch never leaves node %d", node);
	}
	free(changes);
}

static void check_all(struct checking *k, const struct simulation *trace,
		      const struct check_options *options)
{
	check_assignment(k, options);
	for (int i = 0; i < k->p->n_microbatches; i++)
		check_path_shape(k, &k->p->microbatches[i]);
	check_batch(k);
	if (!k->is_sound)
		return;
	for (int i = 0; i < k->p->n_microbatches; i++) {
		check_cc1(k, &k->p->microbatches[i]);
		check_cc2(k, &k->p->microbatches[i]);
	}
	check_cc3(k);
	if (trace)
		check_tc1(k, trace);
}

void check_plan(const struct cluster *c, const struct plan *p, const struct simulation *trace,
		const struct check_options *options, struct check_report *out)
{
	struct checking k = { .c = c, .p = p, .report = out, .is_sound = true };

	out->n_breaches = 0;
	out->breaches = alloc_array(CHECK_MOST_BREACHES, sizeof(*out->breaches));
	k.stage_of = alloc_array((size_t)c->n_nodes, sizeof(*k.stage_of));
	for (int i = 0; i < c->n_nodes; i++)
		k.stage_of[i] = -1;
	if (p->n_stages != c->n_stages)
		add_breach(&k, "shape: the plan has %d stages, the cluster %d", p->n_stages,
			   c->n_stages);
	else
		check_all(&k, trace, options);
	free(k.stage_of);
}

void check_report_fini(struct check_report *r)
{
	for (int i = 0; i < r->n_breaches; i++)
		free(r->breaches[i]);
	free(r->breaches);
	*r = (struct check_report){ 0 };
}
