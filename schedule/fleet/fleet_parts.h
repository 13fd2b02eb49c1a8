/* fleet_parts.h - declarations for the files that make fleets. Internal to schedule/fleet/. */
#ifndef SCHEDULE_FLEET_PARTS_H
#define SCHEDULE_FLEET_PARTS_H

#include "schedule/fleet/fleet.h"

/* Makes the nodes of all entries, and allocates their links. -EINVAL: too many nodes. */
int fleet_allocate_nodes(struct fleet *f, struct error *err);

#endif
