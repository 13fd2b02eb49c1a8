/* devices.h - the devices of several agents on one machine.
 *
 *     A,B,...            agents get them in turns
 *     cuda:all[:bf16]    every usable GPU of this machine
 *
 * Only the agent's program knows the devices of a machine, so `skippipe-agent --devices` lists
 * them.
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

/* Returns true if the text names more than one device, or may stand for more than one
 * (cuda:all). */
bool devices_several(const char *text);
/* Expands the text to a list of devices. -EINVAL: a name is empty or too long, or there are too
 * many names; -ENODEV: cuda:all, but there is no GPU. */
int devices_parse(struct devices *out, const char *text, struct error *err);

#endif
