/* cgroup.h - limits of this process's control groups and of the groups above them (versions 1 and
 * 2). Containers, Kubernetes and systemd set them. */
#ifndef BASE_PROCESS_CGROUP_H
#define BASE_PROCESS_CGROUP_H

#include <stddef.h>
#include <stdint.h>

/* Returns the smallest limit of this process's groups and the groups above them. system: the folder
 * that contains proc and sys; "": this system's root. controller: the controller of the limit, such
 * as "cpu". limit_of: returns the limit of the group in a folder, or UINT64_MAX if the group has
 * none. Returns UINT64_MAX if there is no group. */
uint64_t cgroup_least(const char *system, const char *controller,
		      uint64_t (*limit_of)(const char *folder));

/* Returns how many thousandths of a processor the group's quota amounts to, rounded up. UINT64_MAX:
 * no limit. */
uint64_t cgroup_quota(const char *folder);

/* Returns the bytes that the group may still use: its limit minus the bytes in use. Cached files
 * that the kernel would drop do not count as in use. UINT64_MAX: no limit. */
uint64_t cgroup_memory_free(const char *folder);

/* Returns how many processors this process may use, at least 1. This is the number of processors in
 * its affinity mask, or its groups' quota if the quota is smaller. The machine may have far
 * more. */
unsigned cores_usable(void);

/* Returns how many processors the quotas of this process's groups amount to, such as 0.5; 0: there
 * is no quota, or the quotas allow at least as many processors as the affinity mask. */
double cores_quota(void);

/* Returns the bytes that the kernel would give this process now without swapping, within its
 * groups' limits; SIZE_MAX if the kernel does not say. */
size_t memory_usable(void);

#endif
