/* Tests which processors are found near a device, in a made-up sysfs. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/numa.h"
#include "base/tests/test.h"

static char folder[64];

static void put(const char *path, const char *text)
{
	char *whole = alloc_format("mkdir -p $(dirname %s/%s)", folder, path);
	FILE *f;

	assert_int_equal(system(whole), 0);
	free(whole);
	whole = alloc_format("%s/%s", folder, path);
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(whole);
}

/* Makes two sockets. Socket 0 has the first processor that this thread may use. Socket 1 has the
 * thread's other processors and the device 0000:b3:00.0. */
static void make_sockets(const cpu_set_t *mine, size_t first)
{
	char list[8192] = "";
	size_t at = 0;

	strcpy(folder, "/tmp/numa_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (size_t i = first + 1; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, mine))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%zu", at ? "," : "",
					       i);
	put("sys/devices/system/node/node1/cpulist", list);
	snprintf(list, sizeof(list), "%zu-%zu\n", first, first);
	put("sys/devices/system/node/node0/cpulist", list);
	put("sys/bus/pci/devices/0000:65:00.0/numa_node", "0\n");
	put("sys/bus/pci/devices/0000:b3:00.0/numa_node", "1\n");
	put("sys/bus/pci/devices/0000:01:00.0/numa_node", "-1\n");
}

TEST(a_thread_is_bound_to_the_socket_of_its_device)
{
	cpu_set_t mine, now;
	size_t first = 0;
	char *command;
	int n;

	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (!CPU_ISSET(first, &mine))
		first++;
	n = CPU_COUNT(&mine);
	make_sockets(&mine, first);
	/* CUDA writes bus ids in capitals */
	assert_int_equal(numa_node(folder, "0000:B3:00.0"), 1);
	assert_int_equal(numa_node(folder, "0000:01:00.0"), -1);
	assert_int_equal(numa_node(folder, "0000:02:00.0"), -1);
	assert_int_equal(numa_cores(folder, "0000:65:00.0"), 1);
	assert_int_equal(numa_cores(folder, "0000:b3:00.0"), n > 1 ? n - 1 : n);
	assert_int_equal(numa_cores(folder, "0000:01:00.0"), n);
	assert_false(numa_bind(folder, "0000:01:00.0"));
	assert_int_equal(numa_bind(folder, "0000:65:00.0"), n > 1);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_COUNT(&now) == 1 && CPU_ISSET(first, &now));
	/* The thread is now bound to socket 0. It has no processor of socket 1, so a second binding
	 * changes nothing. */
	assert_false(numa_bind(folder, "0000:b3:00.0"));
	assert_int_equal(numa_cores(folder, "0000:b3:00.0"), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(mine), &mine), 0);
	command = alloc_format("rm -r %s", folder);
	assert_int_equal(system(command), 0);
	free(command);
}

TEST(a_list_of_processors_has_ranges)
{
	cpu_set_t mine;
	char *command;

	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	strcpy(folder, "/tmp/numa_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	put("sys/bus/pci/devices/0000:65:00.0/numa_node", "2\n");
	put("sys/devices/system/node/node2/cpulist", "0-1,3-2000000000\n");
	CPU_CLR(2, &mine);
	assert_int_equal(numa_cores(folder, "0000:65:00.0"), CPU_COUNT(&mine));
	command = alloc_format("rm -r %s", folder);
	assert_int_equal(system(command), 0);
	free(command);
}
