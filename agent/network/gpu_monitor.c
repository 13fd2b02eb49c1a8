/* gpu_monitor.c - reads the figures of the GPU (utilisation, memory, power, temperature) in its own
 * thread, at every tenth heartbeat. */
#include "agent/network/gpu_monitor.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/shared/worker.h"
#include "base/alloc.h"
#include "model/cuda/nvml.h"
#include "model/stage.h"

enum {
	READ_BEATS = 10, /* number of heartbeats from one reading to the next */
	/* If a reading takes longer than this number of heartbeats, the previous figures are
	 * dropped. */
	OLD_BEATS = 50
};

struct gpu_monitor {
	struct worker *worker;
	const struct log *log;
	const char *library;
	char bus_id[STAGE_BUS_SIZE];
	struct gpu_figures newest;
	unsigned beats; /* number of heartbeats since the last reading began */
	bool failed;    /* NVML cannot be opened */
	/* While the thread reads, the next three fields belong to the thread: the GPU (NULL
	 * before the first reading), its figures, and the error if the GPU could not be read. */
	struct nvml *nvml;
	struct gpu_figures reading;
	struct error err;
};

static void read_figures(void *context, void *job)
{
	struct gpu_monitor *m = job;

	(void)context;
	if (m->nvml || nvml_open(&m->nvml, m->library, m->bus_id, &m->err) == 0)
		nvml_read(m->nvml, &m->reading);
}

int gpu_monitor_new(struct gpu_monitor **out, const char *library, const char *bus_id,
		    const struct log *log, struct error *err)
{
	struct gpu_monitor *m = alloc_new(sizeof(*m));
	int rc = worker_new(&m->worker, "gpu figures", err);

	if (rc) {
		free(m);
		return rc;
	}
	m->library = library;
	m->log = log;
	snprintf(m->bus_id, sizeof(m->bus_id), "%s", bus_id);
	m->beats = READ_BEATS;
	*out = m;
	return 0;
}

void gpu_monitor_free(struct gpu_monitor *m)
{
	if (!m)
		return;
	worker_free(m->worker);
	nvml_close(m->nvml);
	free(m);
}

/* Copies the figures of a completed reading to `newest`. */
static void take_reading(struct gpu_monitor *m)
{
	if (!worker_finished(m->worker))
		return;
	m->newest = m->reading;
	m->failed = m->nvml == NULL;
	if (m->failed)
		log_line(m->log, LOG_INFO, "no figures of the GPU: %s", m->err.text);
}

struct gpu_figures gpu_monitor_turn(struct gpu_monitor *m)
{
	if (!m)
		return (struct gpu_figures){ 0 };
	m->beats++;
	take_reading(m);
	if (!m->failed && !worker_busy(m->worker) && m->beats >= READ_BEATS) {
		m->beats = 0;
		worker_start(m->worker, read_figures, NULL, m);
	} else if (m->beats > OLD_BEATS) {
		m->newest = (struct gpu_figures){ 0 };
	}
	return m->newest;
}

bool gpu_monitor_busy(struct gpu_monitor *m)
{
	if (!m)
		return false;
	take_reading(m);
	return worker_busy(m->worker);
}
