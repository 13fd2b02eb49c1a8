/* `skippipe fleet status`: prints a line for each host, and the output of `skippipe status` for the
 * run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/fleet/fleet.h"

enum { ASK_US = 30000000 };

struct look {
	char pid[24], version[32], joined[128], last[REMOTE_LINE];
	bool has_ended;
};

struct looks {
	struct fleet *fleet;
	/* array of n_sites: the answers of each host, then of the controller */
	struct look *list;
};

static struct look *look_of(struct looks *s, const struct remote_job *job)
{
	struct fleet *f = s->fleet;

	return &s->list[job->host == &f->controller ? f->hosts.n : fleet_place(f, job)];
}

static void take_state(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct look *l = look_of(owner, job);

	if (!key)
		return;
	if (strcmp(key, "running") == 0)
		snprintf(l->pid, sizeof(l->pid), "%s", value);
	else if (strcmp(key, "version") == 0)
		snprintf(l->version, sizeof(l->version), "%s", value);
	else if (strcmp(key, "joined") == 0)
		snprintf(l->joined, sizeof(l->joined), "%s", value);
	else if (strcmp(key, "ended") == 0)
		l->has_ended = true;
	else if (strcmp(key, "last") == 0)
		snprintf(l->last, sizeof(l->last), "%s", log_message(value));
}

static void print_look(const struct looks *s, const struct remote_job *job, const struct look *l)
{
	const char *name = job->host->name;

	if (job->rc != 0)
		printf("%-12s FAILED: %s\n", name, job->why);
	else if (l->pid[0])
		printf("%-12s runs, process %s, version %s%s%s; %s\n", name, l->pid,
		       l->version[0] ? l->version : "?", l->joined[0] ? ", " : "", l->joined,
		       l->last);
	else
		printf("%-12s %s%s%s\n", name,
		       l->has_ended                  ? "has ended"
		       : s->fleet->record.run_dir[0] ? "does not run"
						     : "does not run; the fleet is not up",
		       l->last[0] ? "; " : "", l->last);
}

static void print_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)owner;
	(void)job;
	if (!key)
		puts(value);
}

/* Prints the output of `skippipe status` for the run. Returns 1 unless the run is healthy. */
static int print_run(struct fleet *f, struct error *err)
{
	const struct remote_calls calls = { NULL, print_line, NULL };
	struct remote_job job;
	int rc;

	if (!f->record.run_dir[0])
		return 1;
	puts("");
	fleet_controller_job(f, &job, "run");
	args_add(&job.words, "status");
	args_add(&job.words, f->record.run_dir);
	rc = remote_run(f->remote, &job, 1, ASK_US, &calls, err);
	fleet_end_jobs(&job, 1);
	return rc != 0 ? rc : job.rc != 0;
}

int fleet_status(struct fleet *f, struct error *err)
{
	const size_t n = f->hosts.n + 1;
	struct looks s = { f, alloc_array(n, sizeof(*s.list)) };
	const struct remote_calls calls = { &s, take_state, NULL };
	struct remote_job *jobs = alloc_array(n, sizeof(*jobs));
	int rc, failed = 0;

	for (size_t i = 0; i < f->hosts.n; i++)
		fleet_agent_job(f, &jobs[i], &f->hosts.list[i], "state");
	fleet_controller_job(f, &jobs[f->hosts.n], "state");
	rc = remote_run(f->remote, jobs, n, ASK_US, &calls, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		print_look(&s, &jobs[i], &s.list[i]);
		failed |= jobs[i].rc != 0 || !s.list[i].pid[0];
	}
	fleet_end_jobs(jobs, n);
	free(jobs);
	free(s.list);
	if (rc == 0)
		rc = print_run(f, err);
	return rc == 0 ? failed : rc;
}
