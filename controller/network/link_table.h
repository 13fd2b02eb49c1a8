/* link_table.h - what every directed link between two nodes was measured to do.
 *
 * A link is a latency (seconds one way, half of the least round trip), a spread (how much a round
 * trip strays, halved) and a bandwidth (bytes per second). A transfer of b bytes takes
 * latency + b / bandwidth. From that the cluster that is planned against gets its delays, and the
 * time a stage's gradient needs between two replicas.
 *
 * Pure: no clock, no messages.
 */
#ifndef CONTROLLER_LINK_TABLE_H
#define CONTROLLER_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"

struct link_seen {
	bool known;         /* measured, or estimated of others that are alike */
	bool estimated;
	bool unreachable;   /* no connection can be made that way */
	float latency_s, spread_s;
	double bandwidth;   /* bytes per second; 0: not measured */
	double way_s;       /* what activations took lately, smoothed; 0: none travelled */
	/* Their mean deviation; the latency at the last of them */
	double way_deviation_s, way_latency_s;
};

struct link_table {
	uint32_t n;              /* nodes */
	double activation_bytes; /* of a microbatch, as it travels */
	double weights_bytes;    /* of the largest stage's weights */
	uint32_t replicas;       /* of a stage, typically */
	struct link_seen *links; /* (n, n) [from][to] */
};

struct link_table *link_table_new(uint32_t n); /* nothing known; NULL: no memory */
void link_table_free(struct link_table *t);    /* NULL is allowed */
struct link_seen *link_table_at(const struct link_table *t, uint32_t from, uint32_t to);

/* Of a stage, typically: at least 2. */
uint32_t link_table_replicas(size_t nodes, size_t stages);

/* Seconds that so many bytes take; < 0: unreachable, or nothing known. */
double link_table_transfer_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes);
/* What sync_pair_s is to say so that the execution model's sum, 2 (r - 1) / r times the largest pair,
 * is what a sum takes: two exchanges, each a latency and a slice of 1 / r. */
double link_table_sync_pair_s(const struct link_table *t, uint32_t from, uint32_t to);

/* Links of which nothing is known, from those between nodes that are as near: nodes whose links
 * among themselves take less than near_s are one place, and a link between two places is like the
 * others between them; where there is none, like the median of all. For clusters too large for every
 * pair to be measured. -ENOMEM. */
int link_table_estimate(struct link_table *t, double near_s);

/* Into the cluster's delay_s and sync_pair_s. */
void link_table_apply_all(const struct link_table *t, struct cluster *c);

/* The cluster as JSON (free it) with `links`, `activation_bytes` and `weights_bytes_per_stage`
 * in place of delays. NULL: no memory. */
char *link_table_json(const struct link_table *t, const struct cluster *c);
/* Of such a text; NULL: it has no links, or no memory. */
struct link_table *link_table_parse(const char *text);

#endif
