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
	/* Load: number of processes that run or wait for a processor, mean of 5 minutes; < 0:
	 * unknown. */
	double load;
	/* Share of the time since boot in which the host gave this virtual machine's processors to
	 * other guests. */
	double stolen;
	/* The system reads the time from a slow device instead of the processor's counter. */
	bool slow_clock;
	char clock_source[32]; /* name of the kernel's clock source; "": unknown */
	/* Memory in bytes; UINT64_MAX: unknown or not limited. */
	uint64_t available;  /* free memory of the machine */
	uint64_t group_free; /* further memory that the control groups permit */
	/* Further memory that the kernel grants. It is limited only if vm.overcommit_memory is 2:
	 * the kernel then grants no more memory than exists. */
	uint64_t grantable;
	/* Number of processes that the kernel has killed because a control group had no memory
	 * left. */
	uint64_t killed;
};

/* Reads the machine's figures from its files. root: see system_file.h. */
void machine_look(struct machine *m, const char *root);
/* Adds the findings "versions", "processors" and "memory". */
void machine_check(struct findings *f, const struct machine *m);

#endif
