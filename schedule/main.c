/* skippipe-plan: the commands `plan`, which makes a plan for a cluster, and `simulate`, which
 * predicts and checks one.
 */
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "schedule/program/commands.h"
#include "schedule/program/program.h"

int main(int argc, char **argv)
{
	output_check_at_exit("skippipe-plan");
	if (argc >= 2 && strcmp(argv[1], "plan") == 0)
		return command_plan(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "simulate") == 0)
		return command_simulate(argc - 1, argv + 1);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(program_help, stdout);
		return DONE;
	}
	return program_refuse(argc < 2 ? NULL : "expected plan or simulate");
}
