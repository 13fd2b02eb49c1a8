/* stall_detector.c - ends an iteration, a sum or a validation that has stalled.
 *
 * An iteration stalls in two ways. In the first, all agents report that they are at rest: no task
 * runs and no message travels, although tasks are left. If slots wait in a circle, one microbatch
 * starts over. Otherwise a message was lost, and the iteration restarts.
 *
 * In the second, some agents report work, but no task ends anywhere. The time limit for such a
 * stall is far beyond the longest task and transfer. If no data arrives within the limit either,
 * the controller assumes that the nodes that report work hang, and treats these nodes as dead.
 * The nodes rejoin once they have loaded their weights. If no node reports work, the iteration
 * restarts.
 * Usually an agent notices by itself that its computing hangs, and exits. Agents are trusted to
 * report their work honestly.
 *
 * The detector measures time as a number of its checks ("looks"), not by the clock. A suspension
 * of this process or of the whole machine therefore does not count as time without progress. */
#include "controller/iteration/stall_detector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "controller/iteration/iteration.h"
#include "controller/iteration/reroute.h"
#include "controller/members/member.h"
#include "controller/network/failed_links.h"
#include "controller/run/journal.h"

enum {
	LOOK_US = 250000,
	ROUNDS = 4,
	MUCH_LONGER = 20,
	/* Heartbeats alone move fewer bytes than this within SHORT_US */
	MUCH_BYTES = 65536,
	SHORT_US = 10000000 /* time within which MUCH_BYTES must arrive */
};

/* ---- what is awaited ---- */

static void add_name(char *out, size_t room, const char *format, int a, int b)
	__attribute__((format(printf, 3, 0)));

static void add_name(char *out, size_t room, const char *format, int a, int b)
{
	size_t n = strlen(out);

	snprintf(out + n, room - n, "%s", n > 0 ? ", " : "");
	n = strlen(out);
	snprintf(out + n, room - n, format, a, b);
}

void stall_name_awaited(const struct members *members, char *out, size_t room)
{
	int left = 3;

	out[0] = 0;
	for (uint32_t i = 0; i < members->n; i++)
		for (uint32_t k = 0; left > 0 && k < members->list[i].stuck.n; k++, left--)
			add_name(out, room, "n%02d > n%02d transfers nothing", (int)i,
				 members->list[i].stuck.links[k].to);
	for (uint32_t i = 0; left > 0 && i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (!member_is_replica(m) || m->beat.awaits == 0)
			continue;
		add_name(out, room, "n%02d waits for n%02d", (int)i, m->beat.awaits - 1);
		left--;
	}
	for (uint32_t i = 0; left > 0 && i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (!member_is_replica(m) ||
		    (!m->beat.running && !m->beat.queued && !m->beat.in_flight))
			continue;
		add_name(out, room, "n%02d reports %d waiting tasks", (int)i, (int)m->beat.queued);
		left--;
	}
	if (!out[0])
		snprintf(out, room, "no node reports work");
}

/* ---- all are at rest ---- */

/* Drops replicas that hold the weights of another iteration, because they cannot take part. A
 * dropped node fetches the correct weights when it joins again. */
static bool drop_strangers(struct members *members)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n && members->run->phase == PHASE_COMPUTING; i++) {
		struct member *m = &members->list[i];

		if (!member_is_replica(m) || m->beat.committed == members->run->committed)
			continue;
		member_apply(members->run, m, EVENT_LOST, "holds the weights of another iteration");
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
	it->run->progress++;
	note(it->run, NOTE_WARNING, -1, 0,
	     "slots waited in a circle: m%02lld restarts with its stages in order", (long long)id);
	return true;
}

static bool at_rest(const struct members *members, const struct member *m)
{
	const struct msg_heartbeat *b = &m->beat;

	if (member_is_replica(m) && members->run->now_us - m->heard.message_us >
					    LOOK_US + timeout_round_trip(&m->heard.rounds) / 2)
		return false; /* the node's last heartbeat may be outdated */
	if (member_is_replica(m) && link_failures_doubted(members, m))
		return false; /* the node may be waiting for a link that is cut */
	/* The commit may still be on its way to the node, or the node may still be applying it. */
	if (member_is_replica(m) && b->committed != members->run->committed)
		return !b->running && post_idle(members->run->post, m->peer);
	return !member_is_replica(m) ||
	       (!b->running && b->in_flight == 0 && (b->queued == 0 || b->blocked) &&
		b->iteration == members->run->iteration);
}

/* Returns true if no task ran and no message travelled at several successive looks. */
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
	struct received_bytes *f = &m->heard.received;
	uint64_t bytes = m->beat.received_bytes;
	bool much = f->since_us && bytes > f->bytes && bytes - f->bytes > MUCH_BYTES;

	if (f->since_us && !much && run->now_us - f->since_us < SHORT_US)
		return;
	if (much)
		f->last_burst_us = run->now_us;
	f->bytes = bytes;
	f->since_us = run->now_us;
}

static bool data_moves(const struct iteration *it)
{
	for (uint32_t i = 0; i < it->members->n; i++)
		if (it->members->list[i].heard.received.last_burst_us > it->detector.hung_us)
			return true;
	return false;
}

/* Returns the longest task plus the longest link delay, in real seconds. */
static double longest_s(const struct members *members)
{
	double task = 0, measured = 0, delay = 0, slower = 1;
	uint32_t n = members->n;

	for (uint32_t i = 0; i < n; i++) {
		const struct cluster *c = members->run->cluster;
		const struct member *m = &members->list[i];
		int stage = member_stage(members->run, m);

		if (!member_is_replica(m))
			continue;
		for (enum task_kind kind = TASK_FORWARD; kind <= TASK_BACKWARD; kind++)
			task = fmax(task, cluster_task_s(c, (int)i, stage, kind));
		measured = fmax(measured, fmax(m->compute.forward_s,
					       fmax(m->compute.backward_s, m->compute.loss_s)));
		for (uint32_t to = 0; to < n; to++)
			if (member_is_replica(&members->list[to]) && to != i)
				delay = fmax(delay, members->run->cluster->delay_s[i * n + to]);
	}
	for (uint32_t i = 0; i < members->run->faults.n; i++) {
		const struct fault *f = &members->run->faults.list[i];

		if (f->active && fault_describe(f->kind)->factor == FACTOR_TIMES)
			slower = fmax(slower, (double)f->factor);
		else if (f->active && fault_describe(f->kind)->factor == FACTOR_PROBABILITY)
			slower = fmax(slower, 1 / (1 - (double)f->factor));
	}
	return fmax((task + delay) * members->run->unit_s, measured) * slower;
}

/* Returns the time limit of work on a whole stage, such as copying, adding up or hashing a
 * gradient, or making an optimizer step. */
static int64_t stage_limit_us(const struct run *run)
{
	static const double parameter_us = 0.05;
	uint64_t most = 0;

	for (int s = 0; s < run->cluster->n_stages; s++)
		most = run->training.stage_parameters[s] > most ? run->training.stage_parameters[s]
								: most;
	return run->options.limits.overdue_us + (int64_t)(parameter_us * (double)most);
}

bool stall_for(struct iteration *it, int64_t limit_us)
{
	struct stall_detector *s = &it->detector;

	if (s->progress != it->run->progress || data_moves(it)) {
		s->progress = it->run->progress;
		s->hung = 0;
		s->hung_us = it->run->now_us;
	}
	s->hung++;
	return s->hung * (int64_t)LOOK_US > limit_us;
}

bool stall_hung(struct iteration *it, uint32_t tasks)
{
	int64_t limit_us = stage_limit_us(it->run);

	return stall_for(it, limit_us) &&
	       (double)it->detector.hung * LOOK_US >
		       (double)limit_us + 1e6 * MUCH_LONGER * tasks * longest_s(it->members);
}

/* Checks the node's heartbeat for one of three signs that the node hangs. rank: which sign, from
 * the most certain, 0, to the least certain, 2. Returns the sign as a text for the journal; NULL:
 * the heartbeat does not have this sign. */
static const char *hung_in(const struct member *m, int rank)
{
	const struct msg_heartbeat *b = &m->beat;

	switch (rank) {
	case 0:
		return b->running ? "does not end a task" : NULL;
	case 1:
		return b->queued && !b->blocked ? "does not start a task" : NULL;
	default:
		return b->in_flight ? "does not send a tensor" : NULL;
	}
}

static uint32_t count_hung(const struct members *members, int rank, uint32_t *replicas)
{
	uint32_t n = 0;

	*replicas = 0;
	for (uint32_t i = 0; i < members->n; i++) {
		*replicas += member_is_replica(&members->list[i]);
		n += member_is_replica(&members->list[i]) && hung_in(&members->list[i], rank);
	}
	return n;
}

/* Drops the hanging nodes, unless they are more than half of the replicas. In that case the
 * controller's machine or the network is probably slow, and all nodes get the full time again. */
bool stall_drop_hanging(struct members *members)
{
	uint32_t n = 0, replicas = 0;
	int rank = -1;

	/* A removal counts as progress, so that the time limit of the remaining nodes starts
	 * again */
	members->run->progress++;
	while (n == 0 && rank < 2)
		n = count_hung(members, ++rank, &replicas);
	for (uint32_t i = 0; 2 * n <= replicas && i < members->n; i++) {
		struct member *m = &members->list[i];
		const char *why = member_is_replica(m) ? hung_in(m, rank) : NULL;

		if (!why)
			continue;
		note(members->run, NOTE_ALERT, m->id, 0,
		     "no task ends any more, and n%02u reports work: it counts as dead", m->id);
		member_apply(members->run, m, EVENT_LOST, why);
	}
	return n > 0;
}

/* ---- a sum ---- */

/* Returns the time limit of a sum: its transfers, and the time to copy, add up and hash a large
 * gradient. */
static int64_t sum_limit_us(const struct run *run)
{
	static const double sums = 6;

	return stage_limit_us(run) +
	       (int64_t)(sums * 1e6 * run->plan->plan->predicted.sync_s * run->unit_s);
}

/* Returns true if the node reports that it waits for a replica's part of the sum. */
static bool awaits_replica(const struct members *members, const struct member *m)
{
	uint16_t awaits = m->beat.awaits;
	const struct member *other =
		awaits && awaits <= members->n ? &members->list[awaits - 1] : NULL;

	return other && member_is_replica(other) &&
	       member_stage(members->run, other) == member_stage(members->run, m);
}

static bool holds_sum(const struct members *members, const struct member *m)
{
	return member_is_replica(m) && !m->sum.is_done && !awaits_replica(members, m);
}

/* Drops each replica that hangs: it has not reported its sum, and waits for no other node. If no
 * replica hangs, or if more than half of the replicas seem to hang, the iteration restarts. */
void stall_sums_turn(struct iteration *it)
{
	uint32_t n = 0, replicas = 0;
	char awaited[120];

	if (!stall_look(it) || !stall_for(it, sum_limit_us(it->run)))
		return;
	it->run->progress++;
	for (uint32_t i = 0; i < it->members->n; i++) {
		replicas += member_is_replica(&it->members->list[i]);
		n += holds_sum(it->members, &it->members->list[i]);
	}
	if (n == 0 || 2 * n > replicas) {
		stall_name_awaited(it->members, awaited, sizeof(awaited));
		note(it->run, NOTE_ALERT, -1, 0,
		     "the sums of it%llu have stalled: it restarts (%s)",
		     (unsigned long long)it->run->iteration, awaited);
		request_restart(&it->run->requests, "the sums stalled");
		return;
	}
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *m = &it->members->list[i];

		if (!holds_sum(it->members, m))
			continue;
		note(it->run, NOTE_ALERT, m->id, 0,
		     "n%02u waits for no replica and does not report its sum of S%d: it counts as "
		     "dead",
		     m->id, member_stage(it->run, m));
		member_apply(it->run, m, EVENT_LOST, "does not report its sum");
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
	char awaited[120];

	if (!stall_look(it))
		return;
	rest = all_rest(it);
	hung = stall_hung(it, 1);
	if ((!rest && !hung) || (hung && !rest && stall_drop_hanging(it->members)))
		return;
	it->detector.rounds = 0;
	if (drop_strangers(it->members) || (rest && unswap_one(it)))
		return;
	stall_name_awaited(it->members, awaited, sizeof(awaited));
	note(it->run, NOTE_ALERT, -1, 0, "it%llu has stalled: it restarts (%s)",
	     (unsigned long long)it->run->iteration, awaited);
	request_restart(&it->run->requests, "an iteration stalled");
}
