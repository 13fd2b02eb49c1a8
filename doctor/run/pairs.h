/* pairs.h - checks whether the nodes of a run reach one another, and how fast. */
#ifndef DOCTOR_RUN_PAIRS_H
#define DOCTOR_RUN_PAIRS_H

#include "doctor/finding.h"
#include "doctor/run/picture.h"

/* Adds the findings "reachability" and "links". */
void pairs_check(struct findings *f, const struct picture *p);

#endif
