/* message_kinds.h - the list of all kinds of messages.
 *
 * Macros generate `enum msg_type`, the members of `struct msg` (msg.h) and the list of layouts
 * (layouts.c) from these rows. A new kind needs a row here, a struct in msg.h, and a table of its
 * fields in layouts.c.
 *
 * X(enumerator, name of the member and the struct, number on the wire, true if a body follows)
 *
 * A number changes only together with MSG_VERSION.
 */
#ifndef WIRE_MESSAGE_KINDS_H
#define WIRE_MESSAGE_KINDS_H

#define MESSAGE_KINDS(X) \
	/* messages from an agent to the controller */ \
	X(HELLO, hello, 1, false) \
	X(READY, ready, 2, false) \
	X(HEARTBEAT, heartbeat, 3, false) \
	X(REPORT, report, 4, false) \
	X(REDUCED, reduced, 5, false) \
	X(COMMITTED, committed, 6, false) \
	X(EVALUATED, evaluated, 7, false) \
	X(TROUBLE, trouble, 8, false) \
	X(LINKS, links, 9, false) \
	X(KEPT, kept, 10, false) \
	X(SAVED, saved, 11, false) \
	X(UNREADY, unready, 12, false) \
	X(MEASURED, measured, 13, false) \
	X(LOG, log, 14, false) \
	X(CONNECTED, connected, 15, false) \
	/* messages both ways between a process with an invitation and the controller */ \
	X(JOIN, join, 16, false) \
	X(ADMITTED, admitted, 17, false) \
	/* messages from the controller to an agent */ \
	X(WELCOME, welcome, 32, false) \
	X(REFUSED, refused, 33, false) \
	X(PEERS, peers, 34, false) \
	X(ASSIGN, assign, 35, false) \
	X(PLAN, plan, 36, false) \
	X(START, start, 37, false) \
	X(REROUTE, reroute, 38, false) \
	X(REDUCE, reduce, 39, false) \
	X(COMMIT, commit, 40, false) \
	X(EVALUATE, evaluate, 41, false) \
	X(FAULT, fault, 42, false) \
	X(PING, ping, 43, false) \
	X(STOP, stop, 44, false) \
	X(KEEP, keep, 45, false) \
	X(SAVE, save, 46, false) \
	X(RESTORE, restore, 47, false) \
	X(MEASURE, measure, 49, false) \
	X(CONNECT, connect, 52, false) \
	/* messages both ways between controller and agent */ \
	X(FILE_ASK, file_ask, 50, false) \
	X(FILE_PART, file_part, 51, true) \
	/* messages between agents */ \
	X(TENSOR, tensor, 64, true) \
	X(FETCH, fetch, 65, false) \
	X(PACKET_TRAIN, packet_train, 66, false) \
	X(PACKET_TRAIN_HEARD, packet_train_heard, 67, false) \
	/* messages from a console to the controller */ \
	X(ATTACH, attach, 96, false) \
	X(COMMAND, command, 97, false) \
	/* from the controller to a console: the run's state, in numbered messages */ \
	X(SEE_RUN, see_run, 128, false) \
	X(SEE_STATUS, see_status, 129, false) \
	X(SEE_NODE, see_node, 130, false) \
	X(SEE_PLAN, see_plan, 131, false) \
	X(SEE_TASKS, see_tasks, 132, false) \
	X(SEE_ITERATION, see_iteration, 133, false) \
	X(SEE_VALIDATION, see_validation, 134, false) \
	X(SEE_NOTE, see_note, 135, false) \
	X(SEE_FAULT, see_fault, 136, false) \
	X(SEE_PREVIEW, see_preview, 137, false) \
	X(SEE_REPLY, see_reply, 138, false) \
	X(SEE_LINKS, see_links, 139, false) \
	X(SEE_SYNCED, see_synced, 140, false)

#endif
