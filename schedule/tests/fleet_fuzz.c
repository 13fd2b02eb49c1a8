/* Fuzzes the reader of fleets. Every fleet that is accepted must have positive speed and memory,
 * and must be divisible into stages. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "schedule/fleet/groups.h"
#include "schedule/tests/fleet_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cards *cards;
static struct regions *regions;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_shape shape = fleet_shape(4);
	struct fleet_facts facts = { .shape = &shape };
	struct fleet *f;
	struct groups g;
	struct error err;

	if (!cards && (cards_read("deploy/cards.json", &cards, &err) != 0 ||
		       regions_read("deploy/regions.json", &regions, &err) != 0))
		abort();
	facts.cards = cards;
	facts.regions = regions;
	if (fleet_parse((const char *)data, size, &facts, &f, &err) != 0)
		return 0;
	for (int i = 0; i < f->n_nodes; i++) {
		const struct fleet_machines *e = fleet_machines_of(f, i);

		if (!(e->flop_per_s > 0) || !(e->memory_bytes > 0) || !(e->up > 0))
			abort();
	}
	groups_init(&g, f);
	if (g.n < 1 || g.n > GROUPS_MOST)
		abort();
	groups_fini(&g);
	fleet_free(f);
	return 0;
}
