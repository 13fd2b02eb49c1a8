/* tun.h - connects a node to the network of the test bed by a TUN device in the node's
 * namespace. */
#ifndef WAN_TUN_H
#define WAN_TUN_H

#include <stdint.h>

#include "base/error.h"

/* Makes the device `wan0` in the named network namespace (ip netns add), and gives its descriptor.
 * The device gets the address (in host byte order), the MTU of traffic.h, and the default route.
 * Brings wan0 and lo up.
 *
 * *fd reads and writes IP packets without blocking. Closing it removes the device. -EPERM, -EACCES,
 * -ENOENT, -ENODEV: this machine does not permit it. */
int tun_open(const char *namespace, uint32_t address, int *fd, struct error *err);

#endif
