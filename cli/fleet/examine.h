/* examine.h - asks `skippipe doctor` on each host of a fleet whether a run can work there. */
#ifndef CLI_FLEET_EXAMINE_H
#define CLI_FLEET_EXAMINE_H

#include "cli/fleet/prepare.h"

/* Examines the hosts with SITE_FITS. One with a finding of level error gets SITE_FAILED, and the
 * findings are printed. A host whose version has no such verb, or whose doctor does not answer,
 * stays. Returns 0 or a negative errno. */
int examine_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
