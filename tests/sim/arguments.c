/* arguments.c - draws the cluster of a simulated run and the controller's command line from the
 * seed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "schedule/format/cluster.h"
#include "tests/sim/world_private.h"

static void add_option(struct world *w, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_argument(struct world *w, const char *text)
{
	char *to = w->texts[w->argc];

	snprintf(to, sizeof(w->texts[0]), "%s", text);
	w->argv[w->argc++] = to;
}

static void add_option(struct world *w, const char *name, const char *format, ...)
{
	char value[sizeof(w->texts[0])];
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	add_argument(w, name);
	add_argument(w, value);
}

void arguments_write_cluster(struct world *w)
{
	struct cluster *c = cluster_alloc((int)w->n_agents, 3, true);
	struct error err;
	char *text;

	for (int s = 0; s < 3; s++)
		c->stages[s] = (int)(w->n_agents / 3 + ((uint32_t)s < w->n_agents % 3));
	c->microbatches_per_data_node = 3;
	for (int i = 0; i < c->n_nodes; i++) {
		double slower = 0.5 + rng_uniform(&sim.rng);

		c->nodes[i].forward_s = slower;
		c->nodes[i].backward_s = 2 * slower;
		c->nodes[i].loss_s = slower / 3;
		c->nodes[i].memory = 2;
		for (int k = 0; k < c->n_nodes; k++) {
			c->delay_s[i * c->n_nodes + k] = 0.1 + rng_uniform(&sim.rng);
			c->sync_pair_s[i * c->n_nodes + k] = 1;
		}
	}
	text = cluster_format(c);
	if (!text || file_write(w->ground->cluster, text, strlen(text), 0600, &err) != 0)
		world_go_wrong(w, "the cluster's file cannot be written");
	free(text);
	cluster_free(c);
}

/* Adds the options that decide which stages microbatches skip. */
static void add_skipping(struct world *w)
{
	static const char *const schedules[] = { "2@0,1@4,0@8", "2@0,0@5", "1@0,2@4,0@7" };

	if (w->at_phases == NODES_MOVE)
		add_argument(w, "--phase-moves");
	if (w->at_phases == NODES_MOVE && !w->stacking) {
		add_option(w, "--skip-schedule", "%s", schedules[sim_draw(0, 2)]);
	} else if (w->stacking) {
		bool both = w->stacking == STACK_ON_FIRST_AND_LAST;

		add_argument(w, "--stack");
		if (sim_chance(0.3))
			add_option(w, "--skip-schedule",
				   both ? "1@0,50%%:1@3" : "2@0,40%%:1@2,0@4");
		else
			add_option(w, "--skip-schedule", both ? "1@0,0@3" : "2@0,1@2,0@4");
		add_option(w, "--always", both ? "2" : "0");
	} else if (sim_chance(0.2)) {
		add_option(w, "--skip-share", "50%%:1");
	} else {
		add_option(w, "--skip", "%d", sim_chance(0.5) ? 1 : 0);
	}
}

/* Adds the options for nodes and network. */
static void add_network(struct world *w)
{
	const struct ground *g = w->ground;

	if (w->emulated) {
		add_option(w, "--emulate", "%s", g->cluster);
		add_option(w, "--time-scale", "0.01");
	} else {
		/* With a minimum ("2.."), an agent that returns may have to wait as a spare. */
		add_option(w, "--agents", sim_chance(0.5) ? "2..%u" : "%u", w->n_agents);
		add_option(w, "--stages", "%u,%u,%u", w->n_agents / 3 + (w->n_agents % 3 > 0),
			   w->n_agents / 3 + (w->n_agents % 3 > 1), w->n_agents / 3);
		add_option(w, "--microbatches", "3");
	}
}

/* In some runs, adds a command that cuts the model into other stages at an iteration (--at). The
 * controller refuses the command if there is no folder for checkpoints. */
static void add_cuts(struct world *w)
{
	static const char *const cuts[] = { "1,2", "0,1,2", "2,1", "0,1,1,1", "3" };

	if (sim_chance(0.2))
		add_option(w, "--at", "%d:cut:%s", (int)sim_draw(2, w->iterations),
			   cuts[sim_draw(0, 4)]);
}

void arguments_make(struct world *w, bool resume)
{
	static const char *const wires[] = { "fp32", "fp32", "bf16", "q8", "q6" };
	static const char *const sum_wires[] = { "fp32", "fp32", "q8", "q6", "q4" };
	const struct ground *g = w->ground;

	w->argc = 0;
	add_argument(w, "controller");
	add_option(w, resume ? "--resume" : "--run-dir", "%s", g->run);
	add_option(w, "--key", "%s", g->key);
	add_option(w, "--admitted", "%s", g->admitted);
	add_option(w, "--listen", "%s", w->join);
	add_option(w, "--gather-s", "6");
	add_option(w, "--budget", "0.05");
	add_option(w, "--ahead", "0");
	if (!resume) {
		add_option(w, "--iterations", "%u", w->iterations);
		add_option(w, "--eval-every", "%d", sim_chance(0.3) ? 2 : 0);
		add_option(w, "--eval-batches", "2");
		add_option(w, "--checkpoint-every", w->saves ? "2" : "0");
		add_option(w, "--model", "%s", g->model);
		add_option(w, "--corpus", "%s", g->corpus);
		add_option(w, "--grad-norm", sim_chance(0.3) ? "visits" : "microbatches");
		add_skipping(w);
		add_option(w, "--wire", "%s", wires[sim_draw(0, 4)]);
		add_option(w, "--sum-wire", "%s", sum_wires[sim_draw(0, 4)]);
		if (sim_chance(0.3))
			add_option(w, "--sums", "late");
		add_option(w, "--skip-bad-steps", "%d", sim_chance(0.5) ? 2 : 0);
		add_network(w);
		add_cuts(w);
	}
	w->argv[w->argc] = NULL;
}
