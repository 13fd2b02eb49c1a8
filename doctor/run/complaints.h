/* complaints.h - finds lines in the journal that report a problem with a known remedy. */
#ifndef DOCTOR_RUN_COMPLAINTS_H
#define DOCTOR_RUN_COMPLAINTS_H

#include "doctor/finding.h"
#include "doctor/run/picture.h"

/* Adds findings named "journal": the newest complaint of each kind and node. */
void complaints_check(struct findings *f, const struct picture *p);

#endif
