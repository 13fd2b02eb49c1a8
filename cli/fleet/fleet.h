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
	/* The hosts of FILE. The list also has the controller's machine as its last entry. */
	struct hosts hosts;
	/* Number of machines that need skippipe: the hosts, and the controller's machine if it is
	 * not one of them */
	size_t n_sites;
	struct record record;
	/* Machine on which the controller runs, under the name "controller" */
	struct host controller;
	char program[4096]; /* path of skippipe on this machine */
	struct remote *remote;
	struct progress *progress;
	int64_t begun_us;
};

/* Fills in a job: its host, its folder and its first words. fleet_end_jobs frees the job. */
void fleet_agent_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		     const char *verb);
void fleet_controller_job(const struct fleet *f, struct remote_job *job, const char *verb);
/* Frees the memory of the jobs. */
void fleet_end_jobs(struct remote_job *jobs, size_t n);
/* Prints that n hosts have completed a step, with the seconds since the command began. */
void fleet_step(const struct fleet *f, const char *what, size_t n);
/* Returns the index of a job's host in the list of hosts. */
size_t fleet_place(const struct fleet *f, const struct remote_job *job);

/* The commands of `skippipe fleet`. Each returns 0, 1 if a host failed, or a negative errno with a
 * message in err. */
int fleet_up(struct fleet *f, struct error *err);
int fleet_status(struct fleet *f, struct error *err);
int fleet_logs(struct fleet *f, struct error *err);
int fleet_down(struct fleet *f, struct error *err);

#endif
