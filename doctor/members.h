/* members.h - checks the nodes of a run: versions, states and devices. */
#ifndef DOCTOR_MEMBERS_H
#define DOCTOR_MEMBERS_H

#include "doctor/finding.h"
#include "doctor/picture.h"

/* Adds the findings run, nodes and devices. */
void members_check(struct findings *f, const struct picture *p);

#endif
