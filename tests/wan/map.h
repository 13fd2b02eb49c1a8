/* map.h - the nodes of a test bed, their places and their links. The controller counts as the last
 * node. Consoles run on the same node.
 *
 * A map is read from a cluster description with `links` (skippipe.cluster/1, docs/formats.md).
 * Without a description, the nodes are assigned to the regions of deploy/regions.json in turn, as
 * in `skippipe demo`.
 */
#ifndef WAN_MAP_H
#define WAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "tests/wan/traffic.h"

#define MAP_MAX_NODES 1000 /* largest number of nodes, the controller not included */

struct map; /* opaque */

struct map_request {
	const char *cluster; /* path of a cluster description; NULL: use the regions */
	const char *regions; /* path of deploy/regions.json */
	const char *setting; /* set of regions to use; NULL: "geo-distributed" */
	int n_nodes;         /* number of nodes, if the regions are used */
	/* Number of nodes in each stage; n_stages 0: up to six stages of equal size. */
	int n_stages, stages[CLUSTER_MOST_STAGES];
	const char *controller_at; /* place of the controller; NULL: the place of node 0 */
	double least_bytes_per_s;  /* slower links are raised to this bandwidth */
	double divisor;            /* divides all bandwidths, raised ones too; 1 or less: unused */
	/* If the regions are used: values for the description that map_format writes; 0:
	 * unknown. */
	double activation_bytes, weights_bytes_per_stage;
	double forward_s, backward_s, loss_s;
};

/* Makes a map, and writes it to *out. map_free frees it. -EINVAL, -ENOENT, or the error of reading
 * the file. The error names the file, the key and the expected value. */
int map_new(const struct map_request *q, struct map **out, struct error *err);
void map_free(struct map *m); /* NULL is allowed */

/* Returns the number of nodes; the controller is the last. */
uint32_t map_nodes(const struct map *m);
/* Returns the place of a node, borrowed. */
const char *map_place(const struct map *m, uint32_t node);
/* Returns the latency and the bandwidth of a link as described; the other fields are 0. A link
 * between the controller and a node in its place has the values of a link between two nodes there.
 * If only one node is there, this link has 0.5 ms and 1.25 GB/s. */
struct traffic_link map_link(const struct map *m, uint32_t from, uint32_t to);

/* Returns the IPv4 address of a node in host byte order: 10.77.NODE.2, or 10.78.0.2 for node
 * 256. */
uint32_t map_address(uint32_t node);
/* Returns the node that has this address; map_nodes(m): there is none. */
uint32_t map_node_at(const struct map *m, uint32_t address);

/* Marks the nodes that a word means: a number, `controller`, `all`, or a place (all nodes there).
 * in: (map_nodes); unchanged after an error. -EINVAL: the error lists the possible words. */
int map_find(const struct map *m, const char *word, bool *in, struct error *err);

/* Writes the cluster with its present links as skippipe.cluster/1, without the controller. An
 * absent link is null. The caller frees the text. NULL: out of memory. */
char *map_format(const struct map *m, struct traffic *t);

#endif
