/* members.c - checks the nodes of a run. In a large fleet, a person easily overlooks a node that
 * has left, or a node that computes on the CPU although the other nodes have GPUs. */
#include "doctor/run/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/device_name.h"
#include "wire/names.h"

static void check_run(struct findings *f, const struct picture *p)
{
	char corpus[40] = "unknown";

	if (p->corpus_hash)
		snprintf(corpus, sizeof(corpus), "%016" PRIx64, p->corpus_hash);
	if (p->version[0] && strcmp(p->version, SKIPPIPE_VERSION) != 0) {
		finding_add(f, "run", FINDING_WARNING, "skippipe %s began the run, and this is %s",
			    p->version, SKIPPIPE_VERSION);
		finding_remedy(f, "use the same version on all machines");
		return;
	}
	finding_add(f, "run", FINDING_OK, "%u nodes, %s, corpus %s", p->n,
		    p->is_running ? "a controller runs" : "no controller runs", corpus);
}

static void check_nodes(struct findings *f, const struct picture *p)
{
	const size_t before = f->all.n;
	char label[PICTURE_LABEL];
	unsigned n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct picture_node *m = &p->nodes[i];

		if (!m->has_state)
			continue;
		n += node_presence(m->state) == NODE_TAKES_PART;
		if (node_presence(m->state) != NODE_LOST)
			continue;
		finding_add(f, "nodes", p->is_running ? FINDING_WARNING : FINDING_OK,
			    "%s is %s%s%s", picture_label(p, i, label), node_state_name(m->state),
			    m->why[0] ? ": " : "", m->why);
		if (p->is_running)
			finding_remedy(f,
				       "start its agent again%s%s, or let the run continue "
				       "without the node",
				       m->host[0] ? " on " : "", m->host);
	}
	if (f->all.n == before)
		finding_add(f, "nodes", FINDING_OK, "%u take part", n);
}

/* Returns true if the node computes on a CPU. */
static bool has_cpu(const struct picture_node *m)
{
	return strncmp(m->device, "cpu", 3) == 0;
}

static void check_devices(struct findings *f, const struct picture *p)
{
	const struct picture_node *first = NULL;
	unsigned unlike = 0, cpus = 0, n = 0;
	char label[PICTURE_LABEL];
	uint32_t last_cpu = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct picture_node *m = &p->nodes[i];

		if (!m->device[0])
			continue;
		first = first ? first : m;
		n++;
		unlike += !device_texts_alike(m->device, first->device);
		cpus += has_cpu(m);
		last_cpu = has_cpu(m) ? i : last_cpu;
	}
	if (n == 0)
		return;
	if (cpus > 0 && cpus < n) {
		finding_add(f, "devices", FINDING_WARNING,
			    "%u of %u nodes compute on a CPU beside others with a GPU: %s%s", cpus,
			    n, picture_label(p, last_cpu, label), cpus > 1 ? " and others" : "");
		finding_remedy(f,
			       "run skippipe doctor --device cuda there; an agent without a usable "
			       "GPU computes on the CPU");
	} else {
		finding_add(f, "devices", FINDING_OK, "%u nodes, %s: %.80s%s", n,
			    unlike > 0 ? "several kinds, so verify compares within tolerances"
				       : "all of one kind",
			    first->device, unlike > 0 ? " and others" : "");
	}
}

void members_check(struct findings *f, const struct picture *p)
{
	check_run(f, p);
	check_nodes(f, p);
	check_devices(f, p);
}
