/* traffic.h - simulates the packets in transit between the nodes of a test bed: queues, delays,
 * losses.
 *
 *     i ==> uplink of i ==> link i>j ==> latency +- jitter ==> downlink of j ==> j
 *
 * Each ordered pair of nodes has a link of its own. Each node has an uplink and a downlink, which
 * all its links share; by default they have no limit. Uplinks, links and downlinks send one packet
 * at a time at their bandwidth, and hold the others in a queue. A packet that would wait too long
 * in a queue is dropped. After a link, a packet travels for the link's latency times a random
 * factor of 1 +- jitter. It never overtakes an earlier packet of its link, because nearly all real
 * paths keep the order. A packet that would overtake arrives together with the earlier packet.
 * Therefore packets that follow one another closely travel as long as the slowest of them.
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

/* A link in one direction. The caller may change all fields except the counters (from sent_packets
 * on) at any time. Packets in transit keep their time of arrival, but are dropped if the link is
 * cut by then. */
struct traffic_link {
	/* Latency below 0, or bandwidth 0 or less: there is no link. */
	double latency_s, bandwidth_bytes_per_s;
	double loss;   /* share of the packets that are lost, 0 to 1 */
	/* Largest random change of the latency, as a share of the latency, 0 to 1. */
	double jitter;
	bool cut;      /* true: the link drops all packets */

	uint64_t sent_packets, sent_bytes; /* packets and bytes sent by the first node */
	/* Packets and bytes that arrived at the second node. */
	uint64_t arrived_packets, arrived_bytes;
	/* Numbers of packets dropped: by random loss, by a full queue, without a link. */
	uint64_t lost, overflowed, cut_off;
};

struct traffic_node {
	bool away;                               /* true: no packet leaves or reaches the node */
	double up_bytes_per_s, down_bytes_per_s; /* limits of uplink and downlink; 0: no limit */
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
	double queue_s;  /* longest time that a packet may wait in one queue */
	size_t held_max; /* limit of the packets in transit on all links together */
};

/* Makes a network without any link. */
struct traffic *traffic_new(const struct traffic_options *o);
void traffic_free(struct traffic *t); /* NULL is allowed */

struct traffic_link *traffic_link(struct traffic *t, uint32_t from, uint32_t to);
struct traffic_node *traffic_node(struct traffic *t, uint32_t node);
size_t traffic_held(const struct traffic *t); /* returns the number of packets in transit */

/* Returns an unused packet. The caller fills it, and sends it or frees it. */
struct traffic_packet *traffic_packet_new(struct traffic *t);
void traffic_packet_free(struct traffic *t, struct traffic_packet *p);

/* Sends p->size bytes from node p->from to another node p->to. The network then owns p. */
void traffic_send(struct traffic *t, struct traffic_packet *p, int64_t now_ns);

/* Returns the time at which the next packet is due; TRAFFIC_NEVER: no packet is in transit. */
int64_t traffic_next_ns(const struct traffic *t);
/* Returns the next packet that has arrived by now_ns, which the caller then owns; NULL: none. The
 * packet's due_ns is the exact time of its arrival. */
struct traffic_packet *traffic_arrive(struct traffic *t, int64_t now_ns);

#endif
