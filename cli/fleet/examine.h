/* examine.h - asks `skippipe doctor` on each host of a fleet whether a run can work there. */
#ifndef CLI_FLEET_EXAMINE_H
#define CLI_FLEET_EXAMINE_H

#include "cli/fleet/prepare.h"

/* Examines the hosts in the state SITE_FITS, and prints the errors that were found. A host with an
 * error gets the state SITE_FAILED. If `skippipe doctor` is missing on a host or does not answer,
 * the host keeps its state. Returns 0 or a negative errno. */
int examine_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
