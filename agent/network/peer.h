/* peer.h - an entry of the table of other nodes, which several modules share.
 *
 * join.c clears an entry when the controller announces a new process of that node. A heading names
 * the module that writes the fields below it.
 */
#ifndef AGENT_NETWORK_PEER_H
#define AGENT_NETWORK_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/keys.h"
#include "wire/post.h"

/* A test whether a link that may be cut loses only large messages. probe.c owns it. */
struct large_trial {
	post_peer_id old;   /* the connection when probe.c began to doubt the link; 0: none */
	post_peer_id dial;  /* the connection of the last large probe; 0: none */
	int64_t since_us;   /* when the first large probe on that connection left */
	bool is_lost;       /* small probes were answered for long enough, and no large one */
};

/* Where a peer is. join.c owns it. */
struct peer_place {
	/* The peer's address, with a zone of this machine if it needs one. */
	char address[LINK_ADDRESS_SIZE];
	bool elsewhere; /* the peer is on another machine, or in another network of this machine */
};

struct peer {
	/* ---- join.c ---- */
	bool known;
	struct keys_public key;
	struct peer_place place;
	/* ---- links.c ---- */
	post_peer_id dial;     /* the connection for sending to this peer; 0: none */
	int64_t dial_again_us; /* when to dial again after a failure; 0: no failure */
	int64_t dialed_us;     /* when the connection was dialed, or probe.c began to doubt it */
	bool used;
	bool blocked;          /* since probe.c's last check a tensor was due and could not leave */
	/* When the emulated link, which carries one tensor at a time, is free again. */
	int64_t link_free_us;
	int64_t piece_free_us; /* when the emulated link is free again for pieces of weights */
	/* Number of activations, and number of gradients, that were sent to this peer. */
	uint32_t n_outputs[2];
	/* Signal-to-noise ratio (dB) of the activation and of the gradient that were last measured;
	 * 0: none. */
	float snr_db[2];
	/* ---- arrivals.c ---- */
	/* The peer's connection on which arrivals.c has stopped accepting sums; 0: none. */
	post_peer_id deferred;
	/* ---- misuse.c ---- */
	uint64_t reported_in; /* iteration in which the peer was reported and is ignored; 0: none */
	uint64_t misfits_in;  /* last iteration with messages of the peer that fit nothing */
	uint32_t misfits;     /* number of such messages in iteration misfits_in */
	uint64_t malformed;  /* the peer's number of malformed frames at the last check */
	/* ---- probe.c ---- */
	bool doubted;        /* the link is suspected to be cut, until a large probe returns */
	int64_t doubted_us;  /* when the doubt began */
	int64_t large_us;    /* when the last large probe left on this link */
	bool small_passes;   /* small messages are answered while the link is stuck */
	struct large_trial trial;
	int64_t stuck_us;    /* time since which nothing was acknowledged; 0: nothing waits */
	/* ---- link_times.c ---- */
	double held_s;       /* sum of n_held delays of activations and gradients: from the task's
			      * end to departure on emulated links, otherwise to arrival */
	uint64_t n_held;
	double reported_s;       /* the delay in the last report */
	/* Bandwidth of the link in bytes per second, as last measured; 0: unknown. */
	float bandwidth;
	/* ---- measure.c ---- */
	int64_t probed_us; /* when the peer's round trip was last probed */
	uint32_t n_probes; /* number of probes sent to the peer so far */
};

#endif
