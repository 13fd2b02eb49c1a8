/* examine.h - asks `skippipe doctor` on each host of a fleet whether a run can work there. */
#ifndef CLI_FLEET_EXAMINE_H
#define CLI_FLEET_EXAMINE_H

#include "cli/fleet/prepare.h"

/* Examines the hosts in the state SITE_FITS, and prints the findings. A host with an error among
 * its findings gets the state SITE_FAILED. A host whose skippipe has no doctor, or whose doctor
 * does not answer, keeps its state. Returns 0 or a negative errno. */
int examine_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
