/* numa.h - the processors near a device of the PCI bus.
 *
 * On a machine of several sockets, memory and devices belong to one of them (NUMA nodes). A thread
 * that feeds a device from another socket copies through the link between them, which is slower.
 * system: the folder that has sys, "" for this system's own. bus_id: a device's place, such as
 * "0000:65:00.0".
 */
#ifndef BASE_PROCESS_NUMA_H
#define BASE_PROCESS_NUMA_H

#include <stdbool.h>

/* Returns the NUMA node of a device; -1: the system does not say, or has one node only. */
int numa_node(const char *system, const char *bus_id);

/* Returns how many of the processors that the calling thread may use are near the device. Returns
 * the number of all of them if the device's node is unknown or none is near it, and 0 if the
 * thread's processors cannot be read. */
unsigned numa_cores(const char *system, const char *bus_id);

/* Binds the calling thread, and the threads and processes that it starts from now on, to the
 * processors that are near the device. Returns true if the thread has fewer processors
 * afterwards. */
bool numa_bind(const char *system, const char *bus_id);

#endif
