/* map.h - the nodes of a test bed, their places and their links. The controller is the last node;
 * consoles run there, too.
 *
 * A map is read from a cluster description with `links` (skippipe.cluster/1, docs/formats.md).
 * Otherwise the nodes are spread over the regions of deploy/regions.json in turn, as `skippipe
 * demo` does.
 */
#ifndef WAN_MAP_H
#define WAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "tests/wan/traffic.h"

#define MAP_MAX_NODES 1000 /* without the controller */

struct map; /* opaque */

struct map_request {
	const char *cluster; /* path of a description; NULL: the regions */
	const char *regions; /* path of deploy/regions.json */
	const char *setting; /* of the regions; NULL: "geo-distributed" */
	int n_nodes;         /* with the regions */
	int n_stages, stages[CLUSTER_MOST_STAGES]; /* n_stages 0: up to six of equal size */
	const char *controller_at;    /* a place; NULL: that of node 0 */
	double least_bytes_per_s;     /* slower links are raised to this bandwidth */
	double divisor;               /* of all bandwidths, after that; 0: 1 */
	/* With the regions, for the description that map_format writes; 0: unknown. */
	double activation_bytes, weights_bytes_per_stage;
	double forward_s, backward_s, loss_s;
};

/* Reads a map. Gives *out to the caller (map_free). The errors are -EINVAL, -ENOENT and those of
 * reading the file. The message names the file, the key and the expected value. */
int map_new(const struct map_request *q, struct map **out, struct error *err);
void map_free(struct map *m); /* NULL is allowed */

uint32_t map_nodes(const struct map *m); /* with the controller, which is the last */
const char *map_place(const struct map *m, uint32_t node); /* borrowed */
/* Returns the described latency and bandwidth of a link; the other fields are 0. The link between
 * the controller and a node in the same place has 0.5 ms and 1.25 GB/s, unless the description has
 * a link between two nodes there. */
struct traffic_link map_link(const struct map *m, uint32_t from, uint32_t to);

/* Returns the IPv4 address of a node in host byte order: 10.77.NODE.2, or 10.78.0.2 for node
 * 256. */
uint32_t map_address(uint32_t node);
/* Returns the node of an address, or map_nodes(m) if there is none. */
uint32_t map_node_at(const struct map *m, uint32_t address);

/* Marks the nodes that a word names: a number, `controller`, `all`, or a place (all nodes there).
 * `in`, (map_nodes), is written only on success. -EINVAL: the message lists the possible words. */
int map_find(const struct map *m, const char *word, bool *in, struct error *err);

/* Prints the cluster with its current links, without the controller, as skippipe.cluster/1. A
 * missing link is null. The caller frees the text. NULL: out of memory. */
char *map_format(const struct map *m, struct traffic *t);

#endif
