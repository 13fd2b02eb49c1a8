/* peers.h - the table of other nodes, and the connections to them. */
#ifndef AGENT_NETWORK_PEERS_H
#define AGENT_NETWORK_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/network/peer.h"
#include "agent/shared/fault.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "base/rng.h"
#include "wire/post.h"

/* In runs of up to this many nodes all peers are dialed at once. */
enum { PEERS_DIAL_ALL = 64 };

/* The peers of an agent. The pointers to other parts of the agent are borrowed. */
struct peers {
	struct post *post; /* connections to the other nodes, and from them */
	struct peer *list; /* array with one entry for each of the run's n_nodes nodes */
	/* Random numbers, for injected losses and for the pauses between trains of packets. */
	struct rng rng;
	const struct run *run;
	const struct faults *faults;
	struct tell *tell;
};

/* Dials the node unless it is dialed already. Returns false if the node's address is not known,
 * or if dialing the node failed less than a second ago. */
bool peers_dial(struct peers *peers, uint16_t node);
/* Closes the connection to the node. No message may be waiting on this connection. */
void peers_close(struct peers *peers, uint16_t node);
/* Replaces the connection to the node by a new connection. No message may be waiting on the old
 * connection. */
void peers_redial(struct peers *peers, uint16_t node);
/* Returns how long an answer from the node may take, us. This is a round trip, an allowance for
 * its variation, and the transfer time of the unacknowledged bytes. */
int64_t peers_expected_us(const struct peers *peers, uint16_t to);
/* Returns the expected time from the request for a piece until the piece arrives, us; 0: not
 * known. Assumes that the link is equally fast in both directions. floats: number of floats of
 * the piece in each of its three arrays. */
int64_t peers_piece_us(const struct peers *peers, uint16_t from, size_t floats);

#endif
