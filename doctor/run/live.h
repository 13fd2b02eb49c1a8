/* live.h - reads a run's nodes, links and journal from its controller, as a console does. */
#ifndef DOCTOR_RUN_LIVE_H
#define DOCTOR_RUN_LIVE_H

#include <stdbool.h>

#include "base/error.h"
#include "doctor/run/picture.h"

/* Returns true if the text is a token of an invitation, or @FILE, which names a file with a
 * token. */
bool live_suits(const char *text);
/* Joins the run with a token of an invitation for consoles, and reads one snapshot. The first
 * call creates a key for this user and keeps it in a file. The function overwrites the token with
 * zeros. Errors are those of snapshot_read. -EPERM: the controller refused the token; -ETIMEDOUT:
 * the controller did not answer; -EPROTO: the controller has another version. On error *out is
 * unchanged. */
int live_read(struct picture *out, char *token, struct error *err);

#endif
