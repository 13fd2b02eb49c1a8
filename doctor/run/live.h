/* live.h - reads the picture of a run from its controller, as a console does. */
#ifndef DOCTOR_RUN_LIVE_H
#define DOCTOR_RUN_LIVE_H

#include <stdbool.h>

#include "base/error.h"
#include "doctor/run/picture.h"

/* Returns true if the text is a token, or @FILE, which names a file with a token. */
bool live_suits(const char *text);
/* Joins the run with the token of an invitation for consoles, and reads one snapshot. The user's
 * key is created at the first call and kept. The token is wiped in place. -EPERM: the controller
 * refused; -ETIMEDOUT: it did not answer; -EPROTO; others as enroll. On error *out is unchanged. */
int live_read(struct picture *out, char *token, struct error *err);

#endif
