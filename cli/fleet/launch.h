/* launch.h - the command lines with which `fleet up` starts agents and the controller. */
#ifndef CLI_FLEET_LAUNCH_H
#define CLI_FLEET_LAUNCH_H

#include "cli/args.h"
#include "cli/fleet/hosts.h"
#include "cli/fleet/options.h"

/* Checks the operator's options for the controller. -EINVAL: an option is not allowed, contains a
 * newline, or needs another option that is missing. */
int launch_check(const struct fleet_options *o, struct error *err);
/* Appends the command line of an agent, which begins with "agent". run_dir: the run's folder on the
 * controller's machine; the agent uses a folder of the same name in its home folder. */
void launch_agent(struct args *a, const struct host *host, const char *run_dir);
/* Appends one word: the option, directly followed by the path of the agent's key. The path starts
 * from the home folder of the agent's host. On a host with several GPUs, each agent appends a dot
 * and a number of its own to this path. */
void launch_add_key(struct args *a, const char *option, const struct host *host,
		    const char *run_dir);
/* Appends the command line of the controller, which begins with "controller". agents: number of
 * agents that were started. has_record: the controller resumes a run; the operator's options that a
 * resumed run does not accept are dropped. */
void launch_controller(struct args *a, const struct fleet_options *o, const char *run_dir,
		       size_t agents, bool has_record);
/* Returns true if the operator's options give the number of agents, for example by --stages. */
bool launch_has_size(const struct fleet_options *o);
/* Returns how many agents start on a host, one for each of its devices. `gpus` is the number of its
 * GPUs, for the device cuda:all. */
size_t launch_count(const struct host *host, size_t gpus);

#endif
