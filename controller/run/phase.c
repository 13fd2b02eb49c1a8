/* phase.c - changes the phase of the run.
 *
 * The controller records a new phase, and shows it to consoles at once. The supervisor of an
 * embedded cluster learns of the run's end only when the record is complete. */
#include "controller/run/phase.h"

#include "controller/run/rates.h"
#include "controller/run/record.h"
#include "controller/run/run.h"
#include "controller/run/supervisor.h"

void set_phase(struct run *run, enum run_phase phase)
{
	bool changed = run->phase != phase;

	run->phase = phase;
	run->stream.next_status_us = 0; /* 0: consoles get the status at the next turn */
	if (changed)
		record_phase(run);
}

bool run_is_done(const struct run *run)
{
	return rates_last(run) > 0 && run->committed >= rates_last(run);
}

void controller_closed(struct run *run)
{
	if (run->phase == PHASE_FINISHED && !run->ending.unrecorded)
		supervisor_end(run);
}
