/* tell.h - the agent's word to the controller: messages, troubles, and the last of them.
 *
 * The lowest of the agent's modules that send anything: every other may tell, and this one calls
 * none of them. What was told last ends the agent: tell_last only says so, and the loop leaves once
 * the controller has heard it.
 */
#ifndef AGENT_TELL_H
#define AGENT_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/post.h"

struct agent;

/* Numbers, encodes and sends *m. A RELIABLE one that cannot be sent is counted as dropped and
 * logged. */
void tell_controller(struct agent *a, struct msg *m, enum post_flags flags, int64_t now_us);
/* A TROUBLE with these words, logged too, as of the turn's time. fatal: it is the last word, and the
 * exit status 1. */
void tell_trouble(struct agent *a, bool fatal, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Nothing more is to be told: the agent is to end with this exit status, once what was told is
 * heard, or is not in a second or three of the link's timeouts. Said again: nothing. */
void tell_last(struct agent *a, int status, int64_t now_us);

#endif
