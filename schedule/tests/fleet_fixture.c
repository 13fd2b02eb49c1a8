#include "schedule/tests/fleet_fixture.h"

#include <string.h>

#include "base/tests/test.h"

struct model_shape fleet_shape(int n_layers)
{
	return (struct model_shape){
		.n_layers = n_layers,
		.width = 1024,
		.batch = 1,
		.tokens = 1000,
		.layer_weights = 1e8,
		.end_weights = 2e7,
		.weight_bytes = 18,
		.layer_flop = 2e11,
		.head_flop = 4e10,
		.activation_bytes = 4e6,
		.kept_bytes = { 1e8, 4e6 },
		.scratch_bytes = 1e8,
		.end_scratch_bytes = 4e6,
		.logits_bytes = 1e8,
		.most_logits_bytes = 1e9,
		.slot_bytes = 8e3,
		.fixed_bytes = 5e8,
	};
}

int fleet_of_text(const char *text, const struct model_shape *shape, struct fleet **out,
		  struct error *err)
{
	struct cards *cards;
	struct regions *regions;
	int rc;

	assert_int_equal(cards_read("deploy/cards.json", &cards, NULL), 0);
	assert_int_equal(regions_read("deploy/regions.json", &regions, NULL), 0);
	rc = fleet_parse(
		text, strlen(text),
		&(struct fleet_facts){ .cards = cards, .regions = regions, .shape = shape }, out,
		err);
	cards_free(cards);
	regions_free(regions);
	return rc;
}
