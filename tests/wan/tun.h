/* tun.h - connects a node to the network of the test bed: a TUN device in the node's namespace. */
#ifndef WAN_TUN_H
#define WAN_TUN_H

#include <stdint.h>

#include "base/error.h"

/* Makes `wan0` in the network namespace of that name (ip netns add), with the address (host byte
 * order), the MTU of traffic.h and the default route over it, and brings it and `lo` up. *fd reads
 * and writes IP packets without blocking. Closing it removes the device. The caller stays in its
 * own namespace. -EPERM, -EACCES, -ENOENT, -ENODEV: this machine does not permit it. */
int tun_open(const char *namespace, uint32_t address, int *fd, struct error *err);

#endif
