/* costs.h - what the nodes of a run cost, and how much of their time contributes to commits. */
#ifndef TUI_COSTS_H
#define TUI_COSTS_H

#include "base/error.h"
#include "tui/run/state.h"

enum { PRICES = 256 };

/* Prices in dollars an hour, for nodes or for places. */
struct prices {
	struct price {
		char name[32]; /* a node ("n07") or a place ("Oregon") */
		double dollars;
	} list[PRICES]; /* array of n prices */
	uint32_t n;
	double others; /* price of a node if neither the node nor its place is listed */
	bool are_known;
};

/* Parses {"n07": 2.5, "Oregon": 1.2, "others": 1}. `name`: name of the file, for messages. -EINVAL:
 * the message names line and key; *out is unchanged. */
int prices_parse(struct prices *out, const char *name, const char *json, struct error *err);

/* The cost of a run. */
struct cost {
	double per_hour;   /* dollars an hour for all nodes whose agents run */
	double per_mtoken; /* dollars for a million tokens; 0: no iteration has ended */
};

/* Returns the cost of the run at the pace of its newest iterations. without: a node whose machine
 * is assumed to be stopped; -1: none. slower: assumed duration of an iteration, as a multiple of
 * the present one. */
struct cost costs_of(const struct prices *p, const struct state *s, int without, double slower);
/* Returns the share of time that the nodes spend with tasks whose results are committed, over the
 * newest iterations. 0: no iteration has ended. */
double costs_goodput(const struct state *s);

#endif
