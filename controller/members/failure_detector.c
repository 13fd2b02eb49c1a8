/* failure_detector.c - who is not heard any more, and is taken out.
 *
 * An agent is quiet since anything of it came last: a word, a report, an acknowledgement. How long it may be
 * follows from its round trip, and from how late words were said on its machine lately, or heard from many
 * (heartbeat_timeout.h): by its own clock, as what comes late may have been lost and sent again. When all agents
 * of a machine are quiet together it is the machine: they go together, or what one did would be given to the
 * next of them. This very machine cannot have vanished: when all that it runs are quiet, it has too much to
 * do. And when most machines are quiet at once it is this one's own link, or this process was held up.
 */
#include "controller/members/failure_detector.h"

#include <stdlib.h>
#include <string.h>

#include "controller/members/members.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"

enum {
	GATHER_SILENCE_US = 5000000,
	LINGER_US = 10000000 /* after a node is back: its old connections have ended by then, or go on */
};

struct machine {
	uint32_t here;  /* of its agents */
	uint32_t quiet; /* for more than half of what they may be, */
	uint32_t late;  /* or of what those that are near may */
	int64_t usual_us;     /* a quarter of them spoke later than this lately, no more */
};

/* ---- hearing ---- */

/* "tcp://ADDRESS:PORT" without its port. Local sockets are all on one machine. */
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
	int64_t limit_us = run->options.silence_us, gap_us = run->now_us - m->heard.message_us,
		late_us = 0;
	bool first = m->beat.beat == 0;

	m->heard.any_us = run->now_us;
	if (!first && h->beat <= m->beat.beat)
		return false;
	if (run->options.embedded) /* on this very machine nothing is lost on the way */
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

/* Whoever vanished and is back ends its old connections then: that says nothing of those at work. How many of those that
 * have ended are nobody's of these. */
static uint32_t without_lingering(struct members *members, uint32_t ended)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		uint32_t old = ended < m->heard.lingering_connections
				       ? ended
				       : m->heard.lingering_connections;

		m->heard.lingering_connections -= old;
		ended -= old;
		if (m->state != NODE_DEAD && members->run->now_us - m->since_us > LINGER_US)
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
		   members->run->options.silence_us + failure_detector_farthest_us(members)) {
		d->n_hung_up = 0; /* a console's, or it is back */
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

/* What came by other messages than words; and a round trip until words tell one. */
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

/* ---- what each may ---- */

static bool is_watched(const struct member *m)
{
	return member_alive(m) && m->assigned.is_welcomed;
}

static int64_t quiet_us(const struct run *run, const struct member *m)
{
	return run->now_us -
	       (m->heard.any_us > m->heard.message_us ? m->heard.any_us : m->heard.message_us);
}

/* Whether m may be one whose connections have ended. */
static bool may_have_hung_up(const struct members *members, const struct member *m)
{
	return members->detector.n_hung_up > 0 &&
	       members->run->now_us - quiet_us(members->run, m) < members->detector.hung_up_us;
}

/* Whether m must be one: all others have been heard since. */
static bool hung_up(const struct members *members, const struct member *m)
{
	return may_have_hung_up(members, m) &&
	       members->detector.n_suspected * members->detector.connections <
		       members->detector.n_hung_up + members->detector.connections;
}

static void count_suspected(struct members *members)
{
	members->detector.n_suspected = 0;
	for (uint32_t i = 0; i < members->n; i++)
		members->detector.n_suspected += is_watched(&members->list[i]) &&
						 may_have_hung_up(members, &members->list[i]);
}

static int64_t allowed_us(const struct members *members, const struct member *m, int64_t usual_us)
{
	int64_t round_trip = timeout_round_trip(&m->heard.rounds);

	/* Nothing waits for anyone while agents gather, and starting up is heavy work. */
	if (members->run->phase == PHASE_GATHERING)
		return GATHER_SILENCE_US;
	if (m->heard.rounds.n == 0) /* how far it is nobody knows */
		return TIMEOUT_PATIENCE * members->run->options.silence_us;
	if (hung_up(members, m))
		return timeout_hung_up(m->heard.gap_us, usual_us, members->run->options.silence_us,
				       round_trip);
	return timeout_allowed(m->heard.late_us, usual_us, members->run->options.silence_us,
			       round_trip);
}

struct lateness {
	uint16_t machine;
	int64_t said_us, heard_us;
};

static int by_machine(const void *a, const void *b)
{
	const struct lateness *x = a, *y = b;

	return (x->machine > y->machine) - (x->machine < y->machine);
}

/* How late each machine's agents usually speak. What is heard late from a quarter of all machines is late here. */
static void look_at_lateness(const struct members *members, struct machine *machines)
{
	struct lateness all[MSG_NODES];
	int64_t said_us[MSG_NODES], heard_us[MSG_NODES], of_machines_us[MSG_NODES], here_us;
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
			said_us[k] = all[i + k].said_us;
			heard_us[k] = all[i + k].heard_us;
		}
		machines[all[i].machine].usual_us = timeout_usual(said_us, k);
		of_machines_us[n_machines++] = timeout_usual(heard_us, k);
	}
	here_us = timeout_usual(of_machines_us, n_machines);
	for (size_t i = 0; i < n; i++)
		if (machines[all[i].machine].usual_us < here_us)
			machines[all[i].machine].usual_us = here_us;
}

static bool all_quiet(const struct machine *m)
{
	return m->here > 1 && m->quiet == m->here;
}

/* Too much to do here, or a link of this machine that is cut: that says nothing of the agents. */
static bool is_our_fault(const struct members *members, const struct machine *machines)
{
	uint32_t n = 0, quiet = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		n += machines[i].here > 0;
		quiet += machines[i].here > 0 && machines[i].late == machines[i].here;
	}
	if (members->run->options.embedded && n == 1)
		return quiet == 1;
	return n > 2 && 2 * quiet > n;
}

static void look_at_all(struct members *members, struct machine *machines)
{
	int64_t least = TIMEOUT_PATIENCE * members->run->options.silence_us;

	look_at_lateness(members, machines);
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!is_watched(m))
			continue;
		m->heard.allowed_us = allowed_us(members, m, machines[m->compute.machine].usual_us);
		m->heard.patience_us =
			timeout_allowed(m->heard.late_us, machines[m->compute.machine].usual_us,
					members->run->options.silence_us, 0);
		machines[m->compute.machine].here++;
		machines[m->compute.machine].quiet +=
			quiet_us(members->run, m) > m->heard.allowed_us / 2;
		machines[m->compute.machine].late +=
			quiet_us(members->run, m) > members->run->options.silence_us / 2;
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

/* ---- who goes ---- */

static void take_out(struct members *members, struct member *m, const struct machine *machine)
{
	const char *host = m->hello.host;
	bool ended = hung_up(members, m);
	char why[96];

	if (ended)
		failure_detector_hung_up(members);
	else if (members->detector.n_hung_up == 0) /* else its own may have ended already */
		m->heard.lingering_connections = members->detector.connections;
	if (ended || !all_quiet(machine))
		snprintf(why, sizeof(why), "%sheartbeat lost for %.2f s", ended ? "hung up, " : "",
			 (double)quiet_us(members->run, m) * 1e-6);
	else
		snprintf(why, sizeof(why), "heartbeat lost for %.2f s, as of all on %.40s",
			 (double)quiet_us(members->run, m) * 1e-6, host);
	members_gone(members->run, m, why);
}

/* With one whose time is over all go that are on its machine, where they are quiet too. */
static void choose_who_goes(struct members *members, const struct machine *machines)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!is_watched(m) || quiet_us(members->run, m) <= m->heard.allowed_us)
			continue;
		m->is_leaving = true;
		for (uint32_t k = 0; all_quiet(&machines[m->compute.machine]) &&
				     !hung_up(members, m) && k < members->n;
		     k++)
			members->list[k].is_leaving =
				members->list[k].is_leaving ||
				(is_watched(&members->list[k]) &&
				 members->list[k].compute.machine == m->compute.machine);
	}
}

void failure_detector_check(struct members *members, int64_t slept_us)
{
	struct machine machines[MSG_NODES] = { { .here = 0 } };

	/* If we were the ones asleep, silence proves nothing: the beats wait in our socket. */
	for (uint32_t i = 0; i < members->n; i++) {
		hear_of_post(members->run, &members->list[i]);
		members->list[i].heard.message_us += slept_us;
		members->list[i].heard.any_us += slept_us;
	}
	hear_hang_ups(members);
	count_suspected(members);
	look_at_all(members, machines);
	choose_who_goes(members, machines);
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->is_leaving)
			take_out(members, m, &machines[m->compute.machine]);
		else if (is_watched(m) && m->state == NODE_LIVE &&
			 quiet_us(members->run, m) > m->heard.allowed_us * 6 / 10)
			members_set(members->run, m, NODE_SUSPECT, "quiet");
	}
	for (uint32_t i = 0; i < members->n; i++)
		members->list[i].is_leaving = false;
}
