/* node_fields.h - the fields of a node that consoles receive.
 *
 * struct msg_see_node (msg.h) and its layout are generated from these rows. node_message
 * (controller/operator/console_messages.c) fills a new field, both in a run and in a replay. A
 * function and a row of `columns` in tui/views/view_nodes.c show the field.
 *
 *     NUMBER(kind on the wire, type, field, largest value or 0 for any)
 *     TEXT(field, size)
 *
 * On the wire the figures of the node's GPU follow these fields (base/gpu_figures.h).
 */
#ifndef WIRE_NODE_FIELDS_H
#define WIRE_NODE_FIELDS_H

#define NODE_FIELDS(NUMBER, TEXT) \
	NUMBER(U16, uint16_t, node, MSG_NODES - 1) \
	NUMBER(U8, uint8_t, stage, MSG_STAGES - 1) \
	NUMBER(U16, uint16_t, layers, 0)      /* number of layers of the node's stage */ \
	NUMBER(U8, uint8_t, state, NODE_LAST) /* enum node_state */ \
	NUMBER(U8, uint8_t, slots, 0) \
	NUMBER(U8, uint8_t, memory, 0) \
	NUMBER(U8, uint8_t, running, 1) \
	NUMBER(U32, uint32_t, queued, 0) \
	NUMBER(U64, int64_t, heard_us, 0) /* last heartbeat, on the controller's clock */ \
	NUMBER(U64, int64_t, since_us, 0) /* time at which the node entered its state */ \
	NUMBER(U64, uint64_t, committed, 0) \
	NUMBER(U64, uint64_t, hash, 0) \
	NUMBER(U8, uint8_t, hash_agrees, 1) \
	NUMBER(F32, float, forward_s, 0) /* planned time of a forward pass, in plan seconds */ \
	NUMBER(F32, float, backward_s, 0) \
	NUMBER(F32, float, loss_s, 0) \
	NUMBER(F32, float, measured_forward_s, 0) /* as measured, without emulation */ \
	NUMBER(F32, float, measured_backward_s, 0) \
	NUMBER(U64, uint64_t, rss_bytes, 0) \
	/* Percentage of the time in which the agent waits for a processor, because other \
	 * programs use the processors too. 0: no other program uses them, or this is a replay. */ \
	NUMBER(U8, uint8_t, waits_percent, 0) \
	NUMBER(U64, uint64_t, sent_bytes, 0) \
	NUMBER(U64, uint64_t, received_bytes, 0) \
	NUMBER(U64, uint64_t, resent, 0) \
	NUMBER(U64, int64_t, pid, 0) \
	/* Predicted time of an iteration without this node, in plan seconds, by a plan made in \
	 * advance. Negative: no plan works without the node; 0: unknown. */ \
	NUMBER(F32, float, lost_s, 0) \
	TEXT(name, 64) /* name under which the node's key was admitted */ \
	TEXT(location, 32) \
	TEXT(device, 128) \
	TEXT(host, 64) \
	TEXT(why, 96) /* why the node is in a state other than LIVE */

#endif
