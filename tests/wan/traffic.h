/* traffic.h - packets in transit between the nodes of a test bed: queues, delays, losses.
 *
 *     i ==> uplink of i ==> link i>j ==> latency +- jitter ==> downlink of j ==> j
 *
 * Each directed pair has a link of its own. Each node has an uplink and a downlink that all its
 * links share, without a limit by default. All of these send one packet at a time at their
 * bandwidth and hold the others in a queue. A packet that would wait too long in a queue is
 * dropped. After a link a packet travels for the link's latency, times a random factor of 1 +-
 * jitter. It never overtakes an earlier packet of its link, but arrives together with it, because
 * nearly all real paths keep the order. Therefore packets that follow one another closely travel as
 * long as the slowest of them.
 *
 * The module has no clock and no I/O. Random numbers come from the seed, with one stream for each
 * link. Times are nanoseconds of a clock that never goes back. Sizes are those of IP packets.
 */
#ifndef WAN_TRAFFIC_H
#define WAN_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_MTU 1500
#define TRAFFIC_NEVER INT64_MAX

struct traffic; /* opaque */

/* A directed link. The caller may change the first part at any time. Packets in transit keep their
 * time of arrival, but are dropped if the link is cut by then. */
struct traffic_link {
	double latency_s, bandwidth_bytes_per_s; /* latency < 0 or bandwidth <= 0: no link */
	double loss;   /* share of the packets, 0..1 */
	double jitter; /* of the latency, 0..1 */
	bool cut;      /* nothing passes */

	uint64_t sent_packets, sent_bytes;       /* sent by i */
	uint64_t arrived_packets, arrived_bytes; /* arrived at j */
	uint64_t lost, overflowed, cut_off;      /* packets: random loss, full queue, no link */
};

struct traffic_node {
	bool away; /* no packet leaves or reaches it */
	double up_bytes_per_s, down_bytes_per_s; /* of uplink and downlink; 0: no limit */
};

struct traffic_packet {
	struct traffic_packet *next;
	int64_t due_ns;
	uint32_t from, to;
	size_t size;
	uint8_t data[TRAFFIC_MTU];
};

struct traffic_options {
	uint32_t n_nodes;
	uint64_t seed;
	double queue_s;   /* the longest that a packet waits in one queue */
	size_t held_max;  /* packets in transit at the same time, on all links */
};

/* Makes a network without any link. */
struct traffic *traffic_new(const struct traffic_options *o);
void traffic_free(struct traffic *t); /* NULL is allowed */

struct traffic_link *traffic_link(struct traffic *t, uint32_t from, uint32_t to);
struct traffic_node *traffic_node(struct traffic *t, uint32_t node);
size_t traffic_held(const struct traffic *t); /* packets in transit */

/* Returns an empty packet, which the caller fills in and sends or frees. */
struct traffic_packet *traffic_packet_new(struct traffic *t);
void traffic_packet_free(struct traffic *t, struct traffic_packet *p);

/* Sends p->size bytes from p->from to another node p->to. Takes p over. */
void traffic_send(struct traffic *t, struct traffic_packet *p, int64_t now_ns);

/* Returns when the next packet is due; TRAFFIC_NEVER: none is in transit. */
int64_t traffic_next_ns(const struct traffic *t);
/* Gives the next packet that has arrived by now to the caller; NULL: none yet. Its due_ns is the
 * exact time of arrival. */
struct traffic_packet *traffic_arrive(struct traffic *t, int64_t now_ns);

#endif
