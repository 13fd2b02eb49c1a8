/* packet_train.h - trains of packets that measure a link's bandwidth (dispersion.h).
 *
 * The packets are sent by UDP, to the port at which the peer listens. A packet contains a token,
 * a number and noise. The sender first announces the token in an encrypted message
 * (MSG_PACKET_TRAIN). Packets are never answered, so forged packets cannot make this process send
 * anything. Packets without an announced token can occupy only the memory for unannounced trains.
 * The kernel records when each packet arrived, so the measurement is correct even if this process
 * is busy. If a firewall blocks UDP, no packet arrives and the train gives no result. Only one
 * thread may use a struct packet_train. When the system has no room for packets, a call may
 * block, but only for some milliseconds.
 */
#ifndef WIRE_TRAIN_H
#define WIRE_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PACKET_TRAIN_TOKEN_BYTES 16
#define PACKET_TRAIN_MOST 512 /* largest number of packets in a train */

struct packet_train; /* opaque: sends and receives trains */

/* Opens the UDP socket. The caller frees *out with packet_train_free. address: the address at
 * which this process's post listens. -EINVAL: not a TCP address; other errors come from the
 * kernel. */
int packet_train_open(struct packet_train **out, const char *address, struct error *err);
void packet_train_free(struct packet_train *t); /* NULL is allowed */
int packet_train_fd(
	const struct packet_train *t); /* returns a descriptor to poll for POLLIN; -1: t is NULL */

/* Makes a random token. */
void packet_train_token(uint8_t token[PACKET_TRAIN_TOKEN_BYTES]);
/* Sends a train of at most PACKET_TRAIN_MOST packets to "tcp://ADDRESS:PORT", as fast as the
 * machine can. Returns the number of packets sent. -EINVAL: the address is not numeric. */
int packet_train_send(struct packet_train *t, const char *address,
		      const uint8_t token[PACKET_TRAIN_TOKEN_BYTES], uint32_t packets);

/* Receives the packets that have arrived, at most 1,024 in a call. */
void packet_train_hear(struct packet_train *t);
/* Reserves memory for an announced train, until packet_train_forget is called or
 * PACKET_TRAIN_PLACES further trains are announced. */
void packet_train_expect(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES]);
#define PACKET_TRAIN_PLACES 8

/* The packets and the rate of an announced train so far. */
struct packet_train_heard {
	uint32_t packets;   /* number of packets received so far */
	bool whole;         /* the last packet of the train was received */
	/* Bytes of payload per second that TCP would carry on this link; 0: too few packets. */
	double bytes_per_s;
};
/* Gives the packets and the rate of a train so far. Returns false if the train was not
 * announced. */
bool packet_train_heard(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES],
			struct packet_train_heard *out);
/* Frees the memory of a train. */
void packet_train_forget(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES]);

#endif
