/* recorded.h - reads the picture of a run from its folder. */
#ifndef DOCTOR_RECORDED_H
#define DOCTOR_RECORDED_H

#include "base/error.h"
#include "doctor/picture.h"

/* Reads RUN-DIR/run.db, beside a controller that writes it. Errors are those of store_open, and
 * -EBADMSG: the recorded cluster is damaged. On error *out is empty. */
int recorded_read(struct picture *out, const char *folder, struct error *err);

#endif
