/* map.h - who is in a test bed, where, and how far apart: the nodes of a cluster and, as the last
 * one, the controller (consoles are there, too).
 *
 * It comes from a cluster's description with `links` (skippipe.cluster/1, docs/formats.md), or the
 * nodes are dealt over the regions of deploy/regions.json in turn, as `skippipe demo` does.
 */
#ifndef WAN_MAP_H
#define WAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "tests/wan/traffic.h"

#define MAP_MOST_NODES 1000 /* without the controller */

struct map; /* opaque */

struct map_request {
	const char *cluster; /* a file; NULL: the regions */
	const char *regions; /* a file */
	const char *setting; /* of the regions; NULL: "geo-distributed" */
	int n_nodes;         /* with the regions */
	int n_stages, stages[CLUSTER_MOST_STAGES]; /* 0: balanced, of up to six */
	const char *controller_at;    /* a place; NULL: node 0's */
	double least_bytes_per_s;     /* no link is slower */
	double activation_bytes, weights_bytes_per_stage; /* with the regions; 0: not said */
	double forward_s, backward_s, loss_s;             /* likewise */
};

/* The message names file, key and what was expected: -EINVAL, -ENOENT, or the file's errors. */
int map_new(const struct map_request *q, struct map **out, struct error *err);
void map_free(struct map *m); /* NULL is allowed */

uint32_t map_nodes(const struct map *m); /* the controller included: its number is the last */
const char *map_place(const struct map *m, uint32_t node); /* borrowed */
/* The link as described, the other fields 0. A controller in a node's own place is 0.5 ms and
 * 1.25 GB/s away from it, unless the description says how far two nodes there are apart. */
struct traffic_link map_link(const struct map *m, uint32_t from, uint32_t to);

/* The IPv4 address of a node, host byte order: 10.77.NODE.2, 10.78.0.2 for node 256. */
uint32_t map_address(uint32_t node);
/* The node of an address; map_nodes(m) when it is nobody's. */
uint32_t map_node_at(const struct map *m, uint32_t address);

/* Marks the nodes that a word means: a number, `controller`, `all`, or a place (all nodes
 * there). in: (map_nodes), written only on success. -EINVAL says what there is. */
int map_find(const struct map *m, const char *word, bool *in, struct error *err);

/* The cluster as it is now, skippipe.cluster/1 with `links` as t has them (no way: null), without
 * the controller. Free it; NULL: out of memory. */
char *map_format(const struct map *m, struct traffic *t);

#endif
