/* `skippipe fleet logs`: prints the logs of all agents and of the controller. Each line begins with
 * the name of the host that wrote it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/fleet/fleet.h"

enum { ASK_US = 60000000 };

static void print_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)owner;
	if (key)
		return;
	printf("%-12s %s\n", job->host->name, value);
	fflush(stdout);
}

int fleet_logs(struct fleet *f, struct error *err)
{
	const struct remote_calls calls = { NULL, print_line, NULL };
	const char *verb = f->options->follow ? "follow" : "logs";
	const size_t n = f->hosts.n + 1;
	struct remote_job *jobs = alloc_array(n, sizeof(*jobs));
	int rc, failed = 0;

	for (size_t i = 0; i < n; i++) {
		if (i < f->hosts.n)
			fleet_agent_job(f, &jobs[i], &f->hosts.list[i], verb);
		else
			fleet_controller_job(f, &jobs[i], verb);
		args_addf(&jobs[i].words, "%u", f->options->lines);
		jobs[i].is_endless = f->options->follow;
	}
	rc = remote_run(f->remote, jobs, n, ASK_US, &calls, err);
	if (rc == -EINTR && f->options->follow)
		rc = 0;
	for (size_t i = 0; i < n; i++) {
		if (jobs[i].rc == 0 || jobs[i].rc == -ECANCELED)
			continue;
		fprintf(stderr, "%-12s FAILED: %s\n", jobs[i].host->name, jobs[i].why);
		failed = 1;
	}
	fleet_end_jobs(jobs, n);
	free(jobs);
	return rc == 0 ? failed : rc;
}
