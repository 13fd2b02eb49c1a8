/* skippipe-plan: the commands `plan`, which makes a plan for a cluster or chooses one for a
 * fleet, and `simulate`, which predicts the times of a plan and checks it.
 */
#include <stdio.h>
#include <string.h>

#include "base/process/output.h"
#include "planner/commands.h"
#include "planner/fleet_options.h"
#include "planner/program.h"

int main(int argc, char **argv)
{
	output_check_at_exit("skippipe-plan");
	if (argc >= 2 && strcmp(argv[1], "plan") == 0)
		return fleet_options_given(argc, argv) ? command_fleet(argc - 1, argv + 1)
						       : command_plan(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "simulate") == 0)
		return command_simulate(argc - 1, argv + 1);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		options_help(&options_of_plan, stdout);
		putchar('\n');
		options_help(&options_of_fleet, stdout);
		putchar('\n');
		options_help(&options_of_simulate, stdout);
		return DONE;
	}
	fprintf(stderr, "skippipe: expected plan or simulate (see --help)\n");
	return USAGE;
}
