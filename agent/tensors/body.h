/* body.h - the encoded bytes of a tensor that are sent, possibly to several nodes.
 *
 * A body has several users: the output that is kept for substitutes, each parcel, and each message
 * that the post has not yet delivered. The last one frees it, so no user needs a copy. Bodies
 * belong to the event loop; a thread that encodes one fills in its bytes while it is not ready.
 */
#ifndef AGENT_BODY_H
#define AGENT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
	void *data;   /* (bytes), malloc */
	size_t bytes;
	uint32_t users;
	bool ready;   /* false: a thread still encodes it */
	int64_t ready_us; /* when it was encoded; 0: when the tensor was computed */
};

/* Makes a body with one user. data (malloc) is given; NULL if it has no bytes. */
struct body *body_new(void *data, size_t bytes, bool ready);
struct body *body_hold(struct body *b); /* adds a user and returns the body */
/* Removes a user (struct body). NULL is allowed. */
void body_drop(void *body);

#endif
