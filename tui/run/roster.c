/* Lists the nodes in order and filters them. All views and keys use this order, so that a node is
 * at the same place in every view. */
#include "tui/run/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool roster_names(const char *word, uint16_t node)
{
	size_t n = strlen(word);

	return n >= 3 && (*word == 'n' || *word == 'N') &&
	       strspn(word + 1, "0123456789") == n - 1 && strtoul(word + 1, NULL, 10) == node;
}

static bool node_matches(const struct state *s, uint16_t node, const char *filter)
{
	const struct msg_see_node *n = &s->nodes[node].see;
	char id[16], stage[16];

	if (!*filter)
		return true;
	snprintf(id, sizeof(id), "n%02u", (unsigned)node);
	snprintf(stage, sizeof(stage), "S%u", (unsigned)n->stage);
	if ((filter[0] == 'S' || filter[0] == 's') && filter[1] >= '0' && filter[1] <= '9')
		return strcasecmp(stage, filter) == 0;
	if (filter[0] >= '0' && filter[0] <= '9')
		return (unsigned long)node == strtoul(filter, NULL, 10);
	return strcasestr(id, filter) || roster_names(filter, node) ||
	       strcasestr(n->location, filter) || strcasestr(n->name, filter) ||
	       strcasestr(n->host, filter) || strcasestr(n->device, filter) ||
	       strcasestr(node_state_shown(n->state), filter) ||
	       (state_is_slow(s, &s->nodes[node]) && strcasestr("slow", filter));
}

void roster_make(struct roster *r, const struct state *s, const char *filter)
{
	uint32_t at = 0, high = 0;

	r->n_stages = s->run.n_stages;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].known && s->nodes[i].see.stage >= r->n_stages)
			r->n_stages = s->nodes[i].see.stage + 1u;
	r->largest = 0;
	for (uint32_t stage = 0; stage < r->n_stages; stage++) {
		r->first[stage] = at;
		for (uint32_t i = 0; i < s->n_nodes; i++)
			if (s->nodes[i].known && s->nodes[i].see.stage == stage &&
			    node_matches(s, (uint16_t)i, filter))
				r->nodes[at++] = (uint16_t)i;
		if (at - r->first[stage] > r->largest)
			r->largest = at - r->first[stage];
	}
	for (uint32_t stage = r->n_stages; stage <= MSG_STAGES; stage++)
		r->first[stage] = at;
	r->n = at;
	r->unplaced = state_has_no_stages(s) && r->n_stages > 0;
	if (r->unplaced)
		r->largest = (at + r->n_stages - 1) / r->n_stages;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].known)
			high = i;
	r->digits = high > 99 ? 3 : 2;
}

int roster_find(const struct roster *r, uint16_t node)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->nodes[i] == node)
			return (int)i;
	return -1;
}
