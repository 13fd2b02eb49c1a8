/* tun.h - a node's way into the network: a TUN device in its namespace. */
#ifndef WAN_TUN_H
#define WAN_TUN_H

#include <stdint.h>

#include "base/error.h"

/* Makes `wan0` in the network namespace of that name (ip netns add), with the address (host byte
 * order), the MTU of traffic.h and the default route over it, and brings it and `lo` up. *fd reads
 * and writes IP packets, and does not block; the device is gone when it is closed. The caller stays
 * in its own namespace. -EPERM, -EACCES, -ENOENT, -ENODEV: this machine does not permit it. */
int tun_open(const char *namespace, uint32_t address, int *fd, struct error *err);

#endif
