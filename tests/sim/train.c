/* train.c - implements wire/bandwidth/packet_train.h as if a firewall blocked UDP. Links are
 * therefore measured without trains of packets. */
#include <errno.h>
#include <string.h>

#include "wire/bandwidth/packet_train.h"

int packet_train_open(struct packet_train **out, const char *address, struct error *err)
{
	(void)out;
	return error_set(err, -EACCES, "%s: no UDP", address);
}

void packet_train_free(struct packet_train *t)
{
	(void)t;
}

int packet_train_fd(const struct packet_train *t)
{
	(void)t;
	return -1;
}

void packet_train_token(uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	memset(token, 0, PACKET_TRAIN_TOKEN_BYTES);
}

int packet_train_send(struct packet_train *t, const char *address,
		      const uint8_t token[PACKET_TRAIN_TOKEN_BYTES], uint32_t packets)
{
	(void)t;
	(void)address;
	(void)token;
	(void)packets;
	return -EACCES;
}

void packet_train_hear(struct packet_train *t)
{
	(void)t;
}

void packet_train_expect(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}

bool packet_train_heard(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES],
			struct packet_train_heard *out)
{
	(void)t;
	(void)token;
	(void)out;
	return false;
}

void packet_train_forget(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}
