/* `skippipe fleet up`: checks and copies (prepare.h), invites, starts agents and controller, and
 * waits until the agents have joined.
 *
 * Agents start before the controller: they wait a minute for it, and so the controller learns how
 * many there are. The token passes through ssh's standard input into a file of mode 600; no command
 * line and no log has it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/fleet/examine.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/launch.h"
#include "cli/fleet/prepare.h"

enum {
	ASK_US = 20000000,   /* limit of a question */
	START_US = 40000000, /* limit of a start */
	LOOK_US = 300000,    /* time between two looks at the agents */
	WHY_LINES = 4
};

static const char token_prefix[] = "skippipe1_";

struct up {
	struct fleet *fleet;
	struct site *sites;
	bool *joined; /* (hosts) */
	char run_dir[RECORD_PATH];
	char token[REMOTE_LINE], invitation[HOST_NAME];
	bool controller_runs, has_record;
	bool is_new_controller; /* this `up` has started the controller */
	char controller_said[REMOTE_LINE];
};

static bool has_agent(const struct up *u, size_t i)
{
	return u->sites[i].state == SITE_RUNS || u->sites[i].state == SITE_FITS;
}

/* ---- the record ---- */

/* Decides the run's folder. A relative one of this machine becomes absolute, because `down` may be
 * called elsewhere. */
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

/* Records the hosts before anything starts on them, together with those of the last `up`. A host
 * that cannot start an agent is not recorded, so that `down` need not reach it. */
static int record_fleet(struct up *u, struct error *err)
{
	struct fleet *f = u->fleet;
	struct hosts all = { .list = alloc_array(f->hosts.n + f->record.hosts.n + 1,
						 sizeof(*all.list)) };

	for (size_t i = 0; i < f->hosts.n; i++)
		if (has_agent(u, i))
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

/* Makes an invitation for the agents that will start. */
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
		u->sites[place].log_bytes = 0; /* a new log */
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

static int start_controller(struct up *u, struct error *err)
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
		agents += has_agent(u, i) ? launch_count(&f->hosts.list[i], u->sites[i].gpus) : 0;
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

/* Looks once at the agents that run and have not joined. Returns the number of these, or a negative
 * errno. */
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
		/* The log before has the welcome of a controller that has ended. */
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

static int wait_for_agents(struct up *u, struct error *err)
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

/* Prints the last lines of the agents that have not joined in time. */
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

/* ---- the whole ---- */

static size_t count_agents(const struct up *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->fleet->hosts.n; i++)
		n += has_agent(u, i);
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
		fleet_step(f, "examined", count_agents(u));
	if (rc == 0)
		rc = record_fleet(u, err);
	if (rc == 0)
		rc = start_agents(u, err);
	if (rc != 0)
		return rc;
	fleet_step(f, "agents run", count_agents(u));
	rc = start_controller(u, err);
	if (rc == 0)
		rc = wait_for_agents(u, err);
	if (rc == 0)
		rc = explain_missing(u, err);
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
