/* recorded_run_rows.h - reads the store's rows. Private to recorded_run.c. */
#ifndef CONTROLLER_RECORDED_RUN_ROWS_H
#define CONTROLLER_RECORDED_RUN_ROWS_H

#include "controller/replay/recorded_run.h"

/* Fills the recorded run's arrays and appends their happenings, not yet sorted by time. The fields
 * run and cluster must already be set. */
int recorded_run_rows(struct recorded_run *r, struct error *err);

#endif
