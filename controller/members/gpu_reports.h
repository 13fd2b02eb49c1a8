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
	/* For each reason for throttling that is a fault: time of the node's newest report of
	 * this reason; 0: never. */
	int64_t throttled_us[GPU_FAULTS];
};

/* Takes the GPU's figures from m's newest heartbeat. Drops impossible figures, such as those of a
 * node without a GPU, or more memory in use than the GPU has. The journal warns when a reason for
 * throttling appears that had been absent for a minute. */
void gpu_reports_hear(struct run *run, struct member *m);

#endif
