/* peer.h - an entry of the table of other nodes, which several modules share.
 *
 * join.c clears an entry when the controller announces a new process of that node. Headings in the
 * struct name the module that writes the fields below.
 */
#ifndef AGENT_NETWORK_PEER_H
#define AGENT_NETWORK_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/keys.h"
#include "wire/post.h"

/* A test that probe.c makes on a doubted link: does the network lose only the large messages? */
struct large_trial {
	/* The connection that was in use when probe.c began to doubt the link; 0: none. */
	post_peer_id old;
	post_peer_id dial;  /* the connection on which the last large probe was sent; 0: none */
	/* Time at which the first large probe left on the connection `dial`. */
	int64_t since_us;
	/* The link loses large messages. The evidence: for several times the expected time, the
	 * peer has answered small probes but no large probe (probe.c). */
	bool loses_large;
};

/* Address of a peer. join.c owns it. */
struct peer_place {
	/* The peer's address. A link-local address includes the interface of this machine. */
	char address[LINK_ADDRESS_SIZE];
	bool elsewhere; /* the peer is on another machine, or in another network of this machine */
};

struct peer {
	/* ---- join.c ---- */
	bool known;
	struct keys_public key;
	struct peer_place place;
	/* ---- links.c ---- */
	post_peer_id dial; /* the connection on which this node sends to the peer; 0: none */
	/* Time of the next attempt to dial, after a failure; 0: no failure. */
	int64_t dial_again_us;
	/* Time at which the connection was dialed, or at which probe.c began to doubt the
	 * link. */
	int64_t dialed_us;
	bool used;
	/* After the last check of probe.c, a tensor was due and could not leave. */
	bool blocked;
	/* The emulated link carries one tensor at a time, and is busy until this time. */
	int64_t link_free_us;
	/* The emulated link is busy with pieces of weights until this time. */
	int64_t piece_free_us;
	/* Number of activations, and number of gradients, that were sent to this peer. */
	uint32_t n_outputs[2];
	/* Signal-to-noise ratio, dB, of the last activation and the last gradient that were
	 * measured; 0: none measured. */
	float snr_db[2];
	/* ---- arrivals.c ---- */
	/* The peer's connection on which arrivals.c has stopped accepting sums; 0: none. */
	post_peer_id deferred;
	/* ---- misuse.c ---- */
	/* Iteration in which this node has reported the peer. Until the next start of an
	 * iteration, the peer's messages are ignored. 0: none. */
	uint64_t reported_in;
	uint64_t misfits_in; /* last iteration with unexpected messages of the peer */
	uint32_t misfits;    /* number of unexpected messages in iteration misfits_in */
	uint64_t malformed;  /* the peer's number of malformed frames at the last check */
	/* ---- probe.c ---- */
	/* The link may be cut. The doubt ends when the peer answers a large probe. */
	bool doubted;
	int64_t doubted_us;  /* time at which the doubt began */
	int64_t large_us;    /* time at which the last large probe left on this link */
	bool small_passes;   /* small messages are answered while the link is stuck */
	struct large_trial trial;
	/* Time since which messages wait without any acknowledgement; 0: the link is not stuck. */
	int64_t stuck_us;
	/* ---- link_times.c ---- */
	/* Sum of n_held delays of activations and gradients. A delay lasts from the end of the
	 * task until the tensor leaves (emulated link) or arrives (real link). */
	double held_s;
	uint64_t n_held;
	double reported_s; /* the mean delay in the last report, s */
	/* Bandwidth of the link in bytes per second, as last measured; 0: unknown. */
	float bandwidth;
	/* ---- measure.c ---- */
	int64_t probed_us; /* time at which the peer's round trip was last probed */
	uint32_t n_probes; /* number of probes sent to the peer so far */
};

#endif
