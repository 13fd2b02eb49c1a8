/* The functions of wire/train.h, if UDP does not pass between processes. Links are then measured
 * without trains of packets. */
#include <errno.h>
#include <string.h>

#include "wire/train.h"

int train_open(struct train **out, const char *address, struct error *err)
{
	(void)out;
	return error_set(err, -EACCES, "%s: no UDP", address);
}

void train_free(struct train *t)
{
	(void)t;
}

int train_fd(const struct train *t)
{
	(void)t;
	return -1;
}

void train_token(uint8_t token[TRAIN_TOKEN_BYTES])
{
	memset(token, 0, TRAIN_TOKEN_BYTES);
}

int train_send(struct train *t, const char *address, const uint8_t token[TRAIN_TOKEN_BYTES],
	       uint32_t packets)
{
	(void)t;
	(void)address;
	(void)token;
	(void)packets;
	return -EACCES;
}

void train_hear(struct train *t)
{
	(void)t;
}

void train_expect(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}

bool train_heard(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES], struct train_heard *out)
{
	(void)t;
	(void)token;
	(void)out;
	return false;
}

void train_forget(struct train *t, const uint8_t token[TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}
