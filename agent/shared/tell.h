/* tell.h - the connection to the controller: messages, reports of trouble, lines of the log.
 *
 * Every module that reports something uses struct tell, which calls no other module. tell_last
 * requests that the agent ends. The loop ends the agent as soon as the controller has received
 * all messages.
 */
#ifndef AGENT_TELL_H
#define AGENT_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "wire/msg.h"
#include "wire/post.h"

/* Warnings and errors that have not been sent to the controller yet. */
struct log_lines {
	struct msg_log list[8]; /* n lines, the oldest first */
	/* `n` lines are in the list. `dropped` counts the lines that did not fit into the
	 * list. */
	uint32_t n, dropped;
	int64_t next_us;        /* time from which the next line may be sent */
};

/* Counts of messages. All modules increment them. */
struct tally {
	uint64_t sequence; /* number of the newest message sent to any process */
	uint64_t refused;  /* number of received messages that are invalid or unexpected */
	/* Number of messages that arrived too late to be used, or that could not be sent. */
	uint64_t dropped;
};

/* The time at which the process ends, and its exit status. */
struct ending {
	bool leaving;
	int status; /* exit status of the process */
	/* The process ends at this time at the latest, even if messages are unacknowledged. */
	int64_t leave_by_us;
	int64_t leave_from_us; /* the process does not end before this time */
	/* Time at which a draining agent leaves, with or without the controller's STOP; 0: the
	 * agent is not draining. */
	int64_t drain_by_us;
};

/* The clock of the controller. The controller's PING reports the offset. */
struct controller_clock {
	int64_t offset_us; /* the agent's clock + offset_us = the controller's clock */
	bool is_measured;
};

/* The connection of an agent to its controller. */
struct tell {
	struct log *log; /* borrowed */
	struct post *post;
	post_peer_id controller;
	struct controller_clock clock;
	int64_t now_us;     /* time at which this part of the loop's turn began; the loop sets it */
	struct tally tally; /* counts to which every module adds */
	struct log_lines lines;
	struct ending end;
};

/* Gives *m its number, encodes it, and sends it with its body. If the message is RELIABLE and
 * cannot be sent, logs this and counts the message as dropped. */
void tell_controller(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us);
/* Logs the text and sends it to the controller in a TROUBLE message. fatal: the agent then ends
 * with status 1. */
void tell_trouble(struct tell *t, bool fatal, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Logs a warning or an error, and keeps it for the controller. */
void tell_log(struct tell *t, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sends the oldest line kept by tell_log, but at most one line in a second. Call it only after a
 * controller has admitted the agent. */
void tell_turn(struct tell *t, int64_t now_us);
/* Begins to drain: heartbeats announce that the agent will leave, and the controller sends STOP
 * when the agent may leave. Returns false if the agent is already draining, or has no
 * controller. */
bool tell_drain(struct tell *t, uint32_t notice_s, int64_t now_us);
/* Takes the controller's clock from its PING. */
void tell_set_clock(struct tell *t, const struct msg_ping *ping);
/* These functions convert a time of this agent's clock to the controller's clock, and vice versa;
 * 0: unknown. */
int64_t tell_to_controller_us(const struct tell *t, int64_t own_us);
int64_t tell_from_controller_us(const struct tell *t, int64_t controller_us);
/* Requests that the agent ends with this exit status as soon as the controller has acknowledged
 * all messages. The agent waits for the acknowledgements for at most LEAVE_US or three timeouts
 * of the link, whichever is longer. A second call changes nothing. */
void tell_last(struct tell *t, int status, int64_t now_us);

#endif
