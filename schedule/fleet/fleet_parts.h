/* fleet_parts.h - shared by the files that make fleets. Internal to schedule/fleet/. */
#ifndef SCHEDULE_FLEET_PARTS_H
#define SCHEDULE_FLEET_PARTS_H

#include "schedule/fleet/fleet.h"

/* Makes the nodes of the entries, and room for their links. -EINVAL: too many nodes. */
int fleet_allocate_nodes(struct fleet *f, struct error *err);

#endif
