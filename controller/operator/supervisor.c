/* supervisor.c - orders to the embedded cluster's supervisor, which starts and kills agents for us. */
#include "controller/operator/supervisor.h"

#include <unistd.h>

#include "controller/run.h"

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
