/* map.h - the places of nodes and regions in the plane, from the measured network.
 *
 * A region is a place ("Belgium") with all of its nodes. The distance between two nodes is the
 * latency of their link or, in an emulated network that is described by delays only, its planned
 * transfer time. A replay has no links: its map is made from the transfers of an iteration. Below
 * MAP_NODES nodes each node is a point and a region is the centre of its nodes; from there on
 * regions are the points. A map is moved as little as possible when further links are measured.
 */
#ifndef TUI_MAP_H
#define TUI_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/run/embedding.h"
#include "tui/run/state.h"

enum { MAP_NODES = 200, MAP_REGIONS = 64, MAP_SLOW = 3, MAP_CUT = 16 };

/* A link, given by the ids of its nodes. */
struct map_link {
	uint16_t from, to;
	/* Ratio of measured to planned transfer time; 0: nothing was transferred yet. */
	float times;
};

struct map {
	uint64_t run;          /* the run of this map; each jump of a replay is another run */
	uint32_t link_reports; /* number of link messages after which the map was made */
	uint64_t nodes_hash;   /* hash of the nodes and places for which the map was made */
	int64_t made_us;       /* time on the local clock when the map was made */
	int64_t checked_us;    /* local time at which nodes and links were last compared */
	/* True: distances are from links; false: no link is known, and distances are guessed from
	 * the places. */
	bool by_transfers; /* distances are transfer times, because latencies are unknown */
	bool measured;
	/* Number of links that were known when all points were last placed together. */
	uint32_t n_placed;
	uint32_t n_nodes; /* number of all known nodes */
	/* Places of the nodes by index; only if n_nodes < MAP_NODES. */
	struct point nodes[MAP_NODES];
	uint16_t ids[MSG_NODES];       /* node id by index */
	uint16_t index[MSG_NODES];     /* 1 + the index by node id; 0: unknown */
	uint8_t region[MSG_NODES];     /* region of each node, by index */
	uint32_t n_regions;
	struct point regions[MAP_REGIONS];
	uint16_t sizes[MAP_REGIONS]; /* number of nodes in each region */
	uint16_t named[MAP_REGIONS]; /* id of a node whose location has the region's name */
	/* The links that are slowest compared with the plan, the slowest first. */
	struct map_link slow[MAP_SLOW];
	struct map_link cut[MAP_CUT]; /* links over which nothing arrives */
	uint32_t n_slow, n_cut;
};

/* Returns the ratio of a link's transfer time to its planned time; 0: unknown. */
float map_times(const struct msg_link *l);
/* Makes the map again if nodes have changed, and corrects it if links have been measured, at most
 * every two seconds; with many links more seldom, because all of them are read. local_us: the clock
 * of this machine. */
void map_update(struct map *m, const struct state *s, int64_t local_us);
/* Returns the name of a region. */
const char *map_region_name(const struct map *m, const struct state *s, uint32_t region);
/* Returns the index of a node; -1: the map has no such node. */
int map_index(const struct map *m, uint16_t node);

/* Returns true if the link takes at least twice its planned time. */
bool map_is_slow(const struct msg_link *l);
/* Returns the newest collision at a node that still lasts; NULL: none. Queues are in order of
 * arrival. */
const struct state_wait *map_newest_wait(const struct state_node *n);
/* Returns the collision that began last, whether it still lasts or has ended; NULL: none. */
const struct state_wait *map_last_collision(const struct state *s);

#endif
