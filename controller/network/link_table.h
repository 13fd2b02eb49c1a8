/* link_table.h - latency and bandwidth of every directed link between two nodes.
 *
 * A link has a latency (seconds in one direction, half of the shortest round trip), a spread (half
 * of the variation of round trips) and a bandwidth (bytes per second). A transfer of b bytes takes
 * latency + b / bandwidth. The delays of the cluster that the planner sees follow from this, as
 * does the time of a gradient exchange between two replicas of a stage.
 *
 * The functions are pure: they use no clock and send no messages. */
#ifndef CONTROLLER_LINK_TABLE_H
#define CONTROLLER_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"

struct link_seen {
	bool known;         /* measured, or estimated from similar links */
	bool estimated;
	bool unreachable;   /* no connection can be made in this direction */
	float latency_s, spread_s;
	double bandwidth;   /* bytes per second; 0: not measured */
	/* Running average of the transfer times of activations; 0: no activation was sent. */
	double transfer_s;
	double transfer_deviation_s; /* running average of the transfer times' deviation */
	double transfer_latency_s;   /* the link's latency at the newest transfer */
};

struct link_table {
	uint32_t n;              /* nodes */
	/* Bytes of one microbatch's activation in the format in which it is sent. */
	double activation_bytes;
	/* Bytes of the largest stage's gradient in the format in which it is sent. */
	double sum_bytes;
	uint32_t replicas;       /* typical number of replicas of a stage */
	struct link_seen *links; /* (n, n) what was seen of each link, [from][to] */
};

struct link_table *link_table_new(uint32_t n); /* makes a table that knows no link */
void link_table_free(struct link_table *t);    /* NULL is allowed */
struct link_seen *link_table_at(const struct link_table *t, uint32_t from, uint32_t to);

/* Returns true if the node cannot train: all links to it that were tried fail, or all from it. At
 * least two must have been tried, because a single one does not show which end is at fault. */
bool link_table_isolates(const struct link_table *t, uint32_t node);
/* Notes that a connection was made on a link that had failed. Other links from and to its ends may
 * work now too, so all that failed are unknown until they are measured again. */
void link_table_reached(struct link_table *t, uint32_t from, uint32_t to);
/* Typical number of replicas of a stage: at least 2. */
uint32_t link_table_replicas(size_t nodes, size_t stages);

/* Seconds that `bytes` take; < 0: unreachable or unknown. */
double link_table_transfer_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes);
/* Part of a link's bandwidth that the sums of gradients get. Sums travel in both directions at
 * once, and acknowledgements wait behind the data of the other direction. Measured on the test bed:
 * 0.68 to 0.85. */
#define LINK_TABLE_SUM_PART 0.75
/* Seconds that `bytes` of a sum take; < 0: unreachable or unknown. */
double link_table_sum_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes);
/* The value of sync_pair_s with which the execution model's sum, 2 (r - 1) / r times the largest
 * pair, takes as long as the real sum: two exchanges, each of one latency and 1 / r of the bytes.
 */
double link_table_sync_pair_s(const struct link_table *t, uint32_t from, uint32_t to);

/* Estimates the unknown links of a cluster that is too large for every pair to be measured. Nodes
 * whose links among each other take less than near_s form one place. An unknown link between two
 * places gets the mean of the known links between them; without any, the median of all links. */
void link_table_estimate(struct link_table *t, double near_s);

/* Writes a link into the cluster: its delay_s as given, the part of the delay beyond the latency as
 * bytes_s, and its sync_pair_s. */
void link_table_apply(const struct link_table *t, struct cluster *c, uint32_t from, uint32_t to,
		      double delay_s);
/* Writes all links, with the delays that the table gives. */
void link_table_apply_all(const struct link_table *t, struct cluster *c);

/* Returns the cluster as JSON (free it) with `links`, `activation_bytes` and
 * `weights_bytes_per_stage` in place of delays. NULL: out of memory. */
char *link_table_json(const struct link_table *t, const struct cluster *c);
/* Parses such JSON. NULL: it has no links. */
struct link_table *link_table_parse(const char *text);

#endif
