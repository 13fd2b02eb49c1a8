/* demo_dirs.h - the folders of one demo: the run folder and the folder of its sockets. */
#ifndef CLI_DEMO_DIRS_H
#define CLI_DEMO_DIRS_H

#include <limits.h>

#include "base/error.h"
#include "base/file.h"

struct demo_dirs {
	char run[PATH_MAX]; /* path of the run folder, which contains log/ and keys/ */
	/* Path of a private folder (0700) for sockets. It is short, because the path of a Unix
	 * socket has at most 107 bytes. */
	char sockets[FILE_TEMPORARY];
	char why_moved[256]; /* why the run folder is in /tmp; "" if it is elsewhere */
};

/* Creates both folders.
 *
 * run_dir:  the run folder, which must not contain a run. NULL: a new folder, named after the date
 *           and a random number, in $XDG_STATE_HOME/skippipe/runs or ~/.local/state/skippipe/runs.
 *           If that folder cannot be written, the run folder is in /tmp/skippipe-runs-UID.
 */
int demo_dirs_make(struct demo_dirs *p, const char *run_dir, struct error *err);
/* Creates a folder that only this user can write. If the folder exists, checks that it belongs to
 * this user and that no other user can write to it. -EPERM: the path names no such folder. Public
 * for tests. */
int demo_dirs_own(const char *folder, struct error *err);
/* Removes the sockets and their folder. The run folder stays. */
void demo_dirs_remove(struct demo_dirs *p);

#endif
