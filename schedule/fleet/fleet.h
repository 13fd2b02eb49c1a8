/* fleet.h - machines that could train a model, as a person describes them: their cards, places,
 * network and prices. The file format is `skippipe.fleet/1` (docs/formats.md). A measured cluster
 * can be used in its place.
 *
 * A node is a card of a machine: each card runs an agent.
 *
 * Units: bytes, seconds, floating-point operations per second. Matrices are row-major: from *
 * n_nodes + to.
 */
#ifndef SCHEDULE_FLEET_H
#define SCHEDULE_FLEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/model_shape.h"
#include "schedule/fleet/cards.h"
#include "schedule/format/cluster.h"
#include "schedule/format/regions.h"

#define FLEET_MOST_NODES 1000 /* limit of a run's nodes */

/* Origin of the speed of a machine's cards */
enum fleet_speed {
	/* The maker's figure, times the share of it that was measured on this card */
	FLEET_SHARE_MEASURED,
	/* The maker's figure, times the share that was measured on another card */
	FLEET_SHARE_ASSUMED,
	FLEET_SPEED_MEASURED, /* a measured number of tokens a second, or a measured cluster */
};

/* An entry of the file: machines of one kind in one place. The texts are owned. */
struct fleet_machines {
	char *name, *place;
	char *device;          /* text for --device; NULL: not given */
	int count;             /* number of machines */
	int cards;             /* number of cards in each machine */
	double flop_per_s;     /* speed that each card reaches in training */
	double bytes_per_s;    /* memory bandwidth; INFINITY: unknown */
	double memory_bytes;   /* memory of each card */
	/* Limit of the microbatches that a card holds, whatever its memory; 0: none. Only a
	 * running controller sets a limit. */
	int most_slots;
	/* Network bandwidth of a machine in each direction, bytes a second; INFINITY: not given */
	double up, down;
	double price_per_hour; /* price of a machine; NAN: not given */
	bool is_spot;
	enum fleet_speed speed;
};

struct fleet_node {
	int entry;   /* index of the node's machine in `entries` */
	int machine; /* number of the machine, counted over the whole fleet */
	int card;    /* number of the card within its machine */
};

struct fleet {
	char *name; /* owned */
	int n_entries;
	struct fleet_machines *entries; /* array of n_entries */
	int n_nodes, n_machines;
	struct fleet_node *nodes; /* array of n_nodes */
	/* arrays of (n_nodes, n_nodes): latency and bandwidth of each link; latency below 0: no
	 * link */
	double *latency_s, *bandwidth;
	double transfer_overhead_s, dispatch_overhead_s;
};

/* The tables to which a fleet's file refers; borrowed. */
struct fleet_facts {
	const struct cards *cards;
	const struct regions *regions;
	const struct model_shape *shape;
};

/* Parses the text of a fleet. -EINVAL: the message names the entry and the key that are wrong. */
int fleet_parse(const char *text, size_t size, const struct fleet_facts *facts, struct fleet **out,
		struct error *err);
/* Reads a fleet or a measured cluster. Errors are those of reading the file and of fleet_parse;
 * messages begin with the path. */
int fleet_read(const char *path, const struct fleet_facts *facts, struct fleet **out,
	       struct error *err);
/* Makes a fleet from a cluster that was measured with an equal cut of this model. Each node gets
 * the memory that its microbatches need. -EINVAL: the cluster does not say how much of its delays
 * is the transfer time of the bytes. */
int fleet_of_cluster(const struct cluster *c, const struct model_shape *shape, struct fleet **out,
		     struct error *err);
/* Makes a fleet of n machines with one card each, of which nothing is known yet. Memory and speed
 * are 0, prices are unknown, and there are no links. The caller sets names and places. */
int fleet_of_single_cards(const char *name, int n, struct fleet **out, struct error *err);
void fleet_free(struct fleet *f); /* f may be NULL */

static inline const struct fleet_machines *fleet_machines_of(const struct fleet *f, int node)
{
	return &f->entries[f->nodes[node].entry];
}

/* Returns true if the fleet has so many nodes that a good choice uses few of them. The searches
 * then prefer near nodes and nodes already in use, and move several equal nodes at once. */
static inline bool fleet_is_large(const struct fleet *f)
{
	return f->n_nodes > 40;
}

enum { FLEET_NAME = 80 };
/* Writes the name of a node: "home", "home-2" for the second of several machines, "home-2.3" for
 * its third card. */
void fleet_node_name(const struct fleet *f, int node, char out[FLEET_NAME]);

/* Checks that all prices are known. -EINVAL: an entry has no price; the message names the entry. */
int fleet_check_prices(const struct fleet *f, struct error *err);

#endif
