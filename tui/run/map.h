/* map.h - positions of nodes and regions in the plane, made from the measured network.
 *
 * A region is a place ("Belgium") with all of its nodes. The distance of two nodes is the latency
 * of their link. In an emulated network that is described by delays only, the distance is the
 * planned transfer time. A replay has no links; its distances come from the transfers of an
 * iteration.
 *
 * With fewer than MAP_NODES nodes, each node is a point, and a region is at the centre of its
 * nodes. With more nodes, the regions are the points. When more links are measured, the points
 * move as little as possible.
 */
#ifndef TUI_MAP_H
#define TUI_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/run/embedding.h"
#include "tui/run/state.h"

enum { MAP_NODES = 200, MAP_REGIONS = 64, MAP_SLOW = 3, MAP_CUT = 16 };

/* A link from one node to another, by their ids. */
struct map_link {
	uint16_t from, to;
	/* Ratio of the measured to the planned transfer time; 0: nothing was transferred yet. */
	float times;
};

struct map {
	/* Id of the run for which the map was made; each jump of a replay begins another run. */
	uint64_t run;
	/* Number of link messages that the state had when the map was made. */
	uint32_t link_reports;
	uint64_t nodes_hash; /* hash of the nodes and their places when the map was made */
	int64_t made_us;     /* time at which the map was made, on the local clock */
	/* Time of the newest check of nodes and links for changes, on the local clock. */
	int64_t checked_us;
	bool by_transfers; /* distances are transfer times, because no latency is known */
	/* True: distances come from links. False: no link is known, and distances are guessed from
	 * places. */
	bool measured;
	/* Number of distances that were known when all points were last placed from the start. */
	uint32_t n_placed;
	uint32_t n_nodes; /* number of all known nodes */
	/* Positions of the nodes by index; unused if there are MAP_NODES nodes or more. */
	struct point nodes[MAP_NODES];
	uint16_t ids[MSG_NODES];       /* node id by index */
	uint16_t index[MSG_NODES];     /* 1 + index, by node id; 0: the map has no such node */
	uint8_t region[MSG_NODES];     /* region of each node, by the node's index */
	uint32_t n_regions;
	struct point regions[MAP_REGIONS];
	uint16_t sizes[MAP_REGIONS]; /* number of nodes in each region */
	/* Id of a node of each region; its location is the region's name. */
	uint16_t named[MAP_REGIONS];
	/* The links with the largest ratio of measured to planned transfer time; the largest comes
	 * first. */
	struct map_link slow[MAP_SLOW];
	struct map_link cut[MAP_CUT]; /* cut links: nothing arrives over them */
	uint32_t n_slow, n_cut;
};

/* Returns the ratio of a link's measured to its planned transfer time; 0: unknown. */
float map_times(const struct msg_link *l);
/* Makes a new map if nodes have changed. If links have been measured, corrects the map, at most
 * every two seconds. With many links the corrections are rarer, because each one reads all links.
 * local_us: the clock of this machine. */
void map_update(struct map *m, const struct state *s, int64_t local_us);
/* Returns the name of a region. */
const char *map_region_name(const struct map *m, const struct state *s, uint32_t region);
/* Returns the index of a node in the map's arrays; -1: the map has no such node. */
int map_index(const struct map *m, uint16_t node);

/* Returns true if transfers over the link take at least twice their planned time. */
bool map_is_slow(const struct msg_link *l);
/* Finds the collisions at a node that have not ended, and returns the newest one; NULL: none. */
const struct state_wait *map_newest_wait(const struct state_node *n);
/* Returns the newest collision of the whole run, even if it has ended; NULL: none. */
const struct state_wait *map_last_collision(const struct state *s);

#endif
