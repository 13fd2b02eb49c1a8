/* live.h - reads the picture of a run from its controller, as a console does. */
#ifndef DOCTOR_RUN_LIVE_H
#define DOCTOR_RUN_LIVE_H

#include <stdbool.h>

#include "base/error.h"
#include "doctor/run/picture.h"

/* Returns true if the text is a token, or @FILE with one. */
bool live_suits(const char *text);
/* Joins with the token of an invitation for consoles, under a key of this user that is kept for the
 * next time, and reads one snapshot. A token is wiped in place. -EPERM: the controller refused;
 * -ETIMEDOUT: it did not answer; -EPROTO; others as enroll. On error *out is unchanged. */
int live_read(struct picture *out, char *token, struct error *err);

#endif
