/* `skippipe fleet down`: ends the controller, which first writes a checkpoint and ends its agents.
 * Then the command ends agents that still run, removes tokens and logs, expels the agents' keys,
 * and prints what it could not remove.
 *
 * The operator can name hosts that are gone for good (--forget). The command then succeeds although
 * it cannot reach them, and their agents cannot join again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/fleet/fleet.h"

enum {
	CONTROLLER_S = 60, /* time for the last checkpoint */
	AGENT_S = 15,      /* time in which an agent must end; an agent needs 11 s at most */
	BEYOND_US = 30000000,
	ASK_US = 60000000
};

struct down {
	struct fleet *fleet;
	/* Number of hosts that have reported that none of the fleet's processes runs there. */
	size_t n_reached;
};

static void take_end(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct down *d = owner;

	(void)value;
	if (key && strcmp(key, "killed") == 0)
		progress_print(d->fleet->progress,
			       "%s: a process did not end by itself and was killed",
			       job->host->name);
	else if (key && strcmp(key, "kept") == 0)
		progress_print(d->fleet->progress,
			       "%s: the bundle stays, because another agent or fleet uses it",
			       job->host->name);
}

/* Returns true if the last `up` may have started an agent on the host. Without a record, this is
 * unknown, and the function returns true. */
static bool was_started(const struct fleet *f, const struct host *host)
{
	return !f->record.run_dir[0] || hosts_find(&f->record.hosts, host->name) ||
	       host == &f->hosts.list[f->hosts.n];
}

/* Returns true if --forget names the host. The controller's machine counts as named if --forget
 * names the host of FILE with the same target. */
static bool is_named(const struct fleet *f, const struct host *host)
{
	bool is_controller = strcmp(host->name, f->controller.name) == 0;

	for (unsigned i = 0; i < f->options->n_forgotten; i++) {
		const struct host *h = hosts_find(&f->hosts, f->options->forgotten[i]);

		if (strcmp(f->options->forgotten[i], host->name) == 0 ||
		    (is_controller && h && host->target[0] &&
		     strcmp(h->target, host->target) == 0 && strcmp(h->port, host->port) == 0))
			return true;
	}
	return false;
}

/* Returns true if the job failed because its host did not answer, and --forget names the host. A
 * host that did answer is not given up, because a process may still run on it. */
static bool is_given_up(const struct fleet *f, const struct remote_job *job)
{
	return remote_is_unreachable(job) && is_named(f, job->host);
}

static int check_forgotten(const struct fleet *f, struct error *err)
{
	for (unsigned i = 0; i < f->options->n_forgotten; i++) {
		const char *name = f->options->forgotten[i];

		if (!hosts_find(&f->hosts, name) &&
		    (strcmp(name, f->controller.name) != 0 || !f->controller.target[0]))
			return error_set(err, -EINVAL,
					 "--forget %s: neither %s nor the record has a host of "
					 "this name",
					 name, f->options->file);
	}
	return 0;
}

static void turn_end(void *owner, struct remote_job *job, bool done)
{
	struct down *d = owner;
	size_t place = fleet_place(d->fleet, job);

	if (!done)
		progress_set(d->fleet->progress, place, "stopping");
	else if (job->rc == 0)
		progress_set(d->fleet->progress, place, "nothing runs");
	else if (is_given_up(d->fleet, job))
		progress_set(d->fleet->progress, place, "forgotten; %s", job->why);
	else if (was_started(d->fleet, job->host))
		progress_set(d->fleet->progress, place, "FAILED: %s", job->why);
	else
		progress_set(d->fleet->progress, place, "nothing was started; %s", job->why);
}

static void add_stop(struct fleet *f, struct remote_job *job, int seconds)
{
	args_addf(&job->words, "%d", seconds);
	if (f->options->purge)
		args_add(&job->words, "purge");
}

/* Ends the controller. Returns 0, 1 if the controller may still run, or a negative errno. */
static int stop_controller(struct down *d, struct error *err)
{
	struct fleet *f = d->fleet;
	const struct remote_calls calls = { d, take_end, NULL };
	struct remote_job job;
	int rc;

	fleet_controller_job(f, &job, "stop");
	args_addf(&job.words, "%d", CONTROLLER_S);
	rc = remote_run(f->remote, &job, 1, CONTROLLER_S * INT64_C(1000000) + BEYOND_US, &calls,
			err);
	if (rc == 0)
		progress_print(f->progress,
			       job.rc == 0            ? "controller: nothing runs"
			       : is_given_up(f, &job) ? "controller: forgotten; %s"
						      : "controller: FAILED: %s",
			       job.why);
	fleet_end_jobs(&job, 1);
	return rc == 0 ? job.rc != 0 && !is_given_up(f, &job) : rc;
}

static int stop_agents(struct down *d, struct error *err)
{
	struct fleet *f = d->fleet;
	const struct remote_calls calls = { d, take_end, turn_end };
	struct remote_job *jobs = alloc_array(f->n_sites, sizeof(*jobs));
	int rc, failed = 0;

	for (size_t i = 0; i < f->n_sites; i++) {
		fleet_agent_job(f, &jobs[i], &f->hosts.list[i], "stop");
		add_stop(f, &jobs[i], AGENT_S);
	}
	rc = remote_run(f->remote, jobs, f->n_sites, AGENT_S * INT64_C(1000000) + BEYOND_US, &calls,
			err);
	for (size_t i = 0; i < f->n_sites; i++) {
		failed |= jobs[i].rc != 0 && was_started(f, jobs[i].host) &&
			  !is_given_up(f, &jobs[i]);
		d->n_reached += jobs[i].rc == 0;
	}
	fleet_end_jobs(jobs, f->n_sites);
	free(jobs);
	return rc == 0 ? failed : rc;
}

/* Runs a program on the controller's machine that revokes the invitations and expels the agents'
 * keys. Without this, a token or key that was on a host could be used to join later. */
static int forget_agents(struct down *d, struct error *err)
{
	struct fleet *f = d->fleet;
	const struct remote_calls calls = { d, take_end, NULL };
	struct remote_job job;
	int rc;

	if (!f->record.run_dir[0] || f->record.is_forgotten)
		return 0;
	fleet_controller_job(f, &job, "forget");
	for (size_t i = 0; i < f->record.invitations.n; i++)
		args_add(&job.words, f->record.invitations.list[i]);
	args_add(&job.words, "--");
	for (size_t i = 0; i < f->record.hosts.n; i++)
		args_add(&job.words, f->record.hosts.list[i].name);
	rc = remote_run(f->remote, &job, 1, ASK_US, &calls, err);
	if (rc == 0 && job.rc != 0)
		progress_print(f->progress, "controller: the agents may still be admitted: %s",
			       job.why);
	fleet_end_jobs(&job, 1);
	if (rc != 0 || job.rc != 0)
		return rc != 0 ? rc : !is_given_up(f, &job);
	/* A later `down --purge` must not try this again: the program is no longer installed on the
	 * controller's machine. */
	f->record.is_forgotten = true;
	return record_write(&f->record, f->id, err);
}

int fleet_down(struct fleet *f, struct error *err)
{
	struct down d = { .fleet = f };
	int rc = check_forgotten(f, err);
	int controller = rc < 0 ? rc : stop_controller(&d, err);
	int keys = controller < 0 ? controller : forget_agents(&d, err);
	int agents = keys < 0 ? keys : stop_agents(&d, err);

	if (agents < 0)
		return agents;
	if (!f->record.run_dir[0])
		progress_print(f->progress,
			       "there is no record of this fleet: on the hosts of %s, only its own "
			       "folders were looked for",
			       f->options->file);
	if (controller || keys || agents) {
		progress_print(f->progress, "something may still run; repeat this command, with "
					    "--forget HOST for each host that is gone for good");
		return 1;
	}
	record_remove(f->id);
	progress_print(f->progress, "nothing of the fleet runs on %zu host%s", d.n_reached,
		       d.n_reached == 1 ? "" : "s");
	return 0;
}
