/* peer.h - an entry of the table of other nodes, which several modules share.
 *
 * join.c clears an entry when the controller announces a new process of that node. Each field is
 * written by the module named above it.
 */
#ifndef AGENT_NETWORK_PEER_H
#define AGENT_NETWORK_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/keys.h"
#include "wire/post.h"

struct peer {
	/* join.c */
	bool known;
	struct keys_public key;
	char address[128];
	/* links.c */
	post_peer_id dial;     /* the connection for sending to it; 0 none */
	int64_t dial_again_us; /* after a failure: when to dial again; otherwise 0 */
	bool used;
	bool blocked;          /* since probe.c's last check a tensor was due and could not leave */
	int64_t link_free_us;  /* emulated link that carries one tensor at a time */
	int64_t piece_free_us; /* the same for pieces of weights */
	uint32_t n_outputs[2]; /* activations, and gradients, that were sent to it */
	float snr_db[2];       /* of the last of each that was measured; 0: none */
	/* tensors.c */
	post_peer_id deferred; /* its connection, while no sums are accepted from it; 0 none */
	/* misuse.c */
	uint64_t reported_in; /* iteration in which it was reported and is ignored; 0 none */
	uint64_t misfits_in; /* last iteration with messages of it that fit nothing */
	uint32_t misfits;    /* number of such messages in that iteration */
	uint64_t malformed;  /* its malformed frames at the last check */
	/* probe.c */
	bool doubted;        /* the link is suspected to be cut, until a large probe returns */
	int64_t doubted_us;  /* when that began */
	int64_t large_us;    /* when the last large probe left */
	int64_t dialed_us;   /* when the doubted link was last dialed again */
	bool small_passes;   /* small messages are answered although the link is stuck */
	int64_t stuck_us;    /* nothing was acknowledged since then; 0: nothing waits */
	/* link_times.c */
	double held_s;       /* sum of n_held delays of activations and gradients: on emulated links
			      * from the task's end to departure, otherwise to arrival */
	uint64_t n_held;
	double reported_s;       /* the delay last reported */
	float bandwidth;     /* bytes per second, as last measured; 0 not known */
	/* measure.c */
	int64_t probed_us;   /* when its round trip was last probed */
	uint32_t n_probes;   /* probes so far */
};

#endif
