/* identity.h - the private parts of a key pair, visible to keys.c and noise.c only. */
#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include "wire/keys.h"

struct keys_identity {
	struct keys_public public;
	uint8_t secret[KEYS_BYTES];
};

#endif
