/* link_table.h - latency and bandwidth of every directed link between two nodes.
 *
 * A link has a latency (seconds in one direction, half of the shortest round trip), a spread
 * (half of the round trips' variation) and a bandwidth (bytes per second). A transfer of b bytes
 * takes latency + b / bandwidth. From these values follow the delays in the planner's cluster, and
 * the time of a gradient exchange between two replicas of a stage.
 *
 * The functions are pure: they use no clock and send no messages. */
#ifndef CONTROLLER_LINK_TABLE_H
#define CONTROLLER_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"

struct link_seen {
	bool known; /* the latency was measured, or estimated from similar links */
	bool estimated;     /* the latency was estimated, not measured */
	bool unreachable;   /* no connection can be made in this direction */
	float latency_s, spread_s;
	double bandwidth; /* in bytes per second; 0: not measured */
	/* Running average of an activation's transfer time, seconds; 0: no activation was sent. */
	double transfer_s;
	double transfer_deviation_s; /* running average of the deviation of these transfer times */
	double transfer_latency_s;   /* latency of the link at the newest transfer */
};

struct link_table {
	uint32_t n; /* number of nodes */
	/* Bytes of one microbatch's activation in the format in which activations are sent. */
	double activation_bytes;
	/* Bytes of the largest stage's gradient in the format of sums. */
	double sum_bytes;
	uint32_t replicas;       /* typical number of replicas of a stage */
	struct link_seen *links; /* n x n entries, [from][to]: what was observed of each link */
};

struct link_table *link_table_new(uint32_t n); /* makes a table that knows no link */
void link_table_free(struct link_table *t);    /* t may be NULL */
struct link_seen *link_table_at(const struct link_table *t, uint32_t from, uint32_t to);

/* Returns true if the node cannot train. In that case at least two links to the node were measured
 * and all of them failed, or at least two links from the node were measured and all of them failed.
 * A single link does not show which end is at fault. Estimates do not count. */
bool link_table_isolates(const struct link_table *t, uint32_t node);
/* Records that a connection was made on a link that had failed. Other failed links of the two
 * ends may work now too, so these links become unknown. An unknown link is measured again only if
 * one of its ends is joining. Until then no plan uses the link. */
void link_table_reached(struct link_table *t, uint32_t from, uint32_t to);
/* Returns the typical number of replicas of a stage in a cluster of this size, at least 2. */
uint32_t link_table_replicas(size_t nodes, size_t stages);

/* Returns the seconds in which `bytes` are transferred; < 0: the node cannot be reached, or the
 * link is unknown. */
double link_table_transfer_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes);
/* Share of a link's bandwidth that the sums of gradients get. Sums travel in both directions at
 * once, and acknowledgements wait behind the data of the other direction. Shares from 0.68 to 0.85
 * were measured on the test bed. */
#define LINK_TABLE_SUM_PART 0.75
/* Returns the seconds in which `bytes` of a sum are transferred; < 0: the node cannot be reached,
 * or the link is unknown. */
double link_table_sum_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes);
/* Returns the link's sync_pair_s for the planner. The planner's execution model takes 2 (r - 1) / r
 * times the largest sync_pair_s for a sum over r replicas. A real sum consists of two exchanges.
 * Each exchange takes one latency and the time of 1 / r of the bytes. The returned value makes both
 * times equal. */
double link_table_sync_pair_s(const struct link_table *t, uint32_t from, uint32_t to);

/* Estimates the unknown links of a cluster that is too large for measuring every pair. Nodes whose
 * links among each other have a latency below near_s form one place. An unknown link between two
 * places gets the mean of the known links between these places. If there are none, it gets the
 * median of all links. */
void link_table_estimate(struct link_table *t, double near_s);

/* Writes a link into the cluster: delay_s as given, bytes_s (the part of the delay beyond the
 * latency), and sync_pair_s. */
void link_table_apply(const struct link_table *t, struct cluster *c, uint32_t from, uint32_t to,
		      double delay_s);
/* Writes all links into the cluster, with the delays that follow from the table. */
void link_table_apply_all(const struct link_table *t, struct cluster *c);

/* Returns the cluster as JSON, which the caller frees. It has `links`, `activation_bytes` and
 * `weights_bytes_per_stage` instead of delays. NULL: out of memory. */
char *link_table_json(const struct link_table *t, const struct cluster *c);
/* Parses the JSON of a cluster. NULL: the cluster has no links. A link is unknown if its latency
 * and bandwidth are both null or negative. A link is unreachable if only its latency is null or
 * negative. */
struct link_table *link_table_parse(const char *text);

#endif
