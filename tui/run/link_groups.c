/* Groups nodes for the map of links. Both the view that draws the map and the key that changes the
 * grouping use this module. */
#include "tui/run/link_groups.h"

#include <assert.h>
#include <string.h>

static_assert((int)LINK_GROUPS >= MSG_STAGES, "a stage needs a group");

static const char *place_of(const struct state *s, uint16_t node)
{
	return s->nodes[node].see.location;
}

/* Makes a group for each region. Returns false if a region is unknown, if there is only one, or if
 * there are more than LINK_GROUPS. */
static bool group_by_region(struct link_groups *g, const struct state *s, const struct roster *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t k = 0;

		while (k < g->n && strcmp(place_of(s, g->one[k]), place_of(s, r->nodes[i])) != 0)
			k++;
		if (k == LINK_GROUPS || !*place_of(s, r->nodes[i]))
			return false;
		if (k == g->n)
			g->one[g->n++] = r->nodes[i];
		g->of[r->nodes[i]] = (uint8_t)k;
	}
	return g->n > 1;
}

static void group_by_stage(struct link_groups *g, const struct state *s, const struct roster *r)
{
	g->n = r->unplaced ? 0 : r->n_stages;
	for (uint32_t i = 0; i < r->n && g->n > 0; i++) {
		uint8_t stage = s->nodes[r->nodes[i]].see.stage;

		/* roster_make ensures that the stage is below n_stages. */
		g->of[r->nodes[i]] = stage;
		g->one[stage] = r->nodes[i];
	}
}

void link_groups_make(struct link_groups *g, enum link_grouping wanted, const struct state *s,
		      const struct roster *r)
{
	g->by = wanted == LINKS_BY_NODE && r->n > LINK_GROUPS_NODES ? LINKS_BY_REGION : wanted;
	g->n = 0;
	memset(g->of, LINK_GROUPS_NONE, sizeof(g->of));
	if (g->by == LINKS_BY_NODE) {
		for (; g->n < r->n; g->n++) {
			g->of[r->nodes[g->n]] = (uint8_t)g->n;
			g->one[g->n] = r->nodes[g->n];
		}
		return;
	}
	if (g->by == LINKS_BY_REGION && group_by_region(g, s, r))
		return;
	g->by = LINKS_BY_STAGE;
	memset(g->of, LINK_GROUPS_NONE, sizeof(g->of));
	group_by_stage(g, s, r);
}
