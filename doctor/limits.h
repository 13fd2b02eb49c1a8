/* limits.h - checks the limits of a process: open files, processes, address space, sizes. */
#ifndef DOCTOR_LIMITS_H
#define DOCTOR_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

/* UINT64_MAX: no limit. */
struct limits {
	uint64_t files;         /* open files, up to which a process may raise its limit */
	uint64_t address_space; /* bytes */
	uint64_t file_size;     /* bytes */
	uint64_t locked;        /* bytes of memory that may be locked */
	uint64_t seconds;       /* of processor time */
	uint64_t tasks_free;    /* processes and threads that the control groups still allow */
};

/* Needs of the planned run. */
struct limits_need {
	uint32_t peers; /* other agents */
	bool cuda;
};

void limits_look(struct limits *l, const char *root);
/* Adds the findings files and limits. */
void limits_check(struct findings *f, const struct limits *l, const struct limits_need *need);

#endif
