/* fleet_fixture.h - a small model and fleets for the tests of schedule/fleet. */
#ifndef SCHEDULE_FLEET_FIXTURE_H
#define SCHEDULE_FLEET_FIXTURE_H

#include "base/model_shape.h"
#include "schedule/fleet/fleet.h"

/* Returns a model with this many layers of 1e8 weights each, and with sequences of 1,000 tokens. */
struct model_shape fleet_shape(int n_layers);
/* Reads the table of cards and the regions of this repository, and parses the fleet. */
int fleet_of_text(const char *text, const struct model_shape *shape, struct fleet **out,
		  struct error *err);

#endif
