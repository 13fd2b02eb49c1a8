/* devices.h - what several agents of one machine are to compute on.
 *
 *     A,B,...            in turns
 *     cuda:all[:bf16]    every GPU of this machine that can be used
 *
 * What a device is only the agent's program knows: it is asked which there are.
 */
#ifndef CLI_DEVICES_H
#define CLI_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { DEVICES_MOST = 64, DEVICES_NAME = 32 };

struct devices {
	char names[DEVICES_MOST][DEVICES_NAME];
	size_t n;
};

bool devices_several(const char *text); /* whether it says, or may say, more than one */
/* -EINVAL: an empty name, one too long, or too many; -ENODEV: cuda:all, and there is none. */
int devices_parse(struct devices *out, const char *text, struct error *err);

#endif
