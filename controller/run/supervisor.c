/* supervisor.c - sends orders to the supervisor of an embedded cluster.
 *
 * The supervisor started this controller and its agents. Only the supervisor can start, kill and
 * wake an agent's process. The supervisor also restarts a controller that died, unless the run is
 * over. */
#include "controller/run/supervisor.h"

#include <unistd.h>

#include "controller/run/run.h"

bool supervisor_tell(struct run *run, const char *what, int node)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%s %d\n", what, node);

	return run->supervisor >= 0 && write(run->supervisor, line, (size_t)n) == n;
}

void supervisor_end(struct run *run)
{
	if (run->supervisor >= 0)
		(void)!write(run->supervisor, "end\n", 4);
}
