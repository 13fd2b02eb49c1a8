/* orders.h - commands for a running test bed. A command is a line of words:
 *
 *     link FROM TO SETTING...    changes each directed link from FROM to TO
 *     all SETTING...             changes every link
 *     node NODES STATE...        changes nodes
 *     region PLACE STATE...      changes all nodes in a place, and the controller if it is there
 *     reset                      restores everything to its state at the start
 *     stats [FROM TO]            prints the traffic of these links, or of all links with traffic
 *     nodes                      prints number, address and place of each node
 *     cluster                    prints the current links as skippipe.cluster/1
 *     help
 *
 * FROM, TO and NODES are a number, `controller`, `all`, or a place. The settings are `latency_ms
 * X`, `bandwidth_mbs X` (million bytes a second), `latency_times X` and `bandwidth_times X`
 * (relative to the start), `loss SHARE`, `jitter SHARE` (of the latency), `cut` and `restore`. The
 * states are `away`, `back`, `up_mbs X` and `down_mbs X` (0: no limit).
 */
#ifndef WAN_ORDERS_H
#define WAN_ORDERS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "tests/wan/map.h"
#include "tests/wan/traffic.h"

struct orders_start {
	double loss, jitter;                     /* values of all links */
	double up_bytes_per_s, down_bytes_per_s; /* of all nodes; 0: no limit */
};

/* Sets all links and nodes to their state at the start. */
void orders_reset(const struct map *m, struct traffic *t, const struct orders_start *start);

struct orders_counts {
	uint64_t delivered; /* packets, by the router */
	double late_sum_s, late_max_s; /* their delays beyond the due time */
	uint64_t strays;    /* packets to an unknown address, or not IPv4 */
	uint64_t refused;   /* packets that the receiver's kernel refused */
};

/* Executes a line, completely or not at all, and writes the answer to `reply`. -EINVAL: the message
 * says what was expected. */
int orders_do(const struct map *m, struct traffic *t, const struct orders_start *start,
	      const struct orders_counts *counts, const char *line, FILE *reply, struct error *err);

/* Prints a line for each node: number, address, place. The controller is the last. */
void orders_nodes(const struct map *m, FILE *reply);

#endif
