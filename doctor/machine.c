/* machine.c - checks what the machine gives to this process: versions of the system, processors and
 * memory. Limits of containers count too. */
#include "doctor/machine.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "doctor/system_file.h"

/* Memory that an agent needs in addition to the memory for its stage, bytes. */
#define MEMORY_LEAST (UINT64_C(256) << 20)
#define MEMORY_LITTLE (UINT64_C(2) << 30)
/* If the load for each processor is higher than this before a run begins, other programs use the
 * machine. */
#define LOAD_HIGH 0.5
/* If the host gives more than this share of the processors' time to its other guests, a finding
 * reports the share. */
#define STOLEN_HIGH 0.1

/* ---- the figures ---- */

static void look_at_system(struct machine *m, const char *root)
{
	struct utsname u;
	char line[256];
	char *path = alloc_format("%s/etc/os-release", root);
	FILE *file = fopen(path, "re");

	if (uname(&u) == 0)
		snprintf(m->kernel, sizeof(m->kernel), "%.20s %.50s %.20s", u.sysname, u.release,
			 u.machine);
	snprintf(m->library, sizeof(m->library), "glibc %s", gnu_get_libc_version());
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "PRETTY_NAME=\"%90[^\"\n]", m->system) == 1)
			break;
	if (file)
		fclose(file);
	free(path);
}

/* Returns the share of the time since boot that the host gave to other guests. The first line of
 * /proc/stat has the times in the states user, nice, system, idle, iowait, irq, softirq, steal. */
static double stolen_share(const char *root)
{
	char line[256], *at = line + 3;
	double sum = 0, stolen = 0;

	system_line(root, "/proc/stat", line, sizeof(line));
	for (int i = 0; i < 8 && strncmp(line, "cpu ", 4) == 0; i++) {
		stolen = strtod(at, &at);
		sum += stolen;
	}
	return sum > 0 ? stolen / sum : 0;
}

static unsigned count_online(const char *root)
{
	char *path = alloc_format("%s/proc/stat", root), line[4096];
	FILE *file = fopen(path, "re");
	unsigned n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9';
	if (file)
		fclose(file);
	free(path);
	return n;
}

/* Returns UINT64_MAX minus the number of killed processes. cgroup_least takes the smallest of
 * these values, which belongs to the control group with the most killed processes. */
static uint64_t not_killed(const char *folder)
{
	return UINT64_MAX - system_keyed(folder, "/memory.events", "oom_kill", 0);
}

static uint64_t kib(const char *root, const char *key)
{
	const uint64_t value = system_keyed(root, "/proc/meminfo", key, UINT64_MAX);

	return value == UINT64_MAX ? value : value << 10;
}

static void look_at_memory(struct machine *m, const char *root)
{
	const uint64_t limit = kib(root, "CommitLimit:"), used = kib(root, "Committed_AS:");

	m->available = kib(root, "MemAvailable:");
	m->group_free = cgroup_least(root, "memory", cgroup_memory_free);
	m->killed = UINT64_MAX - cgroup_least(root, "memory", not_killed);
	m->grantable = UINT64_MAX;
	if (system_number(root, "/proc/sys/vm/overcommit_memory", 0, 0) == 2 &&
	    limit != UINT64_MAX && used != UINT64_MAX)
		m->grantable = limit > used ? limit - used : 0;
}

void machine_look(struct machine *m, const char *root)
{
	static const char *const slow[] = { "hpet", "acpi_pm", "refined-jiffies", "jiffies" };
	char line[64];

	*m = (struct machine){ .load = -1 };
	look_at_system(m, root);
	m->cores = cores_usable();
	m->online = count_online(root);
	m->stolen = stolen_share(root);
	if (system_line(root, "/proc/loadavg", line, sizeof(line)) &&
	    sscanf(line, "%*s %lf", &m->load) != 1)
		m->load = -1;
	system_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		    m->clock_source, sizeof(m->clock_source));
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		m->slow_clock = m->slow_clock || strcmp(m->clock_source, slow[i]) == 0;
	look_at_memory(m, root);
}

/* ---- the findings ---- */

static void check_processors(struct findings *f, const struct machine *m)
{
	const char *check = "processors";
	bool well = true;

	if (m->cores < 2) {
		finding_add(f, check, FINDING_WARNING,
			    "this process may use one processor of %u: computing, encryption and "
			    "heartbeats take turns",
			    m->online > 0 ? m->online : 1);
		finding_remedy(f, "give the machine or container two processors or more");
		well = false;
	}
	if (m->online > 0 && m->load > LOAD_HIGH * m->online) {
		finding_add(f, check, FINDING_WARNING,
			    "other programs load the machine: %.1f processes run or wait on %u "
			    "processors",
			    m->load, m->online);
		finding_remedy(f, "end them, or expect this node to be planned as a slow one");
		well = false;
	}
	if (m->stolen > STOLEN_HIGH) {
		finding_add(f, check, FINDING_WARNING,
			    "the host took %.0f%% of the processors' time away from this virtual "
			    "machine",
			    100 * m->stolen);
		finding_remedy(f, "rent a machine with processors of its own");
		well = false;
	}
	if (m->slow_clock) {
		finding_add(f, check, FINDING_WARNING,
			    "the kernel reads the time from %s, which takes a microsecond and more",
			    m->clock_source);
		finding_remedy(f,
			       "start the kernel with clocksource=tsc if the processor's counter "
			       "is stable");
		well = false;
	}
	if (well)
		finding_add(f, check, FINDING_OK, "%u of %u processors, load %.1f", m->cores,
			    m->online, m->load < 0 ? 0 : m->load);
}

static double gib(uint64_t bytes)
{
	return (double)bytes / 0x1p30;
}

static void check_memory(struct findings *f, const struct machine *m)
{
	const char *check = "memory";
	const uint64_t free_bytes = m->available < m->group_free ? m->available : m->group_free;
	const bool by_group = m->group_free < m->available;
	bool well = true;

	if (m->killed > 0) {
		finding_add(f, check, FINDING_WARNING,
			    "the kernel has killed %llu processes of this control group because "
			    "its memory ran out",
			    (unsigned long long)m->killed);
		finding_remedy(f,
			       "raise the container's memory limit, or give agents --memory MIB");
		well = false;
	}
	if (m->grantable < free_bytes) {
		finding_add(f, check, m->grantable < MEMORY_LEAST ? FINDING_ERROR : FINDING_WARNING,
			    "vm.overcommit_memory is 2, and the kernel grants only %.2f GiB more, "
			    "although %.2f GiB are free",
			    gib(m->grantable), gib(free_bytes));
		finding_remedy(f, "sysctl -w vm.overcommit_memory=0");
		well = false;
	}
	if (free_bytes < MEMORY_LITTLE) {
		finding_add(f, check, free_bytes < MEMORY_LEAST ? FINDING_ERROR : FINDING_WARNING,
			    "%.2f GiB of memory are free%s", gib(free_bytes),
			    by_group ? " within the limit of the control group" : "");
		finding_remedy(f, by_group ? "raise the container's memory limit (podman run "
					     "--memory, systemd MemoryMax=)"
					   : "end other programs, or take a machine with more "
					     "memory");
		well = false;
	}
	if (well && free_bytes == UINT64_MAX)
		finding_add(f, check, FINDING_OK, "the kernel does not say how much is free");
	else if (well)
		finding_add(f, check, FINDING_OK, "%.1f GiB are free%s", gib(free_bytes),
			    by_group ? " within the limit of the control group" : "");
}

void machine_check(struct findings *f, const struct machine *m)
{
	finding_add(f, "versions", FINDING_OK, "skippipe %s, %s, %s%s%s", SKIPPIPE_VERSION,
		    m->kernel, m->library, m->system[0] ? ", " : "", m->system);
	check_processors(f, m);
	check_memory(f, m);
}
