/* requests.c - the queue of requests to the loop about the iteration under way.
 *
 * A request takes effect once, even if several parts make it before the loop carries it out. */
#include "controller/run/requests.h"

#include <string.h>

void request_lost(struct requests *r, uint16_t node)
{
	for (uint32_t i = 0; i < r->n_lost; i++)
		if (r->lost[i] == node)
			return;
	r->lost[r->n_lost++] = node;
}

void request_restart(struct requests *r, const char *why)
{
	if (!r->restart_reason)
		r->restart_reason = why;
}

bool requests_any(const struct requests *r)
{
	return r->n_lost > 0 || r->restart_sums || r->look_at_sums || r->restart_reason;
}

int requests_next_lost(struct requests *r)
{
	int node = r->n_lost > 0 ? r->lost[0] : -1;

	if (node < 0)
		return -1;
	r->n_lost--;
	memmove(r->lost, r->lost + 1, r->n_lost * sizeof(r->lost[0]));
	return node;
}
