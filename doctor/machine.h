/* machine.h - checks versions, processors and memory. */
#ifndef DOCTOR_MACHINE_H
#define DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

struct machine {
	char kernel[96], library[48], system[96]; /* names with versions; "": unknown */
	unsigned cores;                           /* processors that this process may use */
	unsigned online;                          /* processors of the machine; 0: unknown */
	double load;           /* processes that run or wait, mean of 5 minutes; < 0: unknown */
	double stolen;         /* share of the time since the start that the host took away */
	bool slow_clock;       /* reading the time is a slow access to a device */
	char clock_source[32]; /* "": unknown */
	/* Memory, bytes. UINT64_MAX: unknown or no limit */
	uint64_t available;  /* free memory of the machine */
	uint64_t group_free; /* what the control groups still allow */
	uint64_t grantable;  /* what a strict kernel still grants (vm.overcommit_memory = 2) */
	uint64_t killed;     /* processes of the control groups that were killed for memory */
};

/* Reads the figures (root: system_file.h). */
void machine_look(struct machine *m, const char *root);
/* Adds the findings versions, processors and memory. */
void machine_check(struct findings *f, const struct machine *m);

#endif
