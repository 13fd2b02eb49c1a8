/* measuring.c - measures every link before the first plan, and the links of nodes that join later.
 *
 * The planner needs the delay between any two nodes, which agents can only find out by sending
 * data. Agents first measure all latencies at the same time, because probes are small. Bandwidths
 * follow in rounds of disjoint pairs, so that each node takes part in one measurement at a time.
 * Both directions of a pair are measured at once.
 *
 * Measuring a pair's bandwidth takes some round trips, so pairs with similar latencies share a
 * round. Each round goes through the remaining pairs, from the most distant to the nearest, and
 * takes every pair whose nodes have no partner in this round yet. The round ends when all of its
 * nodes have answered. If all rounds together would take longer than ROUNDS_US, each round is
 * shortened. If they cannot be shortened enough, evenly spaced rounds are omitted, and the links of
 * these rounds are estimated (link_table.h).
 *
 * The links of a node that joins later are measured one after another during the training. */
#include "controller/network/measuring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/link_table.h"
#include "controller/network/observed_links.h"
#include "controller/run/journal.h"

enum {
	LATENCIES_US = 1800000,      /* time in which all latencies are probed */
	LATENCIES_MORE_US = 1500000, /* additional time for the answers to the probes */
	/* Time for all rounds together in a cluster of up to SMALL nodes */
	ROUNDS_US = 24000000,
	ROUNDS_MANY_US = 52000000, /* time for all rounds together in a larger cluster */
	SMALL = 32,
	ROUND_LEAST_MS = 200,
	/* Number of round trips that measuring a pair's bandwidth takes. With bulk data this number
	 * is high, because the rate of the data rises slowly. If the agents answer trains of
	 * packets (agent/network/packet_trains.h), three round trips are enough. */
	ROUND_TRIPS = 9,
	/* Time to wait for an answer after the round's own time. Connecting is included. */
	GRACE_US = 5000000,
	LOG_EVERY_US = 5000000,
	JOIN_MS = 600 /* time to measure each link of a node that joins later */
};
/* nodes whose latency is below this number of seconds are in one place */
static const double near_s = 0.003;

struct meeting {
	uint16_t a, b;
	float latency_s;
};

/* The measurement in progress. */
struct measuring {
	enum { LATENCIES, ROUNDS, OVER } step;
	uint32_t n;                /* number of nodes that take part */
	/* pairs of all rounds; the pairs of round r begin at index starts[r] */
	struct meeting *pairs;
	uint32_t *starts;          /* array of n_rounds + 1 */
	uint32_t n_rounds;
	/* Number of rounds for which there is time; index of the current round */
	uint32_t n_kept, round;
	double time_factor;        /* factor by which rounds are shortened: 1 or less */
	uint64_t order;            /* number of the newest MSG_MEASURE */
	int64_t began_us, until_us;
	int64_t logged_us;
	int64_t rounds_us;         /* start of the first round */
	int64_t round_us;          /* start of the current round */
	uint32_t n_reported;       /* number of nodes that have reported their latencies */
	bool has_latencies[MSG_NODES];
	/* Partner of each node in this round. MSG_NOBODY: the node has answered, or has no
	 * partner. */
	uint16_t partner[MSG_NODES];
	/* A node that joined later, and the first node to try as its next partner */
	int joiner; /* -1: no node joins */
	uint32_t next;
};

static void order_measure(struct members *members, uint16_t from, uint16_t to, uint32_t most_ms)
{
	struct msg m = { .type = MSG_MEASURE };

	m.u.measure = (struct msg_measure){ ++members->measuring->order, to, most_ms };
	member_send(members->run, &members->list[from], &m);
}

bool measuring_wanted(const struct run *run)
{
	return run->options.cluster.time_scale == 0 && !run->options.mode.embedded;
}

static struct measuring *have_measured(struct members *members)
{
	if (!members->measuring) {
		members->measuring = alloc_new(sizeof(*members->measuring));
		members->measuring->joiner = -1;
	}
	return members->measuring;
}

/* ---- rounds ---- */

static void forget_rounds(struct measuring *w)
{
	free(w->pairs);
	free(w->starts);
	w->pairs = NULL;
	w->starts = NULL;
	w->n_rounds = 0;
}

void measuring_begin(struct members *members)
{
	struct measuring *w = have_measured(members);

	forget_rounds(w);
	w->n = 0;
	w->step = LATENCIES;
	w->began_us = members->run->now_us;
	w->until_us = members->run->now_us + LATENCIES_US + LATENCIES_MORE_US;
	w->n_reported = 0;
	memset(w->has_latencies, 0, sizeof(w->has_latencies));
	for (uint16_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) && members->list[i].assigned.is_welcomed) {
			w->n++;
			order_measure(members, i, MSG_NOBODY, LATENCIES_US / 1000);
		}
	note(members->run, NOTE_EVENT, -1, 0, "measuring %u links before anything is planned",
	     w->n * (w->n - 1));
}

static int is_farther(const void *x, const void *y)
{
	float a = ((const struct meeting *)x)->latency_s,
	      b = ((const struct meeting *)y)->latency_s;

	return (a < b) - (a > b);
}

/* Lists all pairs, the most distant first, and returns their number. The caller frees the pairs. */
static uint32_t list_pairs(const struct members *members, struct meeting **out)
{
	struct meeting *pairs = alloc_array((size_t)members->n * members->n / 2, sizeof(*pairs));
	uint32_t n = 0;

	for (uint16_t a = 0; a < members->n; a++)
		for (uint16_t b = (uint16_t)(a + 1); b < members->n; b++) {
			const struct link_seen *there = link_table_at(members->links, a, b),
					       *back = link_table_at(members->links, b, a);

			if (member_alive(&members->list[a]) && member_alive(&members->list[b]))
				pairs[n++] = (struct meeting){
					a, b, fmaxf(there->latency_s, back->latency_s)
				};
		}
	qsort(pairs, n, sizeof(*pairs), is_farther);
	*out = pairs;
	return n;
}

/* Divides the pairs into rounds. Each round goes through the remaining pairs in order, and takes
 * every pair whose nodes have no partner in this round yet. */
static void deal_rounds(struct measuring *w, struct meeting *left, uint32_t n)
{
	bool busy[MSG_NODES];
	uint32_t at = 0;

	w->pairs = alloc_array(n, sizeof(*w->pairs));
	w->starts = alloc_array((size_t)n + 1, sizeof(*w->starts));
	while (n > 0) {
		uint32_t kept = 0;

		memset(busy, 0, sizeof(busy));
		w->starts[w->n_rounds++] = at;
		for (uint32_t i = 0; i < n; i++) {
			struct meeting p = left[i];

			if (busy[p.a] || busy[p.b]) {
				left[kept++] = p;
				continue;
			}
			busy[p.a] = busy[p.b] = true;
			w->pairs[at++] = p;
		}
		n = kept;
	}
	w->starts[w->n_rounds] = at;
}

/* Returns the milliseconds that measuring this pair should take if there is enough time. */
static double wanted_ms(const struct meeting *p)
{
	return ROUND_LEAST_MS + ROUND_TRIPS * 2e3 * (double)p->latency_s;
}

/* Shortens the rounds, or omits some, if all rounds would take too long. */
static void fit_rounds(struct measuring *w)
{
	double most_ms = 1e-3 * (w->n > SMALL ? ROUNDS_MANY_US : ROUNDS_US), total_ms = 0;

	for (uint32_t r = 0; r < w->n_rounds; r++)
		total_ms += wanted_ms(&w->pairs[w->starts[r]]);
	w->time_factor = total_ms > most_ms ? most_ms / total_ms : 1;
	w->n_kept = w->n_rounds;
	if (w->time_factor * total_ms / w->n_rounds < ROUND_LEAST_MS) {
		w->n_kept = (uint32_t)(most_ms / ROUND_LEAST_MS);
		w->n_kept = w->n_kept < w->n_rounds ? w->n_kept : w->n_rounds;
		w->time_factor = fmin(1, w->time_factor * w->n_rounds / w->n_kept);
	}
}

/* Writes a round to the log but not to the journal, which only reports the beginning and the end of
 * the measurement. */
static void log_round(struct members *members)
{
	uint32_t now, all;
	double left = measuring_round(members, &now, &all);

	if (members->run->now_us < members->measuring->logged_us + LOG_EVERY_US)
		return;
	members->measuring->logged_us = members->run->now_us;
	log_line(&members->run->log, LOG_INFO, "measuring links: round %u of %u, about %.0f s left",
		 now, all, left);
}

/* Returns the index of the `kept`-th round that is not omitted. The omitted rounds are spread
 * evenly over all rounds. */
static uint32_t round_of(const struct measuring *w, uint32_t kept)
{
	return (uint32_t)((uint64_t)kept * w->n_rounds / w->n_kept);
}

static void begin_round(struct members *members)
{
	struct measuring *w = members->measuring;
	uint32_t r = round_of(w, w->round);
	double most_ms = 0;

	memset(w->partner, 0xff, sizeof(w->partner));
	for (uint32_t i = w->starts[r]; i < w->starts[r + 1]; i++) {
		const struct meeting *p = &w->pairs[i];
		double ms = fmax(w->time_factor * wanted_ms(p), ROUND_LEAST_MS);

		if (!member_alive(&members->list[p->a]) || !member_alive(&members->list[p->b]))
			continue;
		w->partner[p->a] = p->b;
		w->partner[p->b] = p->a;
		order_measure(members, p->a, p->b, (uint32_t)ms);
		order_measure(members, p->b, p->a, (uint32_t)ms);
		most_ms = fmax(most_ms, ms);
	}
	w->until_us = members->run->now_us + (int64_t)(most_ms * 1e3) + GRACE_US;
	w->round_us = members->run->now_us;
	log_round(members);
}

static void begin_rounds(struct members *members)
{
	struct measuring *w = members->measuring;
	struct meeting *pairs;
	uint32_t n = list_pairs(members, &pairs);

	w->step = ROUNDS;
	w->round = 0;
	w->rounds_us = members->run->now_us;
	deal_rounds(w, pairs, n);
	if (w->n_rounds == 0) {
		w->step = OVER;
	} else {
		fit_rounds(w);
		begin_round(members);
	}
	free(pairs);
}

static bool round_over(const struct members *members)
{
	const struct measuring *w = members->measuring;
	bool over = true;

	for (uint32_t i = 0; i < members->n; i++)
		over = over && (w->partner[i] == MSG_NOBODY || !member_alive(&members->list[i]));
	return over || members->run->now_us >= w->until_us;
}

static void note_missing(struct members *members)
{
	struct measuring *w = members->measuring;

	for (uint16_t i = 0; i < members->n; i++)
		if (w->partner[i] != MSG_NOBODY && member_alive(&members->list[i]))
			note(members->run, NOTE_WARNING, i, 0,
			     "n%02u did not report its link to n%02u in time", i, w->partner[i]);
}

static void rounds_done(struct members *members)
{
	struct measuring *w = members->measuring;

	w->step = OVER;
	link_table_estimate(members->links, near_s);
	note(members->run, NOTE_EVENT, -1, 0, "links measured in %.1f s",
	     (double)(members->run->now_us - w->began_us) * 1e-6);
}

bool measuring_turn(struct members *members)
{
	struct measuring *w = members->measuring;

	if (w->step == LATENCIES && (w->n_reported >= w->n || members->run->now_us >= w->until_us))
		begin_rounds(members);
	if (w->step != ROUNDS || !round_over(members))
		return w->step == OVER;
	note_missing(members);
	if (++w->round < w->n_kept)
		begin_round(members);
	else
		rounds_done(members);
	return w->step == OVER;
}

static double allowed_ms(const struct measuring *w, uint32_t kept)
{
	return fmax(w->time_factor * wanted_ms(&w->pairs[w->starts[round_of(w, kept)]]),
		    ROUND_LEAST_MS);
}

/* Estimates the seconds left. Assumes that the remaining rounds use the same share of their allowed
 * time as the earlier rounds did. Before the rounds are known, returns the time allowed for all of
 * them. */
static double estimate_left_s(const struct members *members)
{
	const struct measuring *w = members->measuring;
	double left_ms = 0, over_ms = 0, share = 1;

	if (w->step == LATENCIES)
		return 1e-6 *
		       (double)(w->began_us + LATENCIES_US +
				(w->n > SMALL ? ROUNDS_MANY_US : ROUNDS_US) - members->run->now_us);
	for (uint32_t k = 0; k < w->round; k++)
		over_ms += allowed_ms(w, k);
	for (uint32_t k = w->round; k < w->n_kept; k++)
		left_ms += allowed_ms(w, k);
	if (over_ms > 0)
		share = fmin(1, 1e-3 * (double)(w->round_us - w->rounds_us) / over_ms);
	return share * left_ms * 1e-3 - 1e-6 * (double)(members->run->now_us - w->round_us);
}

double measuring_round(const struct members *members, uint32_t *round, uint32_t *rounds)
{
	const struct measuring *w = members->measuring;
	bool under_way = w && w->step != OVER && members->run->phase == PHASE_GATHERING;

	*round = under_way ? (w->step == ROUNDS ? w->round + 2 : 1) : 0;
	*rounds = under_way ? (w->step == ROUNDS ? w->n_kept : w->n - 1) + 1 : 0;
	return under_way ? fmax(estimate_left_s(members), 0) : 0;
}

/* ---- answers ---- */

static void note_latencies(struct members *members, const struct member *m)
{
	struct measuring *w = members->measuring;

	w->n_reported += w->step == LATENCIES && !w->has_latencies[m->id];
	w->has_latencies[m->id] = true;
}

/* Reports which node cannot connect to which address, so that the operator can act. */
static void note_unreachable(struct members *members, const struct member *m,
			     const struct msg_measured *r)
{
	const struct member *to = &members->list[r->to];
	const struct link_seen *back = link_table_at(members->links, r->to, m->id);
	bool asks = r->text[0] && r->text[strlen(r->text) - 1] == '?';
	char remedy[80] = "";

	if (!asks)
		snprintf(remedy, sizeof(remedy),
			 ". Open that port at n%02u, or give that agent another --advertise",
			 to->id);
	note(members->run, NOTE_WARNING, m->id, 0,
	     "n%02u cannot reach n%02u, and no plan uses that direction: %.90s%s%s", m->id, to->id,
	     r->text, remedy,
	     !back->known || back->unreachable ? ""
	     : asks                            ? " The other direction works"
					       : ". The other direction works");
}

void measuring_answer(struct members *members, struct member *m, const struct msg_measured *r)
{
	struct measuring *w = members->measuring;
	struct link_seen *l;

	if (w && r->to == MSG_NOBODY)
		note_latencies(members, m);
	if (!w || !members->links || r->to >= members->n || r->to == m->id)
		return;
	l = link_table_at(members->links, m->id, r->to);
	if (w->partner[m->id] != r->to && w->joiner != m->id && w->joiner != (int)r->to)
		return; /* the answer is late or was not requested */
	log_line(&members->run->log, LOG_DEBUG, "n%02u>n%02u: reached %u, %.1f ms, %.2f MB/s",
		 m->id, r->to, r->reached, (double)r->latency_s * 1e3,
		 (double)r->bandwidth_bytes_per_s * 1e-6);
	if (r->reached && r->latency_s > 0 && r->bandwidth_bytes_per_s > 0) {
		*l = (struct link_seen){ .known = true,
					 .latency_s = r->latency_s,
					 .spread_s = r->spread_s,
					 .bandwidth = (double)r->bandwidth_bytes_per_s };
	} else if (!r->reached) {
		*l = (struct link_seen){ .known = true, .unreachable = true, .latency_s = -1 };
		note_unreachable(members, m, r);
	}
	members_link_observed(members, m, r->to);
	if (w->partner[m->id] == r->to)
		w->partner[m->id] = MSG_NOBODY;
}

void measuring_free(struct members *members)
{
	if (members->measuring)
		forget_rounds(members->measuring);
	free(members->measuring);
	members->measuring = NULL;
}

/* ---- nodes that join later ---- */

bool measuring_knows(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; members->links && i < members->n; i++) {
		const struct member *other = &members->list[i];

		if (other != m && member_alive(other) && other->assigned.is_welcomed &&
		    member_is_replica(other) &&
		    (!link_table_at(members->links, m->id, i)->known ||
		     !link_table_at(members->links, i, m->id)->known))
			return false;
	}
	return true;
}

bool measuring_isolates(const struct members *members, const struct member *m)
{
	return members->links && link_table_isolates(members->links, m->id);
}

void measuring_forget(struct members *members, const struct member *m)
{
	for (uint32_t i = 0; members->links && i < members->n; i++) {
		*link_table_at(members->links, m->id, i) = (struct link_seen){ .known = false };
		*link_table_at(members->links, i, m->id) = (struct link_seen){ .known = false };
	}
	if (members->measuring && members->measuring->joiner == m->id)
		members->measuring->joiner = -1;
}

/* Starts the next measurement of the joining node. Returns false if all its measurements are
 * done. */
static bool next_meeting(struct members *members)
{
	struct measuring *w = members->measuring;
	uint16_t joiner = (uint16_t)w->joiner;

	for (; w->next < members->n; w->next++) {
		uint16_t i = (uint16_t)w->next;

		if (i == joiner || !member_alive(&members->list[i]) ||
		    !members->list[i].assigned.is_welcomed ||
		    (link_table_at(members->links, joiner, i)->known &&
		     link_table_at(members->links, i, joiner)->known))
			continue;
		w->partner[joiner] = i;
		w->partner[i] = joiner;
		order_measure(members, joiner, i, JOIN_MS);
		order_measure(members, i, joiner, JOIN_MS);
		w->until_us = members->run->now_us + JOIN_MS * 1000 + GRACE_US;
		w->next++;
		return true;
	}
	return false;
}

bool measuring_joiners(struct members *members)
{
	struct measuring *w;

	if (!members->links || members->run->phase == PHASE_GATHERING)
		return false;
	w = have_measured(members);
	for (uint32_t i = 0; w->joiner < 0 && i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->state != MEMBER_JOINING || !m->assigned.is_welcomed || m->is_marked ||
		    measuring_knows(members, m))
			continue;
		w->joiner = m->id;
		w->next = 0;
		memset(w->partner, 0xff, sizeof(w->partner));
		note(members->run, NOTE_EVENT, m->id, 0,
		     "n%02u's links are measured before it gets a stage", m->id);
	}
	if (w->joiner < 0 || !round_over(members))
		return false;
	if (member_alive(&members->list[w->joiner]) && next_meeting(members))
		return false;
	link_table_apply_all(members->links, members->run->cluster);
	w->joiner = -1;
	return true;
}
