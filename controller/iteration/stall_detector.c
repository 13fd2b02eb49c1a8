/* stall_detector.c - ends an iteration, a sum or a validation in which nothing goes on any more.
 *
 * An iteration stalls in two ways. Either all agents report that they are at rest: nothing runs, nothing travels, and
 * not all is done. Then slots wait in a circle, which is resolved, or something was lost, and the iteration restarts.
 *
 * Or some agents report work, and no task ends anywhere. After a limit far beyond the longest task and transfer, if no
 * data arrives either, the nodes that report work hang. The controller treats them as dead: they come back once they
 * have loaded their weights. If no node reports work, the iteration restarts. (An agent usually finds by itself that
 * its computing hangs, and ends.) Agents are trusted to report honestly what they do.
 *
 * Time is counted in looks: while this loop, or the whole machine, slept there were none.
 */
#include "controller/iteration/stall_detector.h"

#include <math.h>

#include "controller/controller.h"
#include "controller/iteration/reroute.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/network/failed_links.h"
#include "controller/operator/journal.h"

enum {
	LOOK_US = 250000,
	ROUNDS = 4,
	MUCH_LONGER = 20,
	MUCH_BYTES = 65536,  /* more than heartbeats are, */
	SHORT_US = 10000000  /* within so short a time */
};

/* ---- all are at rest ---- */

/* Who holds the weights of another iteration cannot take part, whatever was believed of it: it
 * fetches them anew once it is heard again. */
static bool drop_strangers(struct controller *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->n_members && c->phase == PHASE_COMPUTING; i++) {
		struct member *m = &c->members[i];

		if (!m->replica || m->beat.committed == c->committed)
			continue;
		members_gone(c, m, "holds the weights of another iteration");
		any = true;
	}
	return any;
}

static bool unswap_one(struct controller *c)
{
	int64_t id = routes_unswap(&c->routes);
	uint32_t changed = (uint32_t)id;

	if (id < 0)
		return false;
	reroute_tell(c, &changed, 1, NULL);
	c->steps++;
	note(c, NOTE_WARNING, -1, 0,
	     "slots waited in a circle: m%02lld starts again, unswapped", (long long)id);
	return true;
}

static bool at_rest(const struct controller *c, const struct member *m)
{
	const struct msg_heartbeat *b = &m->beat;

	if (m->replica && c->now_us - m->heard_us > LOOK_US + timeout_round_trip(&m->rounds) / 2)
		return false; /* its last word may be of before */
	if (m->replica && link_failures_doubted(c, m))
		return false; /* what went on has gone nowhere yet */
	if (m->replica && b->committed != c->committed)
		return post_idle(c->post, m->peer); /* else the commit may be on its way */
	return !m->replica ||
	       (!b->running && b->in_flight == 0 && (b->queued == 0 || b->blocked) &&
		b->iteration == c->iteration);
}

/* Nothing runs, nothing travels, in several looks. */
static bool all_rest(struct controller *c)
{
	struct stall_detector *s = &c->still;
	uint64_t tasks = 0;
	bool rest = true;

	for (uint32_t i = 0; i < c->n_members; i++) {
		tasks += c->members[i].beat.tasks_done;
		rest = rest && at_rest(c, &c->members[i]);
	}
	s->rounds = rest && tasks == s->tasks ? s->rounds + 1 : 0;
	s->tasks = tasks;
	return s->rounds >= ROUNDS;
}

/* ---- some report work ---- */

void stall_hear(struct controller *c, struct member *m)
{
	struct flow *f = &m->received;
	uint64_t bytes = m->beat.received_bytes;
	bool much = f->since_us && bytes > f->bytes && bytes - f->bytes > MUCH_BYTES;

	if (f->since_us && !much && c->now_us - f->since_us < SHORT_US)
		return;
	if (much)
		f->much_us = c->now_us;
	f->bytes = bytes;
	f->since_us = c->now_us;
}

static bool data_moves(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].received.much_us > c->still.hung_us)
			return true;
	return false;
}

/* As long as the longest task and the longest way take together, in real seconds. */
static double longest_s(const struct controller *c)
{
	double task = 0, measured = 0, way = 0, slower = 1;
	uint32_t n = c->n_members;

	for (uint32_t i = 0; i < n; i++) {
		const struct cluster_node *node = &c->cluster->nodes[i];
		const struct member *m = &c->members[i];

		if (!m->replica)
			continue;
		task = fmax(task, fmax(node->forward_s, fmax(node->backward_s, node->loss_s)));
		measured = fmax(measured, fmax(m->measured_forward_s,
					       fmax(m->measured_backward_s, m->measured_loss_s)));
		for (uint32_t to = 0; to < n; to++)
			if (c->members[to].replica && to != i)
				way = fmax(way, c->cluster->delay_s[i * n + to]);
	}
	for (uint32_t i = 0; i < c->n_faults; i++) {
		const struct fault *f = &c->faults[i];

		if (f->active && fault_describe(f->kind)->factor == FACTOR_TIMES)
			slower = fmax(slower, (double)f->factor);
		else if (f->active && fault_describe(f->kind)->factor == FACTOR_PROBABILITY)
			slower = fmax(slower, 1 / (1 - (double)f->factor));
	}
	return fmax((task + way) * c->unit_s, measured) * slower;
}

bool stall_for(struct controller *c, int64_t most_us)
{
	struct stall_detector *s = &c->still;

	if (s->steps != c->steps || data_moves(c)) {
		s->steps = c->steps;
		s->hung = 0;
		s->hung_us = c->now_us;
	}
	s->hung++;
	return s->hung * (int64_t)LOOK_US > most_us;
}

bool stall_hung(struct controller *c, uint32_t tasks)
{
	int64_t most_us = c->options.overdue_us;

	return stall_for(c, most_us) &&
	       (double)c->still.hung * LOOK_US >
		       (double)most_us + 1e6 * MUCH_LONGER * tasks * longest_s(c);
}

/* Why the node hangs, by its own heartbeat; the surest sign has rank 0. NULL: it does not. */
static const char *hung_in(const struct member *m, int rank)
{
	const struct msg_heartbeat *b = &m->beat;

	switch (rank) {
	case 0:
		return b->running ? "does not end a task" : NULL;
	case 1:
		return b->queued && !b->blocked ? "does not start a task" : NULL;
	default:
		return b->in_flight ? "does not get rid of a tensor" : NULL;
	}
}

static uint32_t count_hung(const struct controller *c, int rank, uint32_t *replicas)
{
	uint32_t n = 0;

	*replicas = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		*replicas += c->members[i].replica;
		n += c->members[i].replica && hung_in(&c->members[i], rank);
	}
	return n;
}

/* Where more than half of the replicas hang, the machine or the network that they run on is slow. They get as much time
 * again. */
bool stall_drop_hung(struct controller *c)
{
	uint32_t n = 0, replicas = 0;
	int rank = -1;

	c->steps++; /* the others have as much time again */
	while (n == 0 && rank < 2)
		n = count_hung(c, ++rank, &replicas);
	for (uint32_t i = 0; 2 * n <= replicas && i < c->n_members; i++) {
		struct member *m = &c->members[i];
		const char *why = m->replica ? hung_in(m, rank) : NULL;

		if (!why)
			continue;
		note(c, NOTE_ALERT, m->id, 0, "no task ends any more, and n%02u reports work: it counts as dead", m->id);
		members_gone(c, m, why);
	}
	return n > 0;
}

/* ---- a sum ---- */

/* Beside its transfers, a big gradient is copied, added up and hashed meanwhile. */
static int64_t sum_limit_us(const struct controller *c)
{
	static const double sums = 6, parameter_us = 0.05;
	uint64_t most = 0;

	for (int s = 0; s < c->cluster->n_stages; s++)
		most = c->stage_parameters[s] > most ? c->stage_parameters[s] : most;
	return c->options.overdue_us + (int64_t)(parameter_us * (double)most) +
	       (int64_t)(sums * 1e6 * c->current->plan->predicted.sync_s * c->unit_s);
}

/* Returns true if the node reports that it waits for a replica's part of the sum. */
static bool awaits_replica(const struct controller *c, const struct member *m)
{
	uint16_t awaits = m->beat.awaits;
	const struct member *other = awaits && awaits <= c->n_members ? &c->members[awaits - 1] : NULL;

	return other && other->replica && member_stage(c, other) == member_stage(c, m);
}

static bool holds_sum(const struct controller *c, const struct member *m)
{
	return m->replica && !m->reduced && !awaits_replica(c, m);
}

/* The replicas that wait for nobody, and have not reported their sum, hang. If there are none, or if more than half of
 * the replicas seem to hang, the iteration restarts. */
void stall_sums_turn(struct controller *c)
{
	uint32_t n = 0, replicas = 0;

	if (!stall_look(c) || !stall_for(c, sum_limit_us(c)))
		return;
	c->steps++;
	for (uint32_t i = 0; i < c->n_members; i++) {
		replicas += c->members[i].replica;
		n += holds_sum(c, &c->members[i]);
	}
	if (n == 0 || 2 * n > replicas) {
		note(c, NOTE_ALERT, -1, 0, "the sums of it%llu have stalled: it restarts", (unsigned long long)c->iteration);
		request_anew(&c->requests, "the sums stalled");
		return;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!holds_sum(c, m))
			continue;
		note(c, NOTE_ALERT, m->id, 0, "n%02u waits for nobody and does not report its sum of S%d: it counts as dead",
		     m->id, member_stage(c, m));
		members_gone(c, m, "does not report its sum");
	}
}

/* ---- every turn ---- */

bool stall_look(struct controller *c)
{
	if (c->now_us < c->still.look_us)
		return false;
	c->still.look_us = c->now_us + LOOK_US;
	return true;
}

void stall_turn(struct controller *c)
{
	bool rest, hung;

	if (!stall_look(c))
		return;
	rest = all_rest(c);
	hung = stall_hung(c, 1);
	if ((!rest && !hung) || (hung && !rest && stall_drop_hung(c)))
		return;
	c->still.rounds = 0;
	if (drop_strangers(c) || (rest && unswap_one(c)))
		return;
	note(c, NOTE_ALERT, -1, 0, "it%llu has stalled: it restarts", (unsigned long long)c->iteration);
	request_anew(&c->requests, "an iteration stalled");
}
