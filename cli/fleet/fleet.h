/* fleet.h - what the commands of `skippipe fleet` share: the hosts, the record, the connections. */
#ifndef CLI_FLEET_FLEET_H
#define CLI_FLEET_FLEET_H

#include "cli/fleet/hosts.h"
#include "cli/fleet/options.h"
#include "cli/fleet/progress.h"
#include "cli/fleet/record.h"
#include "cli/fleet/remote.h"

struct fleet {
	const struct fleet_options *options;
	char id[RECORD_ID];
	/* The hosts of FILE. In the list, the controller's machine follows them. */
	struct hosts hosts;
	/* Number of machines that need skippipe: the hosts, and the controller's unless it is one
	 * of them */
	size_t n_sites;
	struct record record;
	struct host controller; /* where the controller runs, under the name "controller" */
	char program[4096];     /* skippipe of this machine */
	struct remote *remote;
	struct progress *progress;
	int64_t begun_us;
};

/* Starts a job: sets host, folder and first words. fleet_end_jobs frees them. */
void fleet_agent_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		     const char *verb);
void fleet_controller_job(const struct fleet *f, struct remote_job *job, const char *verb);
/* Frees what the jobs hold. */
void fleet_end_jobs(struct remote_job *jobs, size_t n);
/* Prints a step that n hosts have done, with the seconds since the command began. */
void fleet_step(const struct fleet *f, const char *what, size_t n);
/* Returns the place of a job's host in the list. */
size_t fleet_place(const struct fleet *f, const struct remote_job *job);

/* The commands. Each returns 0, 1 if a host failed, or a negative errno with err. */
int fleet_up(struct fleet *f, struct error *err);
int fleet_status(struct fleet *f, struct error *err);
int fleet_logs(struct fleet *f, struct error *err);
int fleet_down(struct fleet *f, struct error *err);

#endif
