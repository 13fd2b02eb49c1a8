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
	struct hosts
		hosts;  /* those of FILE; the controller's machine lies behind them in the list */
	size_t n_sites; /* machines with skippipe: the hosts, and the controller's if it is no host
			 */
	struct record record;
	struct host controller; /* where the controller runs, under the name "controller" */
	char program[4096];     /* skippipe of this machine */
	struct remote *remote;
	struct progress *progress;
};

/* Starts a job: sets host, folder and first words. The folder is freed by fleet_end_jobs. */
void fleet_agent_job(const struct fleet *f, struct remote_job *job, const struct host *host,
		     const char *verb);
void fleet_controller_job(const struct fleet *f, struct remote_job *job, const char *verb);
/* Frees an array of jobs. */
void fleet_end_jobs(struct remote_job *jobs, size_t n);
/* Returns the place of a job's host in the list. */
size_t fleet_place(const struct fleet *f, const struct remote_job *job);

/* The commands. Each returns 0, 1 if a host failed, or a negative errno with err. */
int fleet_up(struct fleet *f, struct error *err);
int fleet_status(struct fleet *f, struct error *err);
int fleet_logs(struct fleet *f, struct error *err);
int fleet_down(struct fleet *f, struct error *err);

#endif
