/* links.h - sends tensors to peers, with the emulated network's delays and injected faults. */
#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/network/link_times.h"
#include "agent/network/peers.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "agent/shared/route.h"
#include "agent/shared/run.h"
#include "agent/tensors/body.h"
#include "agent/tensors/codec_threads.h"
#include "agent/tensors/delay_queue.h"
#include "model/codec/codec.h"
#include "model/stage.h"
#include "wire/msg.h"

/* Limit of a tensor message's header; a header with a route of 64 hops is shorter. */
enum { LINKS_HEAD_BYTES = 512 };
#define TENSOR_MOST_BYTES ((size_t)1 << 30) /* limit of one message */

/* The transfers of an agent. All pointers are borrowed. */
struct links {
	/* The options of these names (agent_options); 0: their defaults. */
	size_t message_bytes, piece_bytes, threads_from_bytes;
	/* NULL: the event loop encodes and decodes by itself. */
	struct codec_threads *codec_threads;
	struct peers *peers;
	struct link_times *link_times;
	struct delay_queue *delay_queue;
	const struct run *run;
	const struct held *held;
	const struct progress *progress;
	const struct faults *faults;
	struct tell *tell;
};

/* Returns the size limit of a message to a peer. */
size_t links_message_bytes(const struct links *l);
/* Returns the encoding of an activation, or of its gradient, in the present iteration or
 * evaluation, and sets its size in bytes. */
struct codec links_codec(const struct links *l, enum tensor_kind kind, bool evaluate);
size_t links_chain_bytes(const struct links *l, enum tensor_kind kind, bool evaluate);
/* Returns the size limit of a slice's piece. */
size_t links_slice_bytes(const struct links *l);

/* Drops the tensors held for a node, and the connection to it. */
void links_forget_peer(struct links *l, uint16_t node);

/* Decides how the stage gives the output of r's position. Returns true if the stage encodes it as
 * it travels, and no one on this machine reads its numbers: the output then leaves the device
 * beside the next task. Otherwise the stage gives fp32. *codec: the encoding. */
bool links_output_leaves(const struct links *l, const struct route *r, uint32_t position,
			 bool evaluate, struct codec *codec);
/* Encodes the output of r's position for the next position's node. leaving: the stage has encoded
 * it with output.codec, and a thread collects it; NULL: the output has floats. This function owns
 * both from now on, and the caller is the body's first user. A thread encodes a large output. NULL:
 * no memory, which was reported to the controller, or a format that the iteration no longer has. */
struct body *links_encode(struct links *l, const struct route *r, uint32_t position, bool evaluate,
			  struct tensor_bytes output, struct stage_output *leaving);
/* Takes the result of a thread's encoding. */
void links_encoded(struct links *l, const struct codec_job *job);
/* Sends the encoded output of r's position to the next position's node, once the body is ready; one
 * user of the body is dropped when it has left. */
void links_send_output(struct links *l, const struct route *r, uint32_t position, bool evaluate,
		       struct body *body, int64_t ended_us);
/* Sends a tensor to a node, not before due_us. One user of the body is dropped when it has left;
 * NULL: no bytes. */
void links_send(struct links *l, uint16_t to, const struct msg_tensor *head, struct body *body,
		int64_t ready_us, int64_t due_us);
/* Returns true if threads encode and decode the activations of this stage. */
bool links_use_threads(const struct links *l);
/* Returns how long a slice takes on the emulated link, us, if this many replicas sum; 0: the link
 * is not emulated. */
int64_t links_sync_us(const struct links *l, uint16_t to, uint32_t replicas);
/* Sends a piece of a stage's weights. An emulated link carries one piece at a time. */
void links_send_piece(struct links *l, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us);
/* Requests a piece of a stage's weights. */
void links_fetch(struct links *l, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us);
/* Sends the tensors that are due, a bounded number in a call. */
void links_pump(struct links *l, int64_t now_us);
/* Drops held tensors of iterations up to this one. */
void links_drop_old(struct links *l, uint64_t iteration);

#endif
