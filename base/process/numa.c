/* Reads from sysfs which processors are near a device, and binds a thread to them. */
#include "base/process/numa.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int numa_node(const char *system, const char *bus_id)
{
	char *path = alloc_format("%s/sys/bus/pci/devices/%s/numa_node", system, bus_id);
	char *place = path + strlen(path) - strlen("/numa_node") - strlen(bus_id);
	int node = -1;
	FILE *f;

	for (size_t i = 0; i < strlen(bus_id); i++) /* CUDA writes capitals */
		place[i] = (char)tolower((unsigned char)place[i]);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &node) != 1)
		node = -1;
	if (f)
		fclose(f);
	free(path);
	return node;
}

/* Reads a list of processors such as "0-15,32-47". */
static void read_list(FILE *f, cpu_set_t *set)
{
	unsigned first, last;
	int c;

	CPU_ZERO(set);
	while (fscanf(f, "%u", &first) == 1) {
		last = first;
		c = fgetc(f);
		if (c == '-' && fscanf(f, "%u", &last) != 1)
			return;
		for (unsigned i = first; i <= last && i < CPU_SETSIZE; i++)
			CPU_SET(i, set);
		if (c == '-')
			c = fgetc(f);
		if (c != ',')
			return;
	}
}

/* Sets *mine to the processors that this thread may use, and *near to the processors of *mine that
 * are near the device. *near equals *mine if the device's node is unknown or has no processor of
 * *mine. Returns false if the machine has more processors than a cpu_set_t. */
static bool find_near(const char *system, const char *bus_id, cpu_set_t *mine, cpu_set_t *near)
{
	int node = numa_node(system, bus_id);
	cpu_set_t of_node;
	char *path;
	FILE *f;

	if (sched_getaffinity(0, sizeof(*mine), mine) != 0)
		return false;
	*near = *mine;
	if (node < 0)
		return true;
	path = alloc_format("%s/sys/devices/system/node/node%d/cpulist", system, node);
	f = fopen(path, "re");
	if (f) {
		read_list(f, &of_node);
		fclose(f);
		CPU_AND(near, mine, &of_node);
	}
	free(path);
	if (CPU_COUNT(near) == 0)
		*near = *mine;
	return true;
}

unsigned numa_cores(const char *system, const char *bus_id)
{
	cpu_set_t mine, near;

	return find_near(system, bus_id, &mine, &near) ? (unsigned)CPU_COUNT(&near) : 0;
}

bool numa_bind(const char *system, const char *bus_id)
{
	cpu_set_t mine, near;

	return find_near(system, bus_id, &mine, &near) && !CPU_EQUAL(&mine, &near) &&
	       sched_setaffinity(0, sizeof(near), &near) == 0;
}
