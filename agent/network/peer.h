/* peer.h - another node, as this one knows it: a row of a table that several modules share.
 *
 * A row begins anew when the controller tells of another process there (join.c). Each field has one
 * module that writes it.
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
	post_peer_id dial;     /* our connection to it, for sending; 0 none */
	int64_t dial_again_us; /* not before; 0: it has not failed */
	bool used;
	bool blocked;          /* a tensor was due and could not leave, since probe.c's last look */
	int64_t link_free_us;  /* emulated link that carries one tensor at a time */
	int64_t piece_free_us; /* the same for pieces of weights */
	/* tensors.c */
	post_peer_id deferred; /* its connection to us, of which no sums are taken meanwhile; 0 none */
	/* misuse.c */
	uint64_t reported_in; /* the iteration in which this node reported it: nothing of it is used meanwhile; 0 none */
	uint64_t misfits_in; /* the last in which something of it fitted nothing, */
	uint32_t misfits;    /* so often */
	uint64_t malformed;  /* frames of its, as last seen */
	/* probe.c */
	bool doubted;        /* until a probe has come through */
	int64_t doubted_us;  /* since then */
	int64_t stuck_us;    /* nothing has moved since; 0: nothing waits */
	/* link_times.c */
	double held_s;       /* of n_held activations and gradients: time from task's end to departure, where that
			      * is emulated; else from departure to arrival */
	uint64_t n_held;
	double told_s;       /* that time, as last told */
	float bandwidth;     /* bytes per second, as last seen; 0 not known */
	/* measure.c */
	int64_t probed_us;   /* the last probe of its round trip, */
	uint32_t n_probes;   /* of so many */
};

#endif
