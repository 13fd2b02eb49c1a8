/* cuts.c - links that are cut, and who is cut off.
 *
 * Agents tell on which of their links something waits and nothing moves (agent/probe.c). When that
 * lasts longer than the silence that either end is allowed, and both are heard here, the link
 * between them is cut. One of them is then taken out like a dead node: the one with most cut links,
 * and of two alike the one that told, so that who tells lies harms itself; but never a stage's last
 * replica of which there is no copy. It comes back by itself once none of its links is stuck.
 */
#include "controller/controller.h"
#include "controller/silence.h"

#include <string.h>

enum { HEALED_US = 400000, TELL_AGAIN_US = 10000000 };

struct tally {
	uint16_t cut, told; /* links of this member; those that it told of itself */
	int other;          /* one that it is cut off from */
};

void cuts_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	m->n_stuck = h->n_stuck;
	if (h->n_stuck)
		memcpy(m->stuck, h->stuck, h->n_stuck * sizeof(*h->stuck));
	for (uint32_t i = 0; i < h->n_stuck; i++) {
		if (h->stuck[i].to >= c->n_members)
			continue;
		m->cut_seen_us = c->now_us;
		c->members[h->stuck[i].to].cut_seen_us = c->now_us;
	}
}

bool cuts_healed(const struct controller *c, const struct member *m)
{
	return !m->cut || c->now_us - m->cut_seen_us > HEALED_US;
}

static bool takes_part(const struct member *m)
{
	return m->replica && member_alive(m);
}

static int64_t patience(const struct controller *c, const struct member *a,
			const struct member *b, int64_t usual_us)
{
	int64_t gap = a->gap_us > b->gap_us ? a->gap_us : b->gap_us;

	return silence_allowed(gap, usual_us, c->options.silence_us);
}

/* Who is silent altogether is to be found so. */
static bool heard(const struct controller *c, const struct member *m, int64_t usual_us)
{
	return c->now_us - m->heard_us < silence_allowed(m->gap_us, usual_us, c->options.silence_us) / 2;
}

/* What waited for one that was away then tells nothing of the link as it is now. */
static int64_t stuck_us(const struct controller *c, const struct member *m,
			const struct msg_stuck *s)
{
	int64_t told = s->ms * (int64_t)1000, both = c->members[s->to].since_us;

	if (m->since_us > both)
		both = m->since_us;
	return told < c->now_us - both ? told : c->now_us - both;
}

static void count(struct tally *tallies, uint16_t from, uint16_t to)
{
	tallies[from].cut++;
	tallies[from].told++;
	tallies[from].other = to;
	tallies[to].cut++;
	tallies[to].other = from;
}

/* Whether a link is cut. With the first the others count that seem to be: they show whose fault it is. */
static bool count_cuts(const struct controller *c, int64_t usual_us, struct tally *tallies)
{
	bool any = false;

	for (uint16_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		for (uint32_t k = 0; takes_part(m) && k < m->n_stuck; k++) {
			uint16_t to = m->stuck[k].to;
			int64_t most, stuck;

			if (to >= c->n_members || to == i || !takes_part(&c->members[to]))
				continue;
			most = patience(c, m, &c->members[to], usual_us);
			stuck = stuck_us(c, m, &m->stuck[k]);
			any = any || (stuck >= most && heard(c, &c->members[to], usual_us));
			if (stuck >= most / 2)
				count(tallies, i, to);
		}
	}
	return any;
}

/* Nobody else has the weights of a stage that it has. */
static bool irreplaceable(struct controller *c, const struct member *m)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (((m->replica && member_stage(c, m) == s) || copy_usable(c, m, s)) &&
		    stage_replicas(c, s, m) == 0 && !copies_holder(c, s, m))
			return true;
	return false;
}

static bool is_last(const struct controller *c, const struct member *m)
{
	return stage_replicas(c, member_stage(c, m), m) == 0;
}

/* Who is to go: of two alike not its stage's last, for that begins the iteration anew. */
static bool worse(const struct controller *c, const struct tally *tallies, int x, int y)
{
	bool last_x = is_last(c, &c->members[x]), last_y = is_last(c, &c->members[y]);

	if (tallies[x].cut != tallies[y].cut)
		return tallies[x].cut > tallies[y].cut;
	return last_x != last_y ? last_y : tallies[x].told > tallies[y].told;
}

void cuts_check(struct controller *c, int64_t usual_us)
{
	struct tally tallies[MSG_NODES] = { { .cut = 0 } };
	struct member *out = NULL;
	int worst = -1;
	char why[96];

	if (c->phase == PHASE_GATHERING || !count_cuts(c, usual_us, tallies))
		return;
	for (int i = 0; i < (int)c->n_members; i++)
		if (tallies[i].cut && (worst < 0 || worse(c, tallies, i, worst)))
			worst = i;
	out = &c->members[worst];
	if (!irreplaceable(c, out)) {
		snprintf(why, sizeof(why), "is cut off from n%02d%s", tallies[worst].other,
			 tallies[worst].cut > 1 ? " and others" : "");
		members_gone(c, out, why);
		out->cut = true;
	} else if (c->now_us - c->cut_told_us > TELL_AGAIN_US) {
		c->cut_told_us = c->now_us;
		note(c, NOTE_ALERT, worst, 0,
		     "n%02d and n%02d are cut off from each other, and only n%02d has its stage: "
		     "the run waits", worst, tallies[worst].other, worst);
	}
}
