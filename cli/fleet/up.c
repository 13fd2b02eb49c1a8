/* `skippipe fleet up`: prepares the hosts (prepare.h), makes an invitation, starts agents and
 * controller, and waits until the agents have joined.
 *
 * The agents start before the controller and wait a minute for it. Thus the controller's command
 * line can give the number of agents that have started. The token reaches a host through ssh's
 * standard input and becomes a file of mode 600; no command line and no log contains it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/fleet/examine.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/launch.h"
#include "cli/fleet/progress.h"
#include "cli/fleet/up.h"

enum {
	ASK_US = 20000000,   /* time limit of a question to a host */
	START_US = 40000000, /* time limit of starting a process on a host */
	/* time added to the limit of the job for each host whose keys are expelled */
	EXPEL_US = 2000000,
};

static const char token_prefix[] = "skippipe1_";

/* ---- the record ---- */

/* Chooses the run's folder on the controller's machine. If that is this machine, a relative path
 * becomes absolute, because `down` may run in another working folder. */
static int choose_run_dir(const struct fleet *f, char out[RECORD_PATH], struct error *err)
{
	const char *given = f->options->run_dir ? f->options->run_dir : "run";
	char here[RECORD_PATH] = "";
	size_t n = strlen(given);
	bool is_here = !f->controller.target[0] && given[0] != '/';

	while (n > 1 && given[n - 1] == '/')
		n--;
	if (is_here && !getcwd(here, sizeof(here)))
		return error_set(err, -errno, "the working folder: %s", strerror(errno));
	if (snprintf(out, RECORD_PATH, "%s%s%.*s", here, is_here ? "/" : "", (int)n, given) >=
		    RECORD_PATH ||
	    strchr(out, '\n'))
		return error_set(err, -EINVAL, "--run-dir %s: not a name of a folder", given);
	if (f->record.run_dir[0] && !f->options->run_dir)
		snprintf(out, RECORD_PATH, "%s", f->record.run_dir);
	if (f->record.run_dir[0] && strcmp(f->record.run_dir, out) != 0)
		return error_set(err, -EINVAL,
				 "--run-dir %s: the fleet is up with %s; end it with skippipe "
				 "fleet down",
				 given, f->record.run_dir);
	return 0;
}

/* Records the hosts of this `up` and of the last `up` before any process starts. A later `down`
 * then reaches them even if this `up` is killed. A host that failed is not recorded; `down` need
 * not reach it. */
static int record_fleet(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	struct hosts all = { .list = alloc_array(f->hosts.n + f->record.hosts.n + 1,
						 sizeof(*all.list)) };

	for (size_t i = 0; i < f->hosts.n; i++)
		if (up_has_agent(u, i))
			all.list[all.n++] = f->hosts.list[i];
	for (size_t i = 0; i < f->record.hosts.n; i++)
		if (!hosts_find(&all, f->record.hosts.list[i].name))
			all.list[all.n++] = f->record.hosts.list[i];
	hosts_free(&f->record.hosts);
	f->record.hosts = all;
	f->record.controller = f->controller;
	f->record.is_forgotten = false;
	snprintf(f->record.run_dir, sizeof(f->record.run_dir), "%s", u->run_dir);
	return record_write(&f->record, f->id, err);
}

/* ---- the invitation ---- */

static void take_token(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct up *u = owner;
	static const char before[] = "invitation ";
	size_t n = strcspn(value, "\n");

	if (key)
		return;
	if (strncmp(value, token_prefix, strlen(token_prefix)) == 0) {
		snprintf(u->token, sizeof(u->token), "%s\n", value);
		explicit_bzero(job->said, sizeof(job->said));
	} else if (strncmp(value, before, strlen(before)) == 0) {
		n = strcspn(value + strlen(before), ": ");
		snprintf(u->invitation, HOST_NAME, "%.*s", n < HOST_NAME ? (int)n : 0,
			 value + strlen(before));
	}
}

/* Makes an invitation for the agents that will start. `uses` agents can use it, once each. */
static int invite(struct up *u, size_t uses, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, take_token, NULL };
	struct remote_job job;
	int rc;

	fleet_controller_job(f, &job, "run");
	args_add(&job.words, "invite");
	args_addf(&job.words, "--uses=%zu", uses);
	for (unsigned i = 0; i < f->options->n_addresses; i++)
		args_addf(&job.words, "--address=%s", f->options->addresses[i]);
	rc = remote_run(f->remote, &job, 1, ASK_US, &calls, err);
	if (rc == 0 && (job.rc != 0 || !u->token[0]))
		rc = error_set(err, -EIO, "no invitation: %s", job.why);
	if (u->invitation[0])
		args_add(&f->record.invitations, u->invitation);
	fleet_end_jobs(&job, 1);
	return rc == 0 ? record_write(&f->record, f->id, err) : rc;
}

/* ---- keys ---- */

static void ignore_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)owner;
	(void)job;
	(void)key;
	(void)value;
}

/* Returns true if another host's name begins with NAME and a dot. If this host has several GPUs,
 * the names of its keys begin in the same way. */
static bool has_namesake(const struct hosts *hosts, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < hosts->n; i++)
		if (strncmp(hosts->list[i].name, name, length) == 0 &&
		    hosts->list[i].name[length] == '.')
			return true;
	return false;
}

/* If the disk of a host was wiped, as in a rented machine that was stopped, its agent has lost
 * its key and makes another. Expels the old keys of such hosts. If the old keys stayed, the
 * controller would refuse the new keys, because their names belong to the old keys. */
static int expel_lost_keys(const struct up *u, struct error *err)
{
	const struct fleet *f = u->fleet;
	const struct remote_calls calls = { NULL, ignore_line, NULL };
	struct remote_job job;
	size_t n = 0;
	int rc = 0;

	fleet_controller_job(f, &job, "forget");
	args_add(&job.words, "--");
	for (size_t i = 0; i < f->hosts.n; i++) {
		const struct host *h = &f->hosts.list[i];

		if (u->sites[i].state != SITE_FITS || u->sites[i].has_key ||
		    !hosts_find(&f->record.hosts, h->name) || has_namesake(&f->hosts, h->name))
			continue;
		args_add(&job.words, h->name);
		progress_print(f->progress, "%s: has lost its key, so a former key is expelled",
			       h->name);
		n++;
	}
	if (n > 0)
		rc = remote_run(f->remote, &job, 1, ASK_US + (int64_t)n * EXPEL_US, &calls, err);
	if (n > 0 && rc == 0 && job.rc != 0)
		rc = error_set(err, -EIO, "the controller's machine: %s", job.why);
	fleet_end_jobs(&job, 1);
	return rc;
}

/* ---- starting ---- */

static void take_start(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct up *u = owner;

	if (key && strcmp(key, "how") == 0)
		u->sites[fleet_place(u->fleet, job)].is_unit = strcmp(value, "systemd") == 0;
}

static void turn_start(void *owner, struct remote_job *job, bool done)
{
	struct up *u = owner;
	size_t place = fleet_place(u->fleet, job);

	if (!done) {
		progress_set(u->fleet->progress, place, "starting its agent");
	} else if (job->rc == 0) {
		u->sites[place].state = SITE_RUNS;
		u->sites[place].log_bytes = 0; /* the script has begun a new log */
		progress_set(u->fleet->progress, place, "its agent runs%s",
			     u->sites[place].is_unit ? ", a unit of systemd" : "");
	} else {
		u->sites[place].state = SITE_FAILED;
		progress_set(u->fleet->progress, place, "FAILED: %s%s%s", job->why,
			     job->said[0] ? ": " : "", job->said);
	}
}

static int start_agents(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	const struct remote_calls calls = { u, take_start, turn_start };
	struct remote_job *jobs = alloc_array(f->hosts.n, sizeof(*jobs));
	size_t n = 0, uses = 0;
	int rc = 0;

	for (size_t i = 0; i < f->hosts.n; i++) {
		if (u->sites[i].state != SITE_FITS)
			continue;
		uses += launch_count(&f->hosts.list[i], u->sites[i].gpus);
		fleet_agent_job(f, &jobs[n], &f->hosts.list[i], "start");
		args_add(&jobs[n].words, "");
		launch_agent(&jobs[n].words, &f->hosts.list[i], f->record.run_dir);
		jobs[n++].text = u->token;
	}
	if (n > 0)
		rc = invite(u, uses, err);
	if (rc == 0)
		rc = remote_run(f->remote, jobs, n, START_US, &calls, err);
	explicit_bzero(u->token, sizeof(u->token));
	fleet_end_jobs(jobs, n);
	free(jobs);
	return rc;
}

/* ---- all steps ---- */

static size_t count_agents(const struct up *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->fleet->hosts.n; i++)
		n += up_has_agent(u, i);
	return n;
}

static int bring_up(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	size_t joined = 0;
	int rc = prepare_sites(f, u->sites, err);

	if (rc != 0)
		return rc;

	if (f->n_sites > f->hosts.n && u->sites[f->hosts.n].state == SITE_FAILED)
		return error_set(err, -EIO, "the controller cannot run on its machine");
	if (count_agents(u) == 0)
		return error_set(err, -EIO, "no host can run an agent");
	rc = examine_sites(f, u->sites, err);
	if (rc == 0)
		rc = expel_lost_keys(u, err);
	if (rc == 0)
		fleet_step(f, "examined", count_agents(u));
	if (rc == 0)
		rc = record_fleet(u, err);
	if (rc == 0)
		rc = start_agents(u, err);
	if (rc != 0)
		return rc;
	fleet_step(f, "agents run", count_agents(u));
	rc = up_start_controller(u, err);
	if (rc == 0)
		rc = up_wait_for_agents(u, err);
	for (size_t i = 0; i < f->hosts.n; i++)
		joined += u->joined[i];
	fleet_step(f, "joined", joined);
	return rc != 0 ? rc : joined < f->hosts.n;
}

int fleet_up(struct fleet *f, struct error *err)
{
	struct up u = { .fleet = f };
	int rc = launch_check(f->options, err);

	if (rc == 0)
		rc = choose_run_dir(f, u.run_dir, err);
	if (rc != 0)
		return rc;
	u.sites = alloc_array(f->n_sites, sizeof(*u.sites));
	u.joined = alloc_array(f->hosts.n, sizeof(*u.joined));
	rc = bring_up(&u, err);
	free(u.sites);
	free(u.joined);
	return rc;
}
