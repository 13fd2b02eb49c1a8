/* Makes the jobs of a fleet. A job names the folder of a process on its host, and the program that
 * runs there. */
#include "cli/fleet/fleet.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

static void begin_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		      const char *verb)
{
	*job = (struct remote_job){ .host = host, .program = host->target[0] ? "" : f->program };
	args_add(&job->words, verb);
}

void fleet_agent_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		     const char *verb)
{
	begin_job(f, job, host, verb);
	job->folder = alloc_format("%s/agent-%s", f->id, host->name);
}

void fleet_controller_job(const struct fleet *f, struct remote_job *job, const char *verb)
{
	begin_job(f, job, &f->controller, verb);
	job->folder = alloc_format("%s/controller", f->id);
}

void fleet_end_jobs(struct remote_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		args_free(&jobs[i].words);
		free((char *)jobs[i].folder);
	}
}

size_t fleet_place(const struct fleet *f, const struct remote_job *job)
{
	return (size_t)(job->host - f->hosts.list);
}

void fleet_step(const struct fleet *f, const char *what, size_t n)
{
	progress_print(f->progress, "%5.1f s  %s: %zu of %zu hosts",
		       (double)(clock_monotonic_us() - f->begun_us) * 1e-6, what, n, f->hosts.n);
}
