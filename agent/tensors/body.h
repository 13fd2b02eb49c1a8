/* body.h - the encoded bytes of a tensor that are sent, possibly to several nodes.
 *
 * The users of a body are the output that is kept for substitutes, each parcel, and each message
 * that the post has not yet delivered. The last user frees the body, so no user needs a copy.
 * Bodies belong to the event loop. While `ready` is false, a thread encodes the tensor into the
 * bytes.
 */
#ifndef AGENT_BODY_H
#define AGENT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
	void *data;   /* `bytes` bytes from malloc */
	size_t bytes;
	uint32_t users;
	bool ready;   /* false: a thread still encodes the bytes */
	/* Time at which a thread ended the encoding of the bytes; 0: no thread has encoded
	 * them. */
	int64_t ready_us;
};

/* Makes a body with one user. `data` is from malloc and belongs to the body from now on. data
 * NULL: no bytes. */
struct body *body_new(void *data, size_t bytes, bool ready);
struct body *body_hold(struct body *b); /* adds a user and returns the body */
/* Removes a user. The last user frees the body. The argument is a struct body; NULL is
 * allowed. */
void body_drop(void *body);

#endif
