/* supervisor.c - orders to the embedded cluster's supervisor, which starts and kills agents for us. */
#include "controller/operator/supervisor.h"

#include <unistd.h>

#include "controller/controller.h"

bool supervisor_tell(struct controller *c, const char *what, int node)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%s %d\n", what, node);

	return c->supervisor >= 0 && write(c->supervisor, line, (size_t)n) == n;
}

void supervisor_end(struct controller *c)
{
	if (c->supervisor >= 0)
		(void)!write(c->supervisor, "end\n", 4);
}
