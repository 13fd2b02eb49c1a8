/* limits.c - checks limits that login shells, systemd and containers set on each process.
 * Programs reach these limits long after their start, and their messages do not name the
 * limit. */
#include "doctor/limits.h"

#include <sys/resource.h>

#include "base/process/cgroup.h"
#include "doctor/system_file.h"
#include "wire/sessions/link.h"

enum {
	/* An agent that is allowed fewer open files than this opens fewer connections to each
	 * peer (agent/agent.c). */
	FILES_FULL = 4096,
	TASKS_LEAST = 32, /* an agent may need this many threads; a lower limit is an error */
	TASKS_FEW = 128,  /* fewer free threads than this cause a warning */
	/* Memory for secret keys, in bytes; the kernel must not swap it to a disk. */
	LOCKED_LEAST = 64 << 10
};
/* Size of a checkpoint's file for a large stage, bytes. */
#define FILE_SIZE_LEAST (UINT64_C(16) << 30)
#define SPACE_LEAST (UINT64_C(8) << 30)

static uint64_t hard_limit(int which)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_max;
}

static uint64_t soft_limit(int which)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static uint64_t tasks_free(const char *folder)
{
	const uint64_t most = system_number(folder, "/pids.max", 0, UINT64_MAX);
	const uint64_t now = system_number(folder, "/pids.current", 0, 0);

	return most == UINT64_MAX ? most : most > now ? most - now : 0;
}

/* For open files, reads the hard limit, because programs raise their own soft limit up to it. For
 * all other limits, reads the soft limit, because programs do not raise it. */
void limits_look(struct limits *l, const char *root)
{
	*l = (struct limits){
		.files = hard_limit(RLIMIT_NOFILE),
		.address_space = soft_limit(RLIMIT_AS),
		.file_size = soft_limit(RLIMIT_FSIZE),
		.locked = soft_limit(RLIMIT_MEMLOCK),
		.seconds = soft_limit(RLIMIT_CPU),
		.tasks_free = cgroup_least(root, "pids", tasks_free),
	};
}

static void check_files(struct findings *f, const struct limits *l, const struct limits_need *need)
{
	const unsigned long long needed = link_files_for(need->peers), files = l->files;

	if (files < needed) {
		finding_add(f, "files", FINDING_ERROR,
			    "a process may open %llu files, and an agent with %u peers needs %llu",
			    files, need->peers, needed);
	} else if (files < FILES_FULL) {
		finding_add(f, "files", FINDING_WARNING,
			    "a process may open %llu files; with fewer than %d an agent opens "
			    "fewer connections to each peer, which slows far links",
			    files, FILES_FULL);
	} else {
		finding_add(f, "files", FINDING_OK, "a process may open %llu files", files);
		return;
	}
	finding_remedy(f,
		       "as root: ulimit -n 8192, \"* hard nofile 8192\" in "
		       "/etc/security/limits.conf, LimitNOFILE=8192 in a systemd unit, or podman "
		       "run --ulimit nofile=8192");
}

/* Adds a finding about a limit that ulimit sets. */
static void add_ulimit(struct findings *f, enum finding_level level, const char *what,
		       uint64_t value, const char *unit, const char *option)
{
	finding_add(f, "limits", level, "%s is limited to %llu %s", what, (unsigned long long)value,
		    unit);
	finding_remedy(f,
		       "as root: ulimit %s unlimited, or remove the limit from the shell's "
		       "profile, the unit or the container",
		       option);
}

static void check_tasks(struct findings *f, const struct limits *l)
{
	if (l->tasks_free >= TASKS_FEW)
		return;
	finding_add(f, "limits", l->tasks_free < TASKS_LEAST ? FINDING_ERROR : FINDING_WARNING,
		    "the control group allows %llu more processes and threads; an agent needs up "
		    "to %d",
		    (unsigned long long)l->tasks_free, TASKS_LEAST);
	finding_remedy(f, "raise the container's limit (podman run --pids-limit, systemd "
			  "TasksMax=)");
}

void limits_check(struct findings *f, const struct limits *l, const struct limits_need *need)
{
	/* number of findings after check_files has added its finding */
	const size_t before = f->all.n + 1;

	check_files(f, l, need);
	check_tasks(f, l);
	if (l->address_space != UINT64_MAX)
		add_ulimit(f,
			   need->cuda || l->address_space < SPACE_LEAST ? FINDING_ERROR
									: FINDING_WARNING,
			   need->cuda ? "the address space, of which CUDA reserves as much as all "
					"memory,"
				      : "the address space",
			   l->address_space >> 20, "MiB", "-v");
	if (l->file_size < FILE_SIZE_LEAST)
		add_ulimit(f, l->file_size < FILE_SIZE_LEAST >> 4 ? FINDING_ERROR : FINDING_WARNING,
			   "the size of a file, such as a checkpoint,", l->file_size >> 20, "MiB",
			   "-f");
	if (l->seconds != UINT64_MAX)
		add_ulimit(f, FINDING_ERROR,
			   "the processor time of a process, after which the kernel kills it,",
			   l->seconds, "s", "-t");
	if (l->locked < LOCKED_LEAST)
		add_ulimit(f, FINDING_WARNING,
			   "locked memory, which keeps keys from being swapped to a disk,",
			   l->locked >> 10, "KiB", "-l");
	if (f->all.n == before)
		finding_add(f, "limits", FINDING_OK,
			    "none of address space, file size, processor time and processes");
}
