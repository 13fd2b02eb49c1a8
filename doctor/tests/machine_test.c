/* Tests the checks of processors, memory and limits with made-up systems. */
#include "doctor/machine.h"

#include <string.h>

#include "base/tests/test.h"
#include "doctor/limits.h"
#include "doctor/tests/system_tree.h"
#include "wire/sessions/link.h"

static const struct machine well = { .kernel = "Linux",
				     .cores = 8,
				     .online = 8,
				     .load = 0.5,
				     .available = UINT64_C(16) << 30,
				     .group_free = UINT64_MAX,
				     .grantable = UINT64_MAX };

static const struct limits no_limits = { .files = 1048576,
					 .address_space = UINT64_MAX,
					 .file_size = UINT64_MAX,
					 .locked = 8 << 20,
					 .seconds = UINT64_MAX,
					 .tasks_free = UINT64_MAX };

TEST(a_good_machine_has_no_remedies)
{
	const struct limits_need need = { .peers = 8, .cuda = true };
	struct findings f = { .all.n = 0 };

	machine_check(&f, &well);
	limits_check(&f, &no_limits, &need);
	assert_int_equal(findings_worst(&f), FINDING_OK);
	assert_int_equal(f.all.n, 5);
	findings_free(&f);
}

TEST(processors_that_are_few_busy_or_stolen_are_found)
{
	struct findings f = { .all.n = 0 };
	struct machine m = well;

	m.cores = 1;
	m.load = 7;
	m.stolen = 0.3;
	m.slow_clock = true;
	strcpy(m.clock_source, "hpet");
	machine_check(&f, &m);
	must_be(&f, "processors", FINDING_WARNING);
	must_find(&f, "processors", FINDING_WARNING, "one processor of 8", "two");
	must_find(&f, "processors", FINDING_WARNING, "7.0 processes", "slow");
	must_find(&f, "processors", FINDING_WARNING, "30%", "rent");
	must_find(&f, "processors", FINDING_WARNING, "hpet", "tsc");
	findings_free(&f);
}

TEST(the_limit_of_a_container_counts)
{
	struct findings f = { .all.n = 0 };
	struct system_tree t;
	struct machine m;

	tree_make(&t);
	tree_put(&t, "/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n");
	tree_put(&t, "/proc/self/cgroup", "0::/box\n");
	tree_put(&t, "/sys/fs/cgroup/box/memory.max", "209715200\n");
	tree_put(&t, "/sys/fs/cgroup/box/memory.current", "104857600\n");
	tree_put(&t, "/sys/fs/cgroup/box/memory.events", "low 0\noom 3\noom_kill 2\n");
	tree_put(&t, "/etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"A System 3\"\n");
	tree_put(&t, "/proc/stat", "cpu  10 0 10 60 0 0 0 20 0 0\ncpu0 1\ncpu1 1\nintr 5\n");
	tree_put(&t, "/proc/loadavg", "0.10 0.20 0.30 1/100 5\n");
	machine_look(&m, t.root);
	tree_remove(&t);
	assert_int_equal(m.available, UINT64_C(16) << 30);
	assert_int_equal(m.group_free, 100 << 20);
	assert_int_equal(m.killed, 2);
	assert_int_equal(m.online, 2);
	assert_true(m.stolen == 0.2 && m.load == 0.2);
	assert_string_equal(m.system, "A System 3");
	machine_check(&f, &m);
	must_find(&f, "memory", FINDING_ERROR, "0.10 GiB of memory are free within the limit",
		  "container");
	must_find(&f, "memory", FINDING_WARNING, "killed 2 processes", "--memory");
	must_find(&f, "versions", FINDING_OK, "A System 3", "");
	findings_free(&f);
}

TEST(a_strict_kernel_is_found)
{
	struct findings f = { .all.n = 0 };
	struct system_tree t;
	struct machine m;

	tree_make(&t);
	tree_put(&t, "/proc/meminfo",
		 "MemAvailable: 16777216 kB\nCommitLimit: 8388608 kB\n"
		 "Committed_AS: 7340032 kB\n");
	tree_put(&t, "/proc/sys/vm/overcommit_memory", "2\n");
	machine_look(&m, t.root);
	machine_check(&f, &m);
	must_find(&f, "memory", FINDING_WARNING, "grants only 1.00 GiB", "overcommit_memory=0");
	findings_free(&f);
	tree_put(&t, "/proc/sys/vm/overcommit_memory", "0\n");
	machine_look(&m, t.root);
	machine_check(&f, &m);
	must_be(&f, "memory", FINDING_OK);
	findings_free(&f);
	tree_remove(&t);
}

TEST(a_system_without_files_is_no_error)
{
	struct findings f = { .all.n = 0 };
	struct machine m;

	machine_look(&m, "/nonexistent");
	machine_check(&f, &m);
	must_be(&f, "memory", FINDING_OK);
	findings_free(&f);
}

TEST(few_files_are_an_error_and_some_a_warning)
{
	struct limits_need need = { .peers = 8 };
	struct findings f = { .all.n = 0 };
	struct limits l = no_limits;

	l.files = 64;
	limits_check(&f, &l, &need);
	must_find(&f, "files", FINDING_ERROR, "may open 64 files", "ulimit -n 8192");
	findings_free(&f);
	l.files = link_files_for(8) - 1;
	limits_check(&f, &l, &need);
	must_be(&f, "files", FINDING_ERROR);
	findings_free(&f);
	l.files++;
	limits_check(&f, &l, &need);
	must_be(&f, "files", FINDING_WARNING);
	findings_free(&f);
	need.peers = 100;
	limits_check(&f, &l, &need);
	must_be(&f, "files", FINDING_ERROR);
	findings_free(&f);
	l.files = 8192;
	limits_check(&f, &l, &need);
	must_be(&f, "files", FINDING_OK);
	findings_free(&f);
}

TEST(each_limit_is_named)
{
	struct limits_need need = { .peers = 8 };
	struct findings f = { .all.n = 0 };
	struct limits l = no_limits;

	l.address_space = UINT64_C(64) << 30;
	l.file_size = 1 << 20;
	l.seconds = 3600;
	l.locked = 4096;
	l.tasks_free = 3;
	limits_check(&f, &l, &need);
	must_find(&f, "limits", FINDING_WARNING, "address space is limited to 65536 MiB", "-v");
	must_find(&f, "limits", FINDING_ERROR, "limited to 1 MiB", "-f");
	must_find(&f, "limits", FINDING_ERROR, "limited to 3600 s", "-t");
	must_find(&f, "limits", FINDING_WARNING, "limited to 4 KiB", "-l");
	must_find(&f, "limits", FINDING_ERROR, "allows 3 more", "TasksMax");
	findings_free(&f);
	l = no_limits;
	l.address_space = UINT64_C(64) << 30;
	need.cuda = true;
	limits_check(&f, &l, &need);
	must_be(&f, "limits", FINDING_ERROR);
	findings_free(&f);
}

TEST(the_limit_of_tasks_is_read_from_its_group)
{
	struct system_tree t;
	struct limits l;

	tree_make(&t);
	tree_put(&t, "/proc/self/cgroup", "0::/box\n");
	tree_put(&t, "/sys/fs/cgroup/box/pids.max", "50\n");
	tree_put(&t, "/sys/fs/cgroup/box/pids.current", "40\n");
	limits_look(&l, t.root);
	assert_int_equal(l.tasks_free, 10);
	tree_put(&t, "/sys/fs/cgroup/box/pids.max", "max\n");
	limits_look(&l, t.root);
	assert_true(l.tasks_free == UINT64_MAX);
	tree_remove(&t);
}
