/* recorded.h - reads the picture of a run from its folder. */
#ifndef DOCTOR_RUN_RECORDED_H
#define DOCTOR_RUN_RECORDED_H

#include "base/error.h"
#include "doctor/run/picture.h"

/* Reads RUN-DIR/run.db, which a running controller may write at the same time. Errors are those of
 * store_open, and -EBADMSG: the recorded cluster is damaged. On error *out is empty. */
int recorded_read(struct picture *out, const char *folder, struct error *err);

#endif
