/* demo_dirs.h - the folders of one demo: where it is recorded, and where its sockets are. */
#ifndef CLI_DEMO_DIRS_H
#define CLI_DEMO_DIRS_H

#include <limits.h>

#include "base/error.h"

struct demo_dirs {
	char run[PATH_MAX];   /* the run folder, with log/ and keys/ in it */
	char sockets[64];     /* private (0700) and short: a Unix socket's path has 107 bytes */
	char why_moved[256];  /* why the run folder is not where it usually is; "" when it is */
};

/* Makes both. run_dir NULL: a new folder named after the date and this process under
 * $XDG_STATE_HOME/skippipe/runs, or ~/.local/state/skippipe/runs, or, where that cannot be
 * written, /tmp/skippipe-runs-UID. A given folder must not hold a run. */
int demo_dirs_make(struct demo_dirs *p, const char *run_dir, struct error *err);
/* Makes a folder of this user's alone, or finds that it is one. -EPERM: it is another's, or others may write in it.
 * Public for tests. */
int demo_dirs_own(const char *folder, struct error *err);
/* Removes the sockets and their folder. The run stays. */
void demo_dirs_remove(struct demo_dirs *p);

#endif
