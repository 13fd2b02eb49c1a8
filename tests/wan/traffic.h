/* traffic.h - packets on their way between the nodes of a test bed: queues, delays, losses.
 *
 *     i ==> way up of i ==> link i>j ==> latency +- jitter ==> way down of j ==> j
 *
 * Each directed pair has a link of its own, each node a way up and a way down that all its links
 * share (without limit unless said). A link and a way send one packet at a time at their bandwidth
 * and hold the others in a queue, which lets the last one fall when it would wait too long. What
 * a link has sent travels for its latency, a factor of 1 +- jitter at random for each packet; a packet
 * that would overtake one of its own link arrives with it instead, as nearly all real paths keep
 * the order. So packets that follow closely travel as long as the slowest of those before them.
 *
 * Pure: no clock, no I/O; chance comes from the seed, a stream for each link. Times are
 * nanoseconds of one clock that never goes back; sizes are those of IP packets.
 */
#ifndef WAN_TRAFFIC_H
#define WAN_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_MTU 1500
#define TRAFFIC_NEVER INT64_MAX

struct traffic; /* opaque */

/* A directed link. The caller changes its first part at any time: what is on its way keeps its
 * time, but does not arrive once there is no way any more. */
struct traffic_link {
	double latency_s, bandwidth_bytes_per_s; /* < 0, <= 0: there is no such link */
	double loss;   /* the share of packets that are lost, 0..1 */
	double jitter; /* of the latency, 0..1 */
	bool cut;      /* nothing passes */

	uint64_t sent_packets, sent_bytes;       /* what i gave it */
	uint64_t arrived_packets, arrived_bytes; /* what j got */
	uint64_t lost, overflowed, cut_off;      /* packets: by chance, a full queue, no way */
};

struct traffic_node {
	bool away;           /* nothing leaves or reaches it */
	double up_bytes_per_s, down_bytes_per_s; /* of all its links together; 0: no limit */
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
	size_t held_most; /* packets held at once, all together */
};

/* All links absent. NULL: out of memory. */
struct traffic *traffic_new(const struct traffic_options *o);
void traffic_free(struct traffic *t); /* NULL is allowed */

struct traffic_link *traffic_link(struct traffic *t, uint32_t from, uint32_t to);
struct traffic_node *traffic_node(struct traffic *t, uint32_t node);
size_t traffic_held(const struct traffic *t); /* packets on their way */

/* An empty packet to be filled in and sent, or given back. NULL: out of memory. */
struct traffic_packet *traffic_packet_new(struct traffic *t);
void traffic_packet_free(struct traffic *t, struct traffic_packet *p);

/* p->from sends p->size bytes to p->to, another node; p is taken over. */
void traffic_send(struct traffic *t, struct traffic_packet *p, int64_t now_ns);

/* When the next packet is due; TRAFFIC_NEVER: none is on its way. */
int64_t traffic_next_ns(const struct traffic *t);
/* The next packet that has arrived by now, the caller's from then on; NULL: none yet. Its
 * due_ns says when it was to. */
struct traffic_packet *traffic_arrive(struct traffic *t, int64_t now_ns);

#endif
