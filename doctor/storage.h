/* storage.h - checks the disk under a run's folder: room, kind and speed. */
#ifndef DOCTOR_STORAGE_H
#define DOCTOR_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "doctor/finding.h"

struct storage {
	char folder[256];     /* the run's folder, or the nearest folder above it that exists */
	int error;            /* result of trying the disk: 0 or a negative errno */
	struct error why;     /* message of that error */
	uint64_t free_bytes;  /* free bytes that this user may write */
	/* Number of further files that can be created; UINT64_MAX: no limit. */
	uint64_t free_files;
	int64_t kind;         /* kind of file system (f_type of statfs) */
	double write_bytes_s; /* speed of writing a large file, with its sync; 0: not measured */
	double sync_s;        /* median time of a small write with its sync; 0: not measured */
};

/* Measures the disk. Writes to a file without a name in the run's folder for a few seconds. */
void storage_look(struct storage *s, const char *run_dir);
/* Adds the findings "disk" and "disk speed". */
void storage_check(struct findings *f, const struct storage *s);

#endif
