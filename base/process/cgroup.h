/* cgroup.h - limits of this process's control group (version 2) and of the groups above it.
 * Containers, Kubernetes and systemd set them. */
#ifndef BASE_PROCESS_CGROUP_H
#define BASE_PROCESS_CGROUP_H

#include <stdint.h>

/* Returns the smallest limit of this process's group and the groups above it. limit_of returns the
 * limit of the group in a folder, UINT64_MAX if it has none. UINT64_MAX: there is no group. */
uint64_t cgroup_least(uint64_t (*limit_of)(const char *folder));

/* Returns how many processors the group's cpu.max amounts to, rounded up. UINT64_MAX: no limit. */
uint64_t cgroup_cores(const char *folder);

/* Returns how many processors this process may use: those of its affinity, within cpu.max. The
 * number of the machine's processors can be far larger. At least 1. */
unsigned cores_usable(void);

#endif
