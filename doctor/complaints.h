/* complaints.h - finds complaints of the journal that have a remedy. */
#ifndef DOCTOR_COMPLAINTS_H
#define DOCTOR_COMPLAINTS_H

#include "doctor/finding.h"
#include "doctor/picture.h"

/* Adds the finding journal, once for each node and kind of complaint: the newest. */
void complaints_check(struct findings *f, const struct picture *p);

#endif
