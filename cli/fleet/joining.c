/* The last steps of `skippipe fleet up`: starts the controller, and reads the agents' logs until
 * all agents have joined. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/fleet/launch.h"
#include "cli/fleet/up.h"

enum {
	ASK_US = 20000000,   /* time limit of a question to a host */
	START_US = 40000000, /* time limit of starting a process on a host */
	LOOK_US = 300000,    /* pause between two readings of the agents' logs */
	WHY_LINES = 4
};

/* ---- the controller ---- */

static void take_controller(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct up *u = owner;

	(void)job;
	if (key && strcmp(key, "running") == 0)
		u->controller_runs = true;
	else if (key && strcmp(key, "record") == 0)
		u->has_record = true;
	else if (key && strcmp(key, "last") == 0)
		snprintf(u->controller_said, sizeof(u->controller_said), "%s", value);
}

static int ask_controller(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, take_controller, NULL };
	struct remote_job job;
	int rc;

	u->controller_runs = u->has_record = false;
	fleet_controller_job(f, &job, "state");
	args_add(&job.words, f->record.run_dir);
	rc = remote_run(f->remote, &job, 1, ASK_US, &calls, err);
	if (rc == 0 && job.rc != 0)
		rc = error_set(err, -EIO, "the controller's machine: %s", job.why);
	fleet_end_jobs(&job, 1);
	return rc;
}

int up_start_controller(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, take_controller, NULL };
	struct remote_job job;
	char here[RECORD_PATH] = "";
	size_t agents = 0;
	int rc = ask_controller(u, err);

	if (rc != 0 || u->controller_runs)
		return rc;
	for (size_t i = 0; i < f->hosts.n; i++)
		agents +=
			up_has_agent(u, i) ? launch_count(&f->hosts.list[i], u->sites[i].gpus) : 0;
	if (agents < 2 && !u->has_record && !launch_has_size(f->options))
		return error_set(err, -EIO, "a run needs two agents or more, and %zu run%s", agents,
				 agents == 1 ? "s" : "");
	if (!f->controller.target[0] && !getcwd(here, sizeof(here)))
		return error_set(err, -errno, "the working folder: %s", strerror(errno));
	fleet_controller_job(f, &job, "start");
	args_add(&job.words, here);
	u->is_new_controller = true;
	launch_controller(&job.words, f->options, f->record.run_dir, agents, u->has_record);
	rc = remote_run(f->remote, &job, 1, START_US, &calls, err);
	if (rc == 0 && job.rc != 0)
		rc = error_set(err, -EIO, "the controller: %s: %s", job.why, job.said);
	fleet_end_jobs(&job, 1);
	return rc;
}

/* ---- joining ---- */

static size_t count_words(const char *text)
{
	size_t n = *text != '\0';

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

static void take_joined(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct up *u = owner;
	size_t place = fleet_place(u->fleet, job);

	if (!key)
		return;
	if (strcmp(key, "joined") == 0 && !u->joined[place] &&
	    count_words(value) >= launch_count(job->host, u->sites[place].gpus)) {
		u->joined[place] = true;
		progress_set(u->fleet->progress, place, "joined as %s", value);
	} else if (strcmp(key, "ended") == 0) {
		u->sites[place].state = SITE_FAILED;
	} else if (strcmp(key, "last") == 0 && u->sites[place].state == SITE_FAILED) {
		progress_set(u->fleet->progress, place, "FAILED: its agent ended: %s", value);
	}
}

/* Reads once the logs of the running agents that have not joined. Returns how many still have not
 * joined, or a negative errno. */
static int look_at_agents(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, take_joined, NULL };
	struct remote_job *jobs = alloc_array(f->hosts.n, sizeof(*jobs));
	size_t n = 0;
	int rc, waiting = 0;

	for (size_t i = 0; i < f->hosts.n; i++) {
		if (u->sites[i].state != SITE_RUNS || u->joined[i])
			continue;
		fleet_agent_job(f, &jobs[n], &f->hosts.list[i], "state");
		args_add(&jobs[n].words, "");
		/* A new controller must welcome the agent again. The older part of the log may
		 * contain the welcome of a former controller, so it is not read. */
		args_addf(&jobs[n++].words, "%" PRIu64,
			  u->is_new_controller ? u->sites[i].log_bytes : 0);
	}
	rc = remote_run(f->remote, jobs, n, ASK_US, &calls, err);
	fleet_end_jobs(jobs, n);
	free(jobs);
	for (size_t i = 0; i < f->hosts.n; i++)
		waiting += u->sites[i].state == SITE_RUNS && !u->joined[i];
	return rc == 0 ? waiting : rc;
}

static int wait_until_joined(struct up *u, struct error *err)
{
	const int64_t until_us = clock_monotonic_us() + u->fleet->options->wait_us;
	int rc, waiting;

	for (;;) {
		waiting = look_at_agents(u, err);
		if (waiting < 0)
			return waiting;
		rc = ask_controller(u, err);
		if (rc == 0 && !u->controller_runs)
			rc = error_set(err, -EIO, "the controller has ended: %s",
				       u->controller_said);
		if (rc != 0 || waiting == 0 || clock_monotonic_us() >= until_us)
			return rc;
		if (remote_sleep(u->fleet->remote, LOOK_US) != 0)
			return error_set(err, -EINTR, "ended by a signal; up may be repeated");
	}
}

static void print_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct up *u = owner;

	if (!key)
		progress_print(u->fleet->progress, "         %s: %s", job->host->name, value);
}

/* Prints the last lines in the logs of agents that have not joined in time. */
static int explain_missing(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, print_line, NULL };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->hosts.n; i++) {
		struct remote_job job;

		if (u->sites[i].state != SITE_RUNS || u->joined[i])
			continue;
		progress_set(f->progress, i, "FAILED: its agent runs and has not joined");
		fleet_agent_job(f, &job, &f->hosts.list[i], "logs");
		args_addf(&job.words, "%d", WHY_LINES);
		rc = remote_run(f->remote, &job, 1, ASK_US, &calls, err);
		fleet_end_jobs(&job, 1);
	}
	return rc;
}

int up_wait_for_agents(struct up *u, struct error *err)
{
	int rc = wait_until_joined(u, err);

	return rc == 0 ? explain_missing(u, err) : rc;
}
