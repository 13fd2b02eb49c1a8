/* gpu_reports.c - checks the figures of GPUs, and notes when a GPU begins to be throttled. */
#include "controller/members/gpu_reports.h"

#include <stdio.h>
#include <string.h>

#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/run/run.h"

/* A hot GPU throttles for seconds, recovers and throttles again. The journal repeats the warning
 * only if the GPU has not throttled for this time. */
enum { QUIET_US = 60000000 };

static void check(const struct member *m, struct gpu_figures *g)
{
	if (strncmp(m->hello.device, "cuda", 4) != 0)
		*g = (struct gpu_figures){ 0 };
	if (g->memory_used_mib > g->memory_mib) {
		g->memory_used_mib = g->memory_mib = 0;
		g->known &= (uint8_t)~GPU_MEMORY;
	}
}

void gpu_reports_hear(struct run *run, struct member *m)
{
	struct gpu_figures *g = &m->beat.gpu;
	uint8_t begins = 0;
	char why[GPU_THROTTLING_TEXT], at[16] = "";

	check(m, g);
	for (int i = 0; i < GPU_FAULTS; i++) {
		int64_t *last_us = &m->gpu.throttled_us[i];

		if (!(g->throttling >> i & 1))
			continue;
		if (*last_us == 0 || run->now_us - *last_us > QUIET_US)
			begins |= (uint8_t)(1 << i);
		*last_us = run->now_us;
	}
	if (!begins)
		return;
	if (g->known & GPU_TEMPERATURE)
		snprintf(at, sizeof(at), ", at %u C", g->temperature_c);
	note(run, NOTE_WARNING, m->id, 0, "n%02u: its GPU is throttled: %s%s", m->id,
	     gpu_throttling_text(begins, why), at);
}
