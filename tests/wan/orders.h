/* orders.h - what an operator says to a test bed while it runs, a line of words:
 *
 *     link FROM TO SETTING...    each directed link from FROM to TO
 *     all SETTING...             each link there is
 *     node NODES STATE...        what becomes of nodes
 *     region PLACE STATE...      and of all that are in a place, the controller too if it is there
 *     reset                      all as it was at the start
 *     stats [FROM TO]            what the links have carried: those that had anything to, or those named
 *     nodes                      number, address and place of each
 *     cluster                    the links as they are, skippipe.cluster/1
 *     help
 *
 * FROM, TO and NODES: a number, `controller`, `all`, or a place. Settings: `latency_ms X`,
 * `bandwidth_mbs X` (million bytes a second), `latency_times X`, `bandwidth_times X` (of what was
 * at the start), `loss SHARE`, `jitter SHARE` (of the latency), `cut`, `restore`. States: `away`,
 * `back`, `up_mbs X`, `down_mbs X` (0: no limit).
 */
#ifndef WAN_ORDERS_H
#define WAN_ORDERS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "tests/wan/map.h"
#include "tests/wan/traffic.h"

struct orders_start { /* of all links, of all nodes */
	double loss, jitter;
	double up_bytes_per_s, down_bytes_per_s; /* 0: no limit */
};

/* All as the map and the start say. */
void orders_reset(const struct map *m, struct traffic *t, const struct orders_start *start);

struct orders_counts {
	uint64_t delivered;     /* packets, by the router */
	double late_sum_s, late_most_s; /* how much later than due */
	uint64_t strays;        /* to nobody's address, or no IPv4 */
	uint64_t refused;       /* by the node's kernel */
};

/* Does what the line says, all of it or nothing, and writes the answer to `reply`. -EINVAL with
 * what was expected. */
int orders_do(const struct map *m, struct traffic *t, const struct orders_start *start,
	      const struct orders_counts *counts, const char *line, FILE *reply, struct error *err);

/* A line for each node: number, address, place. The controller is the last. */
void orders_nodes(const struct map *m, FILE *reply);

#endif
