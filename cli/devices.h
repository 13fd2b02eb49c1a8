/* devices.h - parses --device for several agents on one machine.
 *
 *     A,B,...            the agents get these devices in turn
 *     cuda:all[:bf16]    one agent for every usable GPU of this machine
 *
 * Only the program skippipe-agent knows the devices of a machine, and lists them with --devices.
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

/* Returns true if the text names several devices, or is cuda:all, which may stand for several. */
bool devices_several(const char *text);
/* Parses the text into a list of devices. -EINVAL: a name is empty or too long, or there are too
 * many names. -ENODEV: the text has cuda:all, but no GPU can be used. */
int devices_parse(struct devices *out, const char *text, struct error *err);

#endif
