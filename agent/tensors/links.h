/* links.h - what is sent to peers: the emulated network, injected faults, and the connections. */
#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/execution/route.h"
#include "wire/msg.h"

struct agent;

enum { LINKS_HEAD_BYTES = 512 }; /* of a tensor's message before its body: a route of 64 hops takes less */
#define TENSOR_MOST_BYTES ((size_t)1 << 30) /* one message: an activation, a piece */

size_t links_message_bytes(const struct agent *a);    /* most of a message to a peer */
size_t links_activation_bytes(const struct agent *a); /* of an activation or its gradient on its way */
size_t links_slice_bytes(const struct agent *a);      /* of a slice's piece, at most */

/* Has a connection to the node, or begins one: false where its address is not known, or where
 * dialing it failed a moment ago. */
bool links_dial(struct agent *a, uint16_t node);
/* Drops all that is under way to it, and the connection. */
void links_forget_peer(struct agent *a, uint16_t node);

/* Sends the output of r's position t to position t + 1's node; body is given. */
void links_send_output(struct agent *a, const struct route *r, uint32_t position,
		       bool evaluate, float *body, int64_t ended_us);
/* A slice, a state: head and body (given, by one of its users: delay_queue.h) to a node, no sooner than due. */
void links_send(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		uint32_t *users, size_t floats, int64_t ready_us, int64_t due_us);
/* How long a slice of that many replicas' sum takes on the emulated link, us; 0: it is not emulated. */
int64_t links_sync_us(const struct agent *a, uint16_t to, uint32_t replicas);
/* Sends a piece of a stage's weights; an emulated link carries one after another. */
void links_send_piece(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us);
/* Asks for a piece. */
void links_fetch(struct agent *a, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us);
/* Lets leave what is due, a bounded number of tensors. */
void links_pump(struct agent *a, int64_t now_us);
/* Drops held tensors of iterations up to this one. */
void links_drop_old(struct agent *a, uint64_t iteration);
/* How long it may take until something comes back on the link: a round trip with its spread, and what
 * the bytes under way need. */
int64_t links_expected_us(const struct agent *a, uint16_t to);
/* How long until a piece that is asked for there is here, us, if as many bytes a second come as go; 0: not known. */
int64_t links_piece_us(const struct agent *a, uint16_t from);

#endif
