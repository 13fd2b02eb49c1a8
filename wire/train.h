/* train.h - trains of packets, to measure what a way carries (dispersion.h).
 *
 * They are UDP, beside the listening address: at its port. What is in them is a token, which the sender
 * has told the receiver before, sealed (MSG_TRAIN), a number, and noise. Nothing is ever answered to a
 * packet, so nobody can be made to send by one; who does not know the token can have some of few places
 * in memory, which those that were told of do not lose to it. The kernel says when each packet
 * arrived: how late this process is does not matter. Where UDP does not pass nothing is heard, and that is
 * all. Single-threaded, blocks for at most some milliseconds, where the system
 * has no room for more.
 */
#ifndef WIRE_TRAIN_H
#define WIRE_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TRAIN_TOKEN_BYTES 16
#define TRAIN_MOST        512 /* packets */

struct train; /* opaque: sends trains, and hears them */

/* address: where the post listens, as post_listen says it. Gives *out (train_free). -EINVAL it is none
 * of TCP; else the system's reason, in words. */
int train_open(struct train **out, const char *address, struct error *err);
void train_free(struct train *t); /* NULL is allowed */
int train_fd(const struct train *t); /* to poll for POLLIN; -1: t is NULL */

/* A fresh one. */
void train_token(uint8_t token[TRAIN_TOKEN_BYTES]);
/* Sends so many packets, at most TRAIN_MOST, to "tcp://ADDRESS:PORT", as fast as the machine can: returns
 * how many left, or < 0: -EINVAL the address is not a number. */
int train_send(struct train *t, const char *address, const uint8_t token[TRAIN_TOKEN_BYTES],
	uint32_t packets);

/* Takes what has come, a bounded number of packets. */
void train_hear(struct train *t);
/* A train was announced: it keeps its place until it is taken or another TRAIN_PLACES were announced. */
void train_expect(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES]);
#define TRAIN_PLACES 8

/* Of an announced one. */
struct train_heard {
	uint32_t packets;     /* that came so far */
	bool whole;           /* the last one is among them */
	double bytes_per_s;   /* that TCP would carry as fast; 0: too few came */
};
/* False: it is not known. */
bool train_heard(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES],
	struct train_heard *out);
/* The train of that token is not waited for any more. */
void train_forget(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES]);

#endif
