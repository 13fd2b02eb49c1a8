/* recording_rows.h - private to recording.c. */
#ifndef CONTROLLER_RECORDING_ROWS_H
#define CONTROLLER_RECORDING_ROWS_H

#include "controller/replay/recording.h"

/* Fills the arrays and their happenings, in no order yet. The run itself is known. -ENOMEM may come
 * without a message. */
int recording_rows(struct recording *r, struct error *err);

#endif
