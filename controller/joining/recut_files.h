/* recut_files.h - the files of a run's stages after a change of stages (recut.h).
 *
 * Cutting reads and writes the whole model, which takes minutes for a large model. Agents end if
 * they hear nothing of their controller for a minute (--orphan-s). Therefore a thread cuts the
 * model while the controller continues to answer, and the next controller takes the thread's
 * files. */
#ifndef CONTROLLER_JOINING_RECUT_FILES_H
#define CONTROLLER_JOINING_RECUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/route.h"

#define RECUT_FILES_KEY "recut_files"

struct recut_cutting; /* opaque: a thread that cuts */
struct recut_record;
struct run;

struct recut_files {
	uint64_t hashes[ROUTE_HOPS], bytes[ROUTE_HOPS]; /* for each new stage */
};

/* Cuts the saved commit into the files of the new stages. Their folder is next to the folder of
 * the checkpoints. */
int recut_files_cut(const struct run *run, const struct recut_record *r, struct recut_files *out,
		    struct error *err);
/* Starts a thread that does the work of recut_files_cut. Takes over what *r owns. */
int recut_cutting_start(const struct run *run, struct recut_record *r, struct recut_cutting **out,
			struct error *err);
bool recut_cutting_is_done(const struct recut_cutting *c);
/* Frees c, whose thread has ended. If the thread has succeeded, enters its files in the record.
 * Otherwise removes the files. -ESTALE: since the thread was started, the run has committed another
 * iteration or has gone back to a checkpoint. */
int recut_cutting_take(struct recut_cutting *c, const struct run *run, struct error *err);
/* Frees c, which is done, and removes its files. */
void recut_cutting_drop(struct recut_cutting *c);
/* Abandons c, which may be NULL or still be cutting. */
void recut_cutting_free(struct recut_cutting *c);
/* Reads the files that a thread has cut for this change. Returns false if there are none. */
bool recut_files_find(const struct run *run, const struct recut_record *r, struct recut_files *out);
/* Removes from the record the entry about files that a thread has cut. The transaction that records
 * the new stages removes the entry too. */
int recut_files_forget(const struct run *run, struct error *err);
/* Moves the files of the newest part to their folder, unless that has been done. Removes all files
 * of other changes, except those that a thread has cut. */
int recut_files_settle(const struct run *run, struct error *err);
/* Writes the path of the folder of a commit's checkpoint. */
void recut_files_folder(char *path, size_t room, const char *run_dir, uint64_t iteration);

#endif
