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

/* Limit of the header of a tensor message, bytes. A header with a route of 64 hops is shorter. */
enum { LINKS_HEAD_BYTES = 512 };

/* The transfers of an agent. All pointers are borrowed. */
struct links {
	/* The values of the fields with these names in agent_options; 0: the default. */
	size_t message_bytes, piece_bytes, threads_from_bytes;
	/* NULL: there are no threads, so the event loop encodes and decodes. */
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
/* Returns the codec for an activation, or for the gradient of an activation. evaluate: true for
 * the newest evaluation, false for the present iteration. */
struct codec links_codec(const struct links *l, enum tensor_kind kind, bool evaluate);
size_t links_chain_bytes(const struct links *l, enum tensor_kind kind, bool evaluate);
/* Returns the size limit of a slice's piece. */
size_t links_slice_bytes(const struct links *l);

/* Drops the tensors that wait for a node, and closes the connection to the node. */
void links_forget_peer(struct links *l, uint16_t node);

/* Decides in which format the stage gives the output of the task at r's position, and sets *codec
 * to this format. Returns true if the stage itself gives the output in the format in which it is
 * sent. The output then leaves the device during the next task. Returns false, with fp32, if the
 * stage cannot encode, if no other node receives the output, or if this node needs the numbers,
 * for example to measure noise. */
bool links_output_leaves(const struct links *l, const struct route *r, uint32_t position,
			 bool evaluate, struct codec *codec);
/* Encodes the output of the task at r's position for the node of the next position. If `leaving`
 * is NULL, the output has floats. Otherwise the stage has encoded the output with output.codec,
 * and a thread collects it. This function owns output and leaving from now on. Returns the body,
 * of which the caller is the first user. A large output is encoded by a thread, so its body may
 * not be ready yet. Returns NULL if the iteration has changed its format meanwhile. Also returns
 * NULL if there is no memory, and reports this to the controller. */
struct body *links_encode(struct links *l, const struct route *r, uint32_t position, bool evaluate,
			  struct tensor_bytes output, struct stage_output *leaving);
/* Takes the result of a job of the threads that encoded an output. */
void links_encoded(struct links *l, const struct codec_job *job);
/* Sends the encoded output of the task at r's position to the node of the next position, as soon
 * as the body is ready. Drops one user of the body when the output has left. */
void links_send_output(struct links *l, const struct route *r, uint32_t position, bool evaluate,
		       struct body *body, int64_t ended_us);
/* Sends a tensor to a node, not before due_us. Drops one user of the body when the tensor has left.
 * body NULL: no bytes. */
void links_send(struct links *l, uint16_t to, const struct msg_tensor *head, struct body *body,
		int64_t ready_us, int64_t due_us);
/* Returns true if threads encode and decode the activations of this stage. */
bool links_use_threads(const struct links *l);
/* Returns how long the transfer of a slice takes on the emulated link, us; 0: the link is not
 * emulated. replicas: number of replicas that take part in the sum. */
int64_t links_sync_us(const struct links *l, uint16_t to, uint32_t replicas);
/* Sends a piece of a stage's weights and moments. An emulated link carries one piece at a time. */
void links_send_piece(struct links *l, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us);
/* Requests a piece of a stage's weights and moments from a node. */
void links_fetch(struct links *l, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us);
/* Sends the tensors that are due, a bounded number in a call. */
void links_pump(struct links *l, int64_t now_us);
/* Drops waiting tensors of this iteration and of older iterations. There are three exceptions.
 * Sums stay for some more iterations, evaluations of this iteration stay, and pieces of weights
 * always stay. */
void links_drop_old(struct links *l, uint64_t iteration);

#endif
