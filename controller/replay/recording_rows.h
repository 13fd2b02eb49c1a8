/* recording_rows.h - reads the store's rows. Private to recording.c. */
#ifndef CONTROLLER_RECORDING_ROWS_H
#define CONTROLLER_RECORDING_ROWS_H

#include "controller/replay/recording.h"

/* Fills the recording's arrays and appends their happenings, not sorted by time. The run and the
 * cluster must already be set. */
int recording_rows(struct recording *r, struct error *err);

#endif
