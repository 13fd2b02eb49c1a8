/* orders.h - the commands that change a running test bed. A command is a line of words:
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
	double loss, jitter; /* loss and jitter of every link at the start */
	/* Limits of every node at the start; 0: no limit. */
	double up_bytes_per_s, down_bytes_per_s;
};

/* Sets all links and nodes to their state at the start. */
void orders_reset(const struct map *m, struct traffic *t, const struct orders_start *start);

struct orders_counts {
	uint64_t delivered; /* number of packets that the router has delivered */
	/* Sum and maximum of the time by which the router delivered packets too late. */
	double late_sum_s, late_max_s;
	uint64_t strays;  /* number of packets that were not IPv4, or for an unknown address */
	uint64_t refused; /* number of packets that the receiver's kernel refused */
};

/* Executes a command completely or not at all, and writes the answer to `reply`. -EINVAL: the error
 * tells what was expected. */
int orders_do(const struct map *m, struct traffic *t, const struct orders_start *start,
	      const struct orders_counts *counts, const char *line, FILE *reply, struct error *err);

/* Writes a line with number, address and place for each node. The controller is the last. */
void orders_nodes(const struct map *m, FILE *reply);

#endif
