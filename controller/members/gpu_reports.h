/* gpu_reports.h - the figures that agents report about their GPUs, and warnings about GPUs that
 * lower their clocks for heat or power.
 */
#ifndef CONTROLLER_MEMBERS_GPU_REPORTS_H
#define CONTROLLER_MEMBERS_GPU_REPORTS_H

#include <stdint.h>

struct member;
struct run;

enum { GPU_FAULTS = 3 }; /* number of bits in GPU_THROTTLING_FAULTS */

struct member_gpu {
	/* Array with an entry for each reason for throttling that counts as a fault: time of the
	 * node's newest report of this reason; 0: never. */
	int64_t throttled_us[GPU_FAULTS];
};

/* Takes the GPU's figures from m's newest heartbeat. Drops impossible figures: figures of a node
 * without a GPU, and a use of memory that exceeds the GPU's memory. The journal warns about a
 * reason for throttling when this reason is reported for the first time, or again after a minute
 * without reports of it. */
void gpu_reports_hear(struct run *run, struct member *m);

#endif
