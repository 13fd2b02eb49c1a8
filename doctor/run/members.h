/* members.h - checks the nodes of a run: versions, states and devices. */
#ifndef DOCTOR_RUN_MEMBERS_H
#define DOCTOR_RUN_MEMBERS_H

#include "doctor/finding.h"
#include "doctor/run/picture.h"

/* Adds the findings "run", "nodes" and "devices". */
void members_check(struct findings *f, const struct picture *p);

#endif
