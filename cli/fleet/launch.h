/* launch.h - the command lines with which `fleet up` starts agents and the controller. */
#ifndef CLI_FLEET_LAUNCH_H
#define CLI_FLEET_LAUNCH_H

#include "cli/args.h"
#include "cli/fleet/hosts.h"
#include "cli/fleet/options.h"

/* Checks the operator's options for the controller. -EINVAL: one is not valid. */
int launch_check(const struct fleet_options *o, struct error *err);
/* Appends the words of an agent, "agent" first. run_dir: the run's folder as the operator named it.
 * The host gets a folder of that name in its home folder. */
void launch_agent(struct args *a, const struct host *host, const char *run_dir);
/* Appends the words of the controller, "controller" first. agents: the number of started agents.
 * has_record: the run is resumed; options that a resumed run does not accept are then omitted. */
void launch_controller(struct args *a, const struct fleet_options *o, const char *run_dir,
		       size_t agents, bool has_record);
/* Returns how many agents a host with `gpus` GPUs gets: one for each of its devices. */
size_t launch_count(const struct host *host, size_t gpus);

#endif
