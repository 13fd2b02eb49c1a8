/* limits.h - checks the limits of a process: open files, processes, address space, sizes. */
#ifndef DOCTOR_LIMITS_H
#define DOCTOR_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

/* In each field UINT64_MAX means that there is no limit. */
struct limits {
	/* Hard limit of open files. A process may raise its own limit up to the hard limit. */
	uint64_t files;
	uint64_t address_space; /* largest address space of a process, bytes */
	uint64_t file_size;     /* largest size of a file, bytes */
	uint64_t locked;        /* memory that a process may lock against swapping, bytes */
	uint64_t seconds;       /* processor time after which the kernel kills a process, s */
	/* Number of further processes and threads that the control groups permit this process to
	 * start. */
	uint64_t tasks_free;
};

/* The needs of the planned run. */
struct limits_need {
	uint32_t peers; /* number of other agents in the run */
	bool cuda;
};

void limits_look(struct limits *l, const char *root);
/* Adds the findings "files" and "limits". */
void limits_check(struct findings *f, const struct limits *l, const struct limits_need *need);

#endif
