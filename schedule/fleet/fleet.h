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

#define FLEET_MOST_NODES 1000 /* a run takes no more */

/* How the speed of a machine's cards is known */
enum fleet_speed {
	FLEET_SHARE_MEASURED, /* the maker's figure, and the share of it measured on this card */
	FLEET_SHARE_ASSUMED,  /* the maker's figure, and the share measured on another card */
	FLEET_SPEED_MEASURED, /* tokens a second, or a measured cluster */
};

/* An entry of the file: machines of one kind in one place. Texts are owned. */
struct fleet_machines {
	char *name, *place;
	char *device;          /* NULL: not given */
	int count;             /* number of machines */
	int cards;             /* number of cards in each */
	double flop_per_s;     /* reached in training, of each card */
	double bytes_per_s;    /* memory bandwidth; INFINITY: unknown */
	double memory_bytes;   /* of each card */
	double up, down;       /* bytes a second of a machine; INFINITY: not given */
	double price_per_hour; /* of a machine; NAN: not given */
	bool is_spot;
	enum fleet_speed speed;
};

struct fleet_node {
	int entry;   /* index in entries */
	int machine; /* number of the machine, counted through the fleet */
	int card;    /* number of the card in its machine */
};

struct fleet {
	char *name; /* owned */
	int n_entries;
	struct fleet_machines *entries; /* (n_entries) */
	int n_nodes, n_machines;
	struct fleet_node *nodes; /* (n_nodes) */
	/* (n_nodes, n_nodes) time and bandwidth of a link; latency below 0: no link */
	double *latency_s, *bandwidth;
	double transfer_overhead_s, dispatch_overhead_s;
};

/* The data that a fleet's file refers to; borrowed. */
struct fleet_facts {
	const struct cards *cards;
	const struct regions *regions;
	const struct model_shape *shape;
};

/* -EINVAL: the message names the entry and key. */
int fleet_parse(const char *text, size_t size, const struct fleet_facts *facts, struct fleet **out,
		struct error *err);
/* Reads a fleet or a measured cluster. Errors are those of the file, or of fleet_parse, with the
 * path in front. */
int fleet_read(const char *path, const struct fleet_facts *facts, struct fleet **out,
	       struct error *err);
/* Makes a fleet of a cluster that was measured with this model, cut equally. The memory of its
 * nodes is what their microbatches need. -EINVAL: the cluster does not say which part of its delays
 * the bytes take. */
int fleet_of_cluster(const struct cluster *c, const struct model_shape *shape, struct fleet **out,
		     struct error *err);
/* Makes a fleet of n machines with one card each, of which nothing is known yet: names and places
 * are the caller's to set, memory and speed are 0, prices are unknown, and there are no links. */
int fleet_of_single_cards(const char *name, int n, struct fleet **out, struct error *err);
void fleet_free(struct fleet *f); /* NULL is allowed */

static inline const struct fleet_machines *fleet_machines_of(const struct fleet *f, int node)
{
	return &f->entries[f->nodes[node].entry];
}

enum { FLEET_NAME = 80 };
/* Writes the name of a node: "home", "home-2" for the second of several machines, "home-2.3" for
 * its third card. */
void fleet_node_name(const struct fleet *f, int node, char out[FLEET_NAME]);

/* -EINVAL: an entry has no price; the message names it. */
int fleet_check_prices(const struct fleet *f, struct error *err);

#endif
