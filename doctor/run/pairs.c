/* pairs.c - checks the links between the nodes of a run.
 *
 * Before the first plan each agent tries to reach every other agent. The record lists the links
 * that failed, and the journal gives the causes. If the port of a node is closed, no other node
 * reaches the node. If a machine blocks outgoing connections, the machine's node reaches no other
 * node.
 */
#include "doctor/run/pairs.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_ROOM = 240, CAUSE_ROOM = 128, PAIRS_MOST = 20 };
#define BANDWIDTH_LOW 1e6 /* a link with a lower bandwidth is reported; bytes/s */

static const struct picture_link *link_of(const struct picture *p, uint32_t from, uint32_t to)
{
	return &p->links[from * p->n + to];
}

/* Finds why node `from` cannot reach node `to`. note_unreachable (controller/network/measuring.c)
 * writes the cause into a line of the journal, after "direction: " and before the advice. If
 * there are several lines, the newest line counts. */
static void find_cause(const struct picture *p, uint32_t from, uint32_t to, char out[CAUSE_ROOM])
{
	char words[40];

	out[0] = 0;
	snprintf(words, sizeof(words), "cannot reach n%02u", to);
	for (size_t i = p->notes.n; i-- > 0;) {
		const struct picture_note *n = &p->notes.list[i];
		const char *at = strstr(n->text, words), *cause, *advice;

		if (n->node != (int32_t)from || !at || !(cause = strstr(at, "direction: ")))
			continue;
		cause += strlen("direction: ");
		advice = strstr(cause, ". Open that");
		snprintf(out, CAUSE_ROOM, "%.*s", advice ? (int)(advice - cause) : CAUSE_ROOM - 1,
			 cause);
		return;
	}
}

/* Finds the nodes that cannot reach node `to`. Writes their names to `out`, sets *first to the
 * first of these nodes, and returns their number. */
static unsigned list_unable(const struct picture *p, uint32_t to, char out[NAMES_ROOM],
			    uint32_t *first)
{
	char label[PICTURE_LABEL];
	unsigned n = 0;
	size_t at = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		if (i == to || link_of(p, i, to)->state != LINK_BROKEN)
			continue;
		if (n++ == 0)
			*first = i;
		picture_label(p, i, label);
		if (at + strlen(label) + 10 < NAMES_ROOM)
			at += (size_t)snprintf(out + at, NAMES_ROOM - at, "%s%s", n > 1 ? ", " : "",
					       label);
		else if (at + 10 < NAMES_ROOM)
			at += (size_t)snprintf(out + at, NAMES_ROOM - at, ", ...");
	}
	return n;
}

/* Counts the nodes that have tried to reach node `to`, with or without success. */
static unsigned count_known(const struct picture *p, uint32_t to)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += i != to && link_of(p, i, to)->state != LINK_UNKNOWN;
	return n;
}

static void check_target(struct findings *f, const struct picture *p, uint32_t to)
{
	char unable[NAMES_ROOM], label[PICTURE_LABEL], cause[CAUSE_ROOM];
	uint32_t first = 0;
	const unsigned n = list_unable(p, to, unable, &first);
	const bool by_all = n > 1 && n == count_known(p, to);
	const char *address = p->nodes[to].address;

	if (n == 0)
		return;
	find_cause(p, first, to, cause);
	const bool names_address = address[0] && !strstr(cause, address);

	picture_label(p, to, label);
	finding_add(f, "reachability", by_all ? FINDING_ERROR : FINDING_WARNING,
		    "%s%s%s cannot be reached by %s%s%s%s", label, names_address ? " at " : "",
		    names_address ? address : "", by_all ? "any other node" : unable,
		    cause[0] ? ": " : "", cause,
		    by_all || cause[0] ? "" : "; no plan uses that direction");
	if (by_all)
		finding_remedy(
			f,
			"on the side of %s: open that port in its firewall or security group, "
			"or map it at the provider and give the agent --advertise "
			"tcp://OUTSIDE:PORT",
			label);
	else
		finding_remedy(f,
			       "others reach %s: let its firewall accept connections from there, "
			       "and the other side's connect to that port",
			       label);
}

/* If node `from` has tried to reach two or more nodes and has reached none, adds an error. The
 * cause is then at node `from` itself. */
static void check_source(struct findings *f, const struct picture *p, uint32_t from)
{
	unsigned broken = 0, works = 0;
	char label[PICTURE_LABEL];

	for (uint32_t i = 0; i < p->n; i++) {
		broken += i != from && link_of(p, from, i)->state == LINK_BROKEN;
		works += i != from && link_of(p, from, i)->state == LINK_WORKS;
	}
	if (broken < 2 || works > 0)
		return;
	picture_label(p, from, label);
	finding_add(f, "reachability", FINDING_ERROR, "%s can reach none of the other nodes",
		    label);
	finding_remedy(f, "on the side of %s: allow outgoing connections to the other nodes' ports",
		       label);
}

/* The extreme links among the links that work: the link with the longest latency (far), the link
 * with the lowest bandwidth (slow), and the link with the largest product of latency and
 * bandwidth (fat). NULL: no link works. */
struct extremes {
	const struct picture_link *far, *slow, *fat;
};

static void note_extremes(struct extremes *e, const struct picture_link *l)
{
	if (!e->far || l->latency_s > e->far->latency_s)
		e->far = l;
	if (l->bytes_s > 0 && (!e->slow || l->bytes_s < e->slow->bytes_s))
		e->slow = l;
	if (!e->fat || l->bytes_s * l->latency_s > e->fat->bytes_s * e->fat->latency_s)
		e->fat = l;
}

/* Adds a warning if the bandwidth of link k is low. Returns true if a warning was added. */
static bool check_bandwidth(struct findings *f, const struct picture *p, size_t k)
{
	char a[PICTURE_LABEL], b[PICTURE_LABEL];

	if (p->links[k].bytes_s <= 0 || p->links[k].bytes_s >= BANDWIDTH_LOW)
		return false;
	finding_add(f, "links", FINDING_WARNING, "%s > %s carries %.2f MB/s only",
		    picture_label(p, (uint32_t)(k / p->n), a),
		    picture_label(p, (uint32_t)(k % p->n), b), p->links[k].bytes_s * 1e-6);
	finding_remedy(f, "plans avoid the link; take machines with a faster network, or smaller "
			  "tensors (--wire q6 --sum-wire q6)");
	return true;
}

static void add_extremes(struct findings *f, const struct picture *p, const struct extremes *e,
			 bool some_unknown)
{
	const size_t far = (size_t)(e->far - p->links);
	const size_t slow = e->slow ? (size_t)(e->slow - p->links) : far;

	finding_add(f, "links", FINDING_OK,
		    "longest round trip %.0f ms (n%02zu > n%02zu), least bandwidth %.1f MB/s "
		    "(n%02zu > n%02zu)%s; for the kernel's settings: skippipe doctor --mbit %.0f "
		    "--rtt-ms %.0f",
		    2e3 * e->far->latency_s, far / p->n, far % p->n, p->links[slow].bytes_s * 1e-6,
		    slow / p->n, slow % p->n, some_unknown ? ", some are not measured" : "",
		    e->fat->bytes_s * 8e-6 + 1, 2e3 * e->fat->latency_s + 1);
}

static void check_speeds(struct findings *f, const struct picture *p)
{
	struct extremes e = { NULL, NULL, NULL };
	unsigned unknown = 0, slow = 0;

	for (size_t k = 0; k < (size_t)p->n * p->n; k++) {
		if (k / p->n == k % p->n)
			continue;
		unknown += p->links[k].state == LINK_UNKNOWN;
		if (p->links[k].state != LINK_WORKS)
			continue;
		note_extremes(&e, &p->links[k]);
		if (slow < PAIRS_MOST)
			slow += check_bandwidth(f, p, k);
	}
	if (e.far)
		add_extremes(f, p, &e, unknown > 0);
	else if (p->n > 1)
		finding_add(f, "links", FINDING_OK, "not measured yet");
}

void pairs_check(struct findings *f, const struct picture *p)
{
	const size_t before = f->all.n;

	if (p->is_emulated) {
		finding_add(f, "links", FINDING_OK, "the network is emulated");
		return;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		check_target(f, p, i);
		check_source(f, p, i);
	}
	if (f->all.n == before)
		finding_add(f, "reachability", FINDING_OK, "no pair is known to be cut off");
	check_speeds(f, p);
}
