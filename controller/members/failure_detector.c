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

#include "controller/controller.h"
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

void failure_detector_begin(struct controller *c, struct member *m)
{
	m->heard_us = m->lived_us = c->now_us;
	m->late_us = m->gap_us = 0;
	m->rounds.n = 0;
	m->beat.beat = 0;
	m->machine = m->id;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *o = &c->members[i];

		if (o != m && o->peer != 0 && o->machine < m->machine && are_together(o, m))
			m->machine = o->machine;
	}
}

bool failure_detector_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	int64_t limit_us = c->options.silence_us, gap_us = c->now_us - m->heard_us, late_us = 0;
	bool first = m->beat.beat == 0;

	m->lived_us = c->now_us;
	if (!first && h->beat <= m->beat.beat)
		return false;
	if (c->options.embedded) /* on this very machine nothing is lost on the way */
		late_us = gap_us;
	else if (!first && is_clock(h->now_us) && h->now_us > m->beat.now_us)
		late_us = timeout_late(h->now_us - m->beat.now_us, h->beat - m->beat.beat);
	if (c->phase != PHASE_GATHERING) {
		m->gap_us = timeout_learn(m->gap_us, gap_us, limit_us);
		m->late_us = timeout_learn(m->late_us, late_us, limit_us);
	}
	m->heard_us = c->now_us;
	return true;
}

int64_t failure_detector_farthest_us(const struct controller *c)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		int64_t us = timeout_round_trip(&c->members[i].rounds);

		if (member_alive(&c->members[i]) && us > most)
			most = us;
	}
	return most;
}

void failure_detector_hung_up(struct controller *c)
{
	c->detector.n_hung_up -= c->detector.n_hung_up < c->detector.connections ? c->detector.n_hung_up : c->detector.connections;
}

/* Whoever vanished and is back ends its old connections then: that says nothing of those at work. How many of those that
 * have ended are nobody's of these. */
static uint32_t without_lingering(struct controller *c, uint32_t ended)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		uint32_t old = ended < m->lingering ? ended : m->lingering;

		m->lingering -= old;
		ended -= old;
		if (m->state != NODE_DEAD && c->now_us - m->since_us > LINGER_US)
			m->lingering = 0;
	}
	return ended;
}

void failure_detector_ended(struct controller *c, uint32_t ended)
{
	struct failure_detector *d = &c->detector;
	uint32_t unknown = without_lingering(c, ended);

	if (unknown > 0) {
		d->hung_up_us = c->now_us;
		d->n_hung_up += unknown;
	} else if (c->now_us - d->hung_up_us > c->options.silence_us + failure_detector_farthest_us(c)) {
		d->n_hung_up = 0; /* a console's, or it is back */
	}
}

static void hear_hang_ups(struct controller *c)
{
	struct post_counters counters;

	post_count(c->post, &counters);
	if (counters.peers_up > 0 && counters.link.broken == c->detector.hung_up)
		c->detector.connections = counters.link.connections / counters.peers_up;
	if (c->detector.connections == 0)
		c->detector.connections = 1;
	failure_detector_ended(c, (uint32_t)(counters.link.broken - c->detector.hung_up));
	c->detector.hung_up = counters.link.broken;
}

/* What came by other messages than words; and a round trip until words tell one. */
static void hear_of_post(struct controller *c, struct member *m)
{
	struct post_peer_info info;

	if (m->peer == 0 || post_peer(c->post, m->peer, &info) != 0)
		return;
	if (info.heard_us > m->lived_us)
		m->lived_us = info.heard_us;
	if (m->rounds.n == 0 && info.round_trip_us > 0)
		timeout_round(&m->rounds, info.round_trip_us);
}

/* ---- what each may ---- */

static bool is_watched(const struct member *m)
{
	return member_alive(m) && m->welcomed;
}

static int64_t quiet_us(const struct controller *c, const struct member *m)
{
	return c->now_us - (m->lived_us > m->heard_us ? m->lived_us : m->heard_us);
}

/* Whether m may be one whose connections have ended. */
static bool may_have_hung_up(const struct controller *c, const struct member *m)
{
	return c->detector.n_hung_up > 0 && c->now_us - quiet_us(c, m) < c->detector.hung_up_us;
}

/* Whether m must be one: all others have been heard since. */
static bool hung_up(const struct controller *c, const struct member *m)
{
	return may_have_hung_up(c, m) && c->detector.n_suspected * c->detector.connections < c->detector.n_hung_up + c->detector.connections;
}

static void count_suspected(struct controller *c)
{
	c->detector.n_suspected = 0;
	for (uint32_t i = 0; i < c->n_members; i++)
		c->detector.n_suspected += is_watched(&c->members[i]) && may_have_hung_up(c, &c->members[i]);
}

static int64_t allowed_us(const struct controller *c, const struct member *m, int64_t usual_us)
{
	int64_t round_trip = timeout_round_trip(&m->rounds);

	/* Nothing waits for anyone while agents gather, and starting up is heavy work. */
	if (c->phase == PHASE_GATHERING)
		return GATHER_SILENCE_US;
	if (m->rounds.n == 0) /* how far it is nobody knows */
		return TIMEOUT_PATIENCE * c->options.silence_us;
	if (hung_up(c, m))
		return timeout_hung_up(m->gap_us, usual_us, c->options.silence_us, round_trip);
	return timeout_allowed(m->late_us, usual_us, c->options.silence_us, round_trip);
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
static void look_at_lateness(const struct controller *c, struct machine *machines)
{
	struct lateness all[MSG_NODES];
	int64_t said_us[MSG_NODES], heard_us[MSG_NODES], of_machines_us[MSG_NODES], here_us;
	size_t n = 0, n_machines = 0, k;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (is_watched(m))
			all[n++] = (struct lateness){ m->machine, m->late_us, m->gap_us };
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
static bool is_our_fault(const struct controller *c, const struct machine *machines)
{
	uint32_t n = 0, quiet = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		n += machines[i].here > 0;
		quiet += machines[i].here > 0 && machines[i].late == machines[i].here;
	}
	if (c->options.embedded && n == 1)
		return quiet == 1;
	return n > 2 && 2 * quiet > n;
}

static void look_at_all(struct controller *c, struct machine *machines)
{
	int64_t least = TIMEOUT_PATIENCE * c->options.silence_us;

	look_at_lateness(c, machines);
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!is_watched(m))
			continue;
		m->allowed_us = allowed_us(c, m, machines[m->machine].usual_us);
		m->patience_us = timeout_allowed(m->late_us, machines[m->machine].usual_us,
						 c->options.silence_us, 0);
		machines[m->machine].here++;
		machines[m->machine].quiet += quiet_us(c, m) > m->allowed_us / 2;
		machines[m->machine].late += quiet_us(c, m) > c->options.silence_us / 2;
	}
	if (c->phase == PHASE_GATHERING || !is_our_fault(c, machines))
		return;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->patience_us = least;
		if (m->allowed_us < least && !hung_up(c, m))
			m->allowed_us = least;
	}
}

/* ---- who goes ---- */

static void take_out(struct controller *c, struct member *m, const struct machine *machine)
{
	const char *host = m->hello.host;
	bool ended = hung_up(c, m);
	char why[96];

	if (ended)
		failure_detector_hung_up(c);
	else if (c->detector.n_hung_up == 0) /* else its own may have ended already */
		m->lingering = c->detector.connections;
	if (ended || !all_quiet(machine))
		snprintf(why, sizeof(why), "%sheartbeat lost for %.2f s", ended ? "hung up, " : "",
			 (double)quiet_us(c, m) * 1e-6);
	else
		snprintf(why, sizeof(why), "heartbeat lost for %.2f s, as of all on %.40s",
			 (double)quiet_us(c, m) * 1e-6, host);
	members_gone(c, m, why);
}

/* With one whose time is over all go that are on its machine, where they are quiet too. */
static void choose_who_goes(struct controller *c, const struct machine *machines)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!is_watched(m) || quiet_us(c, m) <= m->allowed_us)
			continue;
		m->going = true;
		for (uint32_t k = 0; all_quiet(&machines[m->machine]) && !hung_up(c, m) && k < c->n_members; k++)
			c->members[k].going = c->members[k].going ||
					      (is_watched(&c->members[k]) && c->members[k].machine == m->machine);
	}
}

void failure_detector_check(struct controller *c, int64_t slept_us)
{
	struct machine machines[MSG_NODES] = { { .here = 0 } };

	/* If we were the ones asleep, silence proves nothing: the beats wait in our socket. */
	for (uint32_t i = 0; i < c->n_members; i++) {
		hear_of_post(c, &c->members[i]);
		c->members[i].heard_us += slept_us;
		c->members[i].lived_us += slept_us;
	}
	hear_hang_ups(c);
	count_suspected(c);
	look_at_all(c, machines);
	choose_who_goes(c, machines);
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->going)
			take_out(c, m, &machines[m->machine]);
		else if (is_watched(m) && m->state == NODE_LIVE && quiet_us(c, m) > m->allowed_us * 6 / 10)
			members_set(c, m, NODE_SUSPECT, "quiet");
	}
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].going = false;
}
