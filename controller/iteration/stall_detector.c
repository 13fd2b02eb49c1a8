/* stall_detector.c - ends an iteration, a sum or a validation in which nothing goes on any more.
 *
 * An iteration stalls in two ways. Either all agents report that they are at rest: nothing runs,
 * nothing travels, and not all is done. Then slots wait in a circle, which is resolved, or
 * something was lost, and the iteration restarts.
 *
 * Or some agents report work, and no task ends anywhere. After a limit far beyond the longest task
 * and transfer, if no data arrives either, the nodes that report work hang. The controller treats
 * them as dead: they come back once they have loaded their weights. If no node reports work, the
 * iteration restarts. (An agent usually finds by itself that its computing hangs, and ends.) Agents
 * are trusted to report honestly what they do.
 *
 * Time is counted in looks: while this loop, or the whole machine, slept there were none.
 */
#include "controller/iteration/stall_detector.h"

#include <math.h>

#include "controller/iteration/iteration.h"
#include "controller/iteration/reroute.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/network/failed_links.h"
#include "controller/operator/journal.h"

enum {
	LOOK_US = 250000,
	ROUNDS = 4,
	MUCH_LONGER = 20,
	MUCH_BYTES = 65536, /* more than heartbeats are, */
	SHORT_US = 10000000 /* within so short a time */
};

/* ---- all are at rest ---- */

/* Who holds the weights of another iteration cannot take part, whatever was believed of it: it
 * fetches them anew once it is heard again. */
static bool drop_strangers(struct members *members)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n && members->run->phase == PHASE_COMPUTING; i++) {
		struct member *m = &members->list[i];

		if (!m->is_replica || m->beat.committed == members->run->committed)
			continue;
		members_gone(members->run, m, "holds the weights of another iteration");
		any = true;
	}
	return any;
}

static bool unswap_one(struct iteration *it)
{
	int64_t id = routes_unswap(&it->routes);
	uint32_t changed = (uint32_t)id;

	if (id < 0)
		return false;
	reroute_announce(it, &changed, 1, NULL);
	it->run->steps++;
	note(it->run, NOTE_WARNING, -1, 0,
	     "slots waited in a circle: m%02lld starts again, unswapped", (long long)id);
	return true;
}

static bool at_rest(const struct members *members, const struct member *m)
{
	const struct msg_heartbeat *b = &m->beat;

	if (m->is_replica && members->run->now_us - m->heard.message_us >
				     LOOK_US + timeout_round_trip(&m->heard.rounds) / 2)
		return false; /* its last word may be of before */
	if (m->is_replica && link_failures_doubted(members, m))
		return false; /* what went on has gone nowhere yet */
	if (m->is_replica && b->committed != members->run->committed)
		return post_idle(members->run->post,
				 m->peer); /* else the commit may be on its way */
	return !m->is_replica ||
	       (!b->running && b->in_flight == 0 && (b->queued == 0 || b->blocked) &&
		b->iteration == members->run->iteration);
}

/* Nothing runs, nothing travels, in several looks. */
static bool all_rest(struct iteration *it)
{
	struct stall_detector *s = &it->detector;
	uint64_t tasks = 0;
	bool rest = true;

	for (uint32_t i = 0; i < it->members->n; i++) {
		tasks += it->members->list[i].beat.tasks_done;
		rest = rest && at_rest(it->members, &it->members->list[i]);
	}
	s->rounds = rest && tasks == s->tasks ? s->rounds + 1 : 0;
	s->tasks = tasks;
	return s->rounds >= ROUNDS;
}

/* ---- some report work ---- */

void stall_note_heartbeat(struct run *run, struct member *m)
{
	struct flow *f = &m->heard.received;
	uint64_t bytes = m->beat.received_bytes;
	bool much = f->since_us && bytes > f->bytes && bytes - f->bytes > MUCH_BYTES;

	if (f->since_us && !much && run->now_us - f->since_us < SHORT_US)
		return;
	if (much)
		f->much_us = run->now_us;
	f->bytes = bytes;
	f->since_us = run->now_us;
}

static bool data_moves(const struct iteration *it)
{
	for (uint32_t i = 0; i < it->members->n; i++)
		if (it->members->list[i].heard.received.much_us > it->detector.hung_us)
			return true;
	return false;
}

/* As long as the longest task and the longest way take together, in real seconds. */
static double longest_s(const struct members *members)
{
	double task = 0, measured = 0, way = 0, slower = 1;
	uint32_t n = members->n;

	for (uint32_t i = 0; i < n; i++) {
		const struct cluster_node *node = &members->run->cluster->nodes[i];
		const struct member *m = &members->list[i];

		if (!m->is_replica)
			continue;
		task = fmax(task, fmax(node->forward_s, fmax(node->backward_s, node->loss_s)));
		measured = fmax(measured, fmax(m->compute.forward_s,
					       fmax(m->compute.backward_s, m->compute.loss_s)));
		for (uint32_t to = 0; to < n; to++)
			if (members->list[to].is_replica && to != i)
				way = fmax(way, members->run->cluster->delay_s[i * n + to]);
	}
	for (uint32_t i = 0; i < members->run->faults.n; i++) {
		const struct fault *f = &members->run->faults.list[i];

		if (f->active && fault_describe(f->kind)->factor == FACTOR_TIMES)
			slower = fmax(slower, (double)f->factor);
		else if (f->active && fault_describe(f->kind)->factor == FACTOR_PROBABILITY)
			slower = fmax(slower, 1 / (1 - (double)f->factor));
	}
	return fmax((task + way) * members->run->unit_s, measured) * slower;
}

bool stall_for(struct iteration *it, int64_t limit_us)
{
	struct stall_detector *s = &it->detector;

	if (s->steps != it->run->steps || data_moves(it)) {
		s->steps = it->run->steps;
		s->hung = 0;
		s->hung_us = it->run->now_us;
	}
	s->hung++;
	return s->hung * (int64_t)LOOK_US > limit_us;
}

bool stall_hung(struct iteration *it, uint32_t tasks)
{
	int64_t limit_us = it->run->options.overdue_us;

	return stall_for(it, limit_us) &&
	       (double)it->detector.hung * LOOK_US >
		       (double)limit_us + 1e6 * MUCH_LONGER * tasks * longest_s(it->members);
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

static uint32_t count_hung(const struct members *members, int rank, uint32_t *replicas)
{
	uint32_t n = 0;

	*replicas = 0;
	for (uint32_t i = 0; i < members->n; i++) {
		*replicas += members->list[i].is_replica;
		n += members->list[i].is_replica && hung_in(&members->list[i], rank);
	}
	return n;
}

/* Where more than half of the replicas hang, the machine or the network that they run on is slow.
 * They get as much time again. */
bool stall_drop_hung(struct members *members)
{
	uint32_t n = 0, replicas = 0;
	int rank = -1;

	members->run->steps++; /* the others have as much time again */
	while (n == 0 && rank < 2)
		n = count_hung(members, ++rank, &replicas);
	for (uint32_t i = 0; 2 * n <= replicas && i < members->n; i++) {
		struct member *m = &members->list[i];
		const char *why = m->is_replica ? hung_in(m, rank) : NULL;

		if (!why)
			continue;
		note(members->run, NOTE_ALERT, m->id, 0,
		     "no task ends any more, and n%02u reports work: it counts as dead", m->id);
		members_gone(members->run, m, why);
	}
	return n > 0;
}

/* ---- a sum ---- */

/* Beside its transfers, a big gradient is copied, added up and hashed meanwhile. */
static int64_t sum_limit_us(const struct run *run)
{
	static const double sums = 6, parameter_us = 0.05;
	uint64_t most = 0;

	for (int s = 0; s < run->cluster->n_stages; s++)
		most = run->training.stage_parameters[s] > most ? run->training.stage_parameters[s]
								: most;
	return run->options.overdue_us + (int64_t)(parameter_us * (double)most) +
	       (int64_t)(sums * 1e6 * run->plan->plan->predicted.sync_s * run->unit_s);
}

/* Returns true if the node reports that it waits for a replica's part of the sum. */
static bool awaits_replica(const struct members *members, const struct member *m)
{
	uint16_t awaits = m->beat.awaits;
	const struct member *other =
		awaits && awaits <= members->n ? &members->list[awaits - 1] : NULL;

	return other && other->is_replica &&
	       member_stage(members->run, other) == member_stage(members->run, m);
}

static bool holds_sum(const struct members *members, const struct member *m)
{
	return m->is_replica && !m->sum.is_done && !awaits_replica(members, m);
}

/* The replicas that wait for nobody, and have not reported their sum, hang. If there are none, or
 * if more than half of the replicas seem to hang, the iteration restarts. */
void stall_sums_turn(struct iteration *it)
{
	uint32_t n = 0, replicas = 0;

	if (!stall_look(it) || !stall_for(it, sum_limit_us(it->run)))
		return;
	it->run->steps++;
	for (uint32_t i = 0; i < it->members->n; i++) {
		replicas += it->members->list[i].is_replica;
		n += holds_sum(it->members, &it->members->list[i]);
	}
	if (n == 0 || 2 * n > replicas) {
		note(it->run, NOTE_ALERT, -1, 0, "the sums of it%llu have stalled: it restarts",
		     (unsigned long long)it->run->iteration);
		request_restart(&it->run->requests, "the sums stalled");
		return;
	}
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *m = &it->members->list[i];

		if (!holds_sum(it->members, m))
			continue;
		note(it->run, NOTE_ALERT, m->id, 0,
		     "n%02u waits for nobody and does not report its sum of S%d: it counts as dead",
		     m->id, member_stage(it->run, m));
		members_gone(it->run, m, "does not report its sum");
	}
}

/* ---- every turn ---- */

bool stall_look(struct iteration *it)
{
	if (it->run->now_us < it->detector.look_us)
		return false;
	it->detector.look_us = it->run->now_us + LOOK_US;
	return true;
}

void stall_turn(struct iteration *it)
{
	bool rest, hung;

	if (!stall_look(it))
		return;
	rest = all_rest(it);
	hung = stall_hung(it, 1);
	if ((!rest && !hung) || (hung && !rest && stall_drop_hung(it->members)))
		return;
	it->detector.rounds = 0;
	if (drop_strangers(it->members) || (rest && unswap_one(it)))
		return;
	note(it->run, NOTE_ALERT, -1, 0, "it%llu has stalled: it restarts",
	     (unsigned long long)it->run->iteration);
	request_restart(&it->run->requests, "an iteration stalled");
}
