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
	/* The hosts of FILE. After the last of the n hosts, the list has the controller's
	 * machine. */
	struct hosts hosts;
	/* Number of machines on which skippipe must be installed: the hosts, and the controller's
	 * machine unless it is this machine or one of the hosts. */
	size_t n_sites;
	struct record record;
	/* The machine of the controller; its name is "controller". */
	struct host controller;
	char program[4096]; /* path of skippipe on this machine */
	struct remote *remote;
	struct progress *progress;
	int64_t begun_us;
};

/* Both functions make a job for a machine: they set the job's folder, and make `verb` the first of
 * the job's words. fleet_end_jobs frees the job. */
void fleet_agent_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		     const char *verb);
void fleet_controller_job(const struct fleet *f, struct remote_job *job, const char *verb);
/* Frees the memory of the jobs. */
void fleet_end_jobs(struct remote_job *jobs, size_t n);
/* Prints that n of the hosts have completed the step `what`. Also prints the seconds since the
 * command began. */
void fleet_step(const struct fleet *f, const char *what, size_t n);
/* Returns the index of the job's host in f->hosts.list. */
size_t fleet_place(const struct fleet *f, const struct remote_job *job);

/* The commands of `skippipe fleet`. Each returns 0, 1 if it failed on a host, or a negative errno
 * with a message in err. */
int fleet_up(struct fleet *f, struct error *err);
int fleet_status(struct fleet *f, struct error *err);
int fleet_logs(struct fleet *f, struct error *err);
int fleet_down(struct fleet *f, struct error *err);

#endif
