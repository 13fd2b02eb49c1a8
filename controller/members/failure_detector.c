/* failure_detector.c - finds nodes that have been silent for too long, and removes them.
 *
 * An agent's silence counts from its newest message of any kind: a heartbeat, a report, an
 * acknowledgement. The allowed silence is computed from the agent's round trip and from the recent
 * lateness of heartbeats (heartbeat_timeout.h). Lateness is measured by the agent's own clock,
 * because a message that arrives late may have been lost and sent again.
 *
 * In three cases more than one process is silent:
 *
 * - All agents of a machine are silent: the machine has failed. All its agents are removed
 *   together. Otherwise the work of one dead agent would be rerouted to another dead agent.
 *
 * - All agents of this machine are silent, in a run on one machine: this machine cannot have
 *   failed, so it is overloaded, and the allowed silence is raised.
 *
 * - Most machines are silent: the controller's own link or process is at fault, and the allowed
 *   silence is raised. */
#include "controller/members/failure_detector.h"

#include <stdlib.h>
#include <string.h>

#include "controller/members/members.h"
#include "controller/members/member.h"

enum {
	GATHER_SILENCE_US = 5000000,
	/* Time after a node's return during which its old connections may end */
	LINGER_US = 10000000
};

struct machine {
	uint32_t n_agents; /* agents of this machine */
	uint32_t n_quiet;  /* agents silent for more than half of their allowed silence */
	/* Number of agents that have been silent for more than half of --silence-ms */
	uint32_t n_late;
	/* Usual lateness: at most a quarter of the machine's agents are later than this. */
	int64_t usual_us;
};

/* ---- receiving ---- */

/* Returns the length of "tcp://ADDRESS:PORT" without its port, to compare the addresses of
 * machines. All local sockets belong to one machine. */
static size_t address_size(const char *address)
{
	const char *port = strrchr(address, ':');

	if (strncmp(address, "ipc:", 4) == 0)
		return 4;
	return port ? (size_t)(port - address) : strlen(address);
}

static bool are_together(const struct member *a, const struct member *b)
{
	size_t n = address_size(a->hello.address);

	return strcmp(a->hello.host, b->hello.host) == 0 && n == address_size(b->hello.address) &&
	       strncmp(a->hello.address, b->hello.address, n) == 0;
}

void failure_detector_begin(struct members *members, struct member *m)
{
	m->heard.message_us = m->heard.any_us = members->run->now_us;
	m->heard.late_us = m->heard.gap_us = 0;
	m->heard.rounds.n = 0;
	m->beat.beat = 0;
	m->compute.machine = m->id;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (o != m && o->peer != 0 && o->compute.machine < m->compute.machine &&
		    are_together(o, m))
			m->compute.machine = o->compute.machine;
	}
}

bool failure_detector_hear(struct run *run, struct member *m, const struct msg_heartbeat *h)
{
	int64_t limit_us = run->options.limits.silence_us,
		gap_us = run->now_us - m->heard.message_us, late_us = 0;
	bool first = m->beat.beat == 0;

	m->heard.any_us = run->now_us;
	if (!first && h->beat <= m->beat.beat)
		return false;
	if (run->options.mode.embedded) /* no message is lost within one machine */
		late_us = gap_us;
	else if (!first && is_clock(h->now_us) && h->now_us > m->beat.now_us)
		late_us = timeout_late(h->now_us - m->beat.now_us, h->beat - m->beat.beat);
	if (run->phase != PHASE_GATHERING) {
		m->heard.gap_us = timeout_learn(m->heard.gap_us, gap_us, limit_us);
		m->heard.late_us = timeout_learn(m->heard.late_us, late_us, limit_us);
	}
	m->heard.message_us = run->now_us;
	return true;
}

int64_t failure_detector_farthest_us(const struct members *members)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		int64_t us = timeout_round_trip(&members->list[i].heard.rounds);

		if (member_alive(&members->list[i]) && us > most)
			most = us;
	}
	return most;
}

void failure_detector_hung_up(struct members *members)
{
	members->detector.n_hung_up -= members->detector.n_hung_up < members->detector.connections
					       ? members->detector.n_hung_up
					       : members->detector.connections;
}

/* Returns how many of the `ended` connections may show a death. A node that returns after a silence
 * closes its old connections. These are not counted, because they say nothing about other nodes. */
static uint32_t without_lingering(struct members *members, uint32_t ended)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		uint32_t old = ended < m->heard.lingering_connections
				       ? ended
				       : m->heard.lingering_connections;

		m->heard.lingering_connections -= old;
		ended -= old;
		if (m->state != MEMBER_DEAD && members->run->now_us - m->since_us > LINGER_US)
			m->heard.lingering_connections = 0;
	}
	return ended;
}

void failure_detector_ended(struct members *members, uint32_t ended)
{
	struct failure_detector *d = &members->detector;
	uint32_t unknown = without_lingering(members, ended);

	if (unknown > 0) {
		d->hung_up_us = members->run->now_us;
		d->n_hung_up += unknown;
	} else if (members->run->now_us - d->hung_up_us >
		   members->run->options.limits.silence_us +
			   failure_detector_farthest_us(members)) {
		/* A dead agent would have been found by now, so the ended connections belonged to
		 * a console, or to an agent that has connected again */
		d->n_hung_up = 0;
	}
}

static void hear_hang_ups(struct members *members)
{
	struct post_counters counters;

	post_count(members->run->post, &counters);
	if (counters.peers_up > 0 && counters.link.broken == members->detector.hung_up)
		members->detector.connections = counters.link.connections / counters.peers_up;
	if (members->detector.connections == 0)
		members->detector.connections = 1;
	failure_detector_ended(members,
			       (uint32_t)(counters.link.broken - members->detector.hung_up));
	members->detector.hung_up = counters.link.broken;
}

/* Asks the post (wire/post.h) when m's newest message of any kind arrived. Until m's heartbeats
 * report round trips, uses the round trip of the connection. */
static void hear_of_post(struct run *run, struct member *m)
{
	struct post_peer_info info;

	if (m->peer == 0 || post_peer(run->post, m->peer, &info) != 0)
		return;
	if (info.heard_us > m->heard.any_us)
		m->heard.any_us = info.heard_us;
	if (m->heard.rounds.n == 0 && info.round_trip_us > 0)
		timeout_round(&m->heard.rounds, info.round_trip_us);
}

/* ---- allowed silence ---- */

static bool is_watched(const struct member *m)
{
	return member_alive(m) && m->assigned.is_welcomed;
}

static int64_t quiet_us(const struct run *run, const struct member *m)
{
	return run->now_us -
	       (m->heard.any_us > m->heard.message_us ? m->heard.any_us : m->heard.message_us);
}

/* Returns true if the ended connections may belong to m, because m has sent nothing since they
 * ended. */
static bool may_have_hung_up(const struct members *members, const struct member *m)
{
	return members->detector.n_hung_up > 0 &&
	       members->run->now_us - quiet_us(members->run, m) < members->detector.hung_up_us;
}

/* Returns true if the ended connections must belong to m, because all other nodes have been heard
 * since they ended. */
static bool hung_up(const struct members *members, const struct member *m)
{
	return may_have_hung_up(members, m) &&
	       members->detector.n_silent * members->detector.connections <
		       members->detector.n_hung_up + members->detector.connections;
}

static void count_suspected(struct members *members)
{
	members->detector.n_silent = 0;
	for (uint32_t i = 0; i < members->n; i++)
		members->detector.n_silent += is_watched(&members->list[i]) &&
						 may_have_hung_up(members, &members->list[i]);
}

static int64_t allowed_us(const struct members *members, const struct member *m, int64_t usual_us)
{
	int64_t round_trip = timeout_round_trip(&m->heard.rounds);

	/* While agents gather, a long silence is harmless, because no node waits for another. A
	 * long silence is also likely, because building a stage is heavy work. */
	if (members->run->phase == PHASE_GATHERING)
		return GATHER_SILENCE_US;
	if (m->heard.rounds.n == 0) /* the node's round trip is unknown */
		return TIMEOUT_PATIENCE * members->run->options.limits.silence_us;
	if (hung_up(members, m))
		return timeout_hung_up(m->heard.gap_us, usual_us,
				       members->run->options.limits.silence_us, round_trip);
	return timeout_allowed(m->heard.late_us, usual_us, members->run->options.limits.silence_us,
			       round_trip);
}

struct lateness {
	uint16_t machine;
	/* Lateness measured by the node's clock, and lateness measured by the controller's clock */
	int64_t by_sender_us, by_arrival_us;
};

static int by_machine(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	return (x->machine > y->machine) - (x->machine < y->machine);
}

/* Sets the usual lateness of each machine. If more than a quarter of all machines are late by the
 * controller's clock, the controller itself is late. In that case all machines count as at least
 * as late as the controller. */
static void look_at_lateness(const struct members *members, struct machine *machines)
{
	struct lateness all[MSG_NODES];
	int64_t by_sender_us[MSG_NODES], by_arrival_us[MSG_NODES], of_machines_us[MSG_NODES];
	int64_t controller_us;
	size_t n = 0, n_machines = 0, k;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (is_watched(m))
			all[n++] = (struct lateness){ m->compute.machine, m->heard.late_us,
						      m->heard.gap_us };
	}
	qsort(all, n, sizeof(all[0]), by_machine);
	for (size_t i = 0; i < n; i += k) {
		for (k = 0; i + k < n && all[i + k].machine == all[i].machine; k++) {
			by_sender_us[k] = all[i + k].by_sender_us;
			by_arrival_us[k] = all[i + k].by_arrival_us;
		}
		machines[all[i].machine].usual_us = timeout_usual(by_sender_us, k);
		of_machines_us[n_machines++] = timeout_usual(by_arrival_us, k);
	}
	controller_us = timeout_usual(of_machines_us, n_machines);
	for (size_t i = 0; i < n; i++)
		if (machines[all[i].machine].usual_us < controller_us)
			machines[all[i].machine].usual_us = controller_us;
}

static bool all_quiet(const struct machine *m)
{
	return m->n_agents > 1 && m->n_quiet == m->n_agents;
}

/* Returns true if the controller's own machine is the cause of the silence: it is overloaded, or
 * its link is cut. */
static bool is_our_fault(const struct members *members, const struct machine *machines)
{
	uint32_t n = 0, quiet = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		n += machines[i].n_agents > 0;
		quiet += machines[i].n_agents > 0 && machines[i].n_late == machines[i].n_agents;
	}
	if (members->run->options.mode.embedded && n == 1)
		return quiet == 1;
	return n > 2 && 2 * quiet > n;
}

/* Computes the allowed silence of every node, and counts the silent nodes of each machine. If the
 * controller itself is at fault, allows all nodes a longer silence. */
static void look_at_all(struct members *members, struct machine *machines)
{
	int64_t least = TIMEOUT_PATIENCE * members->run->options.limits.silence_us;

	look_at_lateness(members, machines);
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!is_watched(m))
			continue;
		m->heard.allowed_us = allowed_us(members, m, machines[m->compute.machine].usual_us);
		m->heard.patience_us =
			timeout_allowed(m->heard.late_us, machines[m->compute.machine].usual_us,
					members->run->options.limits.silence_us, 0);
		machines[m->compute.machine].n_agents++;
		machines[m->compute.machine].n_quiet +=
			quiet_us(members->run, m) > m->heard.allowed_us / 2;
		machines[m->compute.machine].n_late +=
			quiet_us(members->run, m) > members->run->options.limits.silence_us / 2;
	}
	if (members->run->phase == PHASE_GATHERING || !is_our_fault(members, machines))
		return;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		m->heard.patience_us = least;
		if (m->heard.allowed_us < least && !hung_up(members, m))
			m->heard.allowed_us = least;
	}
}

/* ---- removal ---- */

static void take_out(struct members *members, struct member *m, const struct machine *machine)
{
	const char *host = m->hello.host;
	bool ended = hung_up(members, m);
	char why[96];

	if (ended)
		failure_detector_hung_up(members);
	else if (members->detector.n_hung_up == 0) /* no connection of m has ended yet */
		m->heard.lingering_connections = members->detector.connections;
	if (ended || !all_quiet(machine))
		snprintf(why, sizeof(why), "%sheartbeat lost for %.2f s", ended ? "hung up, " : "",
			 (double)quiet_us(members->run, m) * 1e-6);
	else
		snprintf(why, sizeof(why), "heartbeat lost for %.2f s, as of all on %.40s",
			 (double)quiet_us(members->run, m) * 1e-6, host);
	member_apply(members->run, m, EVENT_LOST, why);
}

/* Chooses the nodes that have been silent for longer than allowed. If all agents on such a node's
 * machine are silent, chooses all of them. is_lost has an entry for each node. */
static void choose_lost(const struct members *members, const struct machine *machines,
			bool *is_lost)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (!is_watched(m) || quiet_us(members->run, m) <= m->heard.allowed_us)
			continue;
		is_lost[i] = true;
		for (uint32_t k = 0; all_quiet(&machines[m->compute.machine]) &&
				     !hung_up(members, m) && k < members->n;
		     k++)
			is_lost[k] = is_lost[k] ||
				     (is_watched(&members->list[k]) &&
				      members->list[k].compute.machine == m->compute.machine);
	}
}

void failure_detector_check(struct members *members, int64_t slept_us)
{
	struct machine machines[MSG_NODES] = { { .n_agents = 0 } };
	bool is_lost[MSG_NODES] = { false };

	/* If this process was suspended or slow, heartbeats wait unread in its sockets, so
	 * silence proves nothing. */
	for (uint32_t i = 0; i < members->n; i++) {
		hear_of_post(members->run, &members->list[i]);
		members->list[i].heard.message_us += slept_us;
		members->list[i].heard.any_us += slept_us;
	}
	hear_hang_ups(members);
	count_suspected(members);
	look_at_all(members, machines);
	choose_lost(members, machines, is_lost);
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (is_lost[i])
			take_out(members, m, &machines[m->compute.machine]);
		else if (is_watched(m) && quiet_us(members->run, m) > m->heard.allowed_us * 6 / 10)
			member_apply(members->run, m, EVENT_QUIET, "quiet");
	}
}
