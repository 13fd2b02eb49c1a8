/* recorded.h - reads a run's nodes, links and journal from the run's folder. */
#ifndef DOCTOR_RUN_RECORDED_H
#define DOCTOR_RUN_RECORDED_H

#include "base/error.h"
#include "doctor/run/picture.h"

/* Reads the record RUN-DIR/run.db. A running controller may write the record at the same time.
 * Errors are those of store_open. -EBADMSG: the recorded cluster is damaged. On error *out is
 * empty. */
int recorded_read(struct picture *out, const char *folder, struct error *err);

#endif
