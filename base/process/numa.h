/* numa.h - the processors near a device of the PCI bus.
 *
 * On a machine with several sockets, each device and each part of the memory belongs to one socket
 * (a NUMA node). A thread that feeds a device from another socket copies through the link between
 * the two sockets, which is slower. system: the folder that has sys, "" for this system's own.
 * bus_id: a device's place, such as "0000:65:00.0".
 */
#ifndef BASE_PROCESS_NUMA_H
#define BASE_PROCESS_NUMA_H

#include <stdbool.h>

/* Returns the NUMA node of a device; -1: the system does not say, or has one node only. */
int numa_node(const char *system, const char *bus_id);

/* Returns how many of the processors that the calling thread may use are near the device. If the
 * device's node is unknown, or none of these processors is near the device, returns the number of
 * all processors that the thread may use. 0: the thread's processors cannot be read. */
unsigned numa_cores(const char *system, const char *bus_id);

/* Binds the calling thread, and the threads and processes that it starts from now on, to the
 * processors that are near the device. Returns true if the thread has fewer processors
 * afterwards. */
bool numa_bind(const char *system, const char *bus_id);

#endif
