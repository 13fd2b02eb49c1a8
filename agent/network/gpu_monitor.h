/* gpu_monitor.h - the figures of the agent's GPU for its heartbeats.
 *
 * A thread reads the figures, because NVML may take tens of milliseconds, and hangs if the driver
 * hangs. The thread reads at most once a second. Neither the main loop nor the worker thread waits
 * for this thread.
 */
#ifndef AGENT_NETWORK_GPU_MONITOR_H
#define AGENT_NETWORK_GPU_MONITOR_H

#include <stdbool.h>

#include "base/error.h"
#include "base/gpu_figures.h"
#include "base/log.h"

struct gpu_monitor; /* opaque */

/* Gives *out (gpu_monitor_free). library: the file name of NVML (model/cuda/nvml.h); bus_id: the
 * address of the GPU (model/stage.h). library and log are borrowed. The thread opens the library
 * and the GPU. If the machine has no NVML, the figures stay empty, and the log has the reason once.
 * Errors are those of worker_new. */
int gpu_monitor_new(struct gpu_monitor **out, const char *library, const char *bus_id,
		    const struct log *log, struct error *err);
/* Frees the monitor, after waiting for a reading under way. NULL is allowed. */
void gpu_monitor_free(struct gpu_monitor *m);

/* Returns the newest figures; call it with every heartbeat. The figures are empty in three cases:
 * no reading has ended yet, the present reading has lasted longer than 5 s, or m is NULL. */
struct gpu_figures gpu_monitor_turn(struct gpu_monitor *m);
/* Returns true while the thread reads. gpu_monitor_free would then wait for the thread. If the
 * driver hangs, gpu_monitor_free would wait forever. NULL is allowed. */
bool gpu_monitor_busy(struct gpu_monitor *m);

#endif
