/* remote.h - keeps files in a store on another machine, through a command of the operator or
 * rclone.
 *
 *     COMMAND put NAME <FILE     stores the file under that name
 *     COMMAND get NAME >FILE     writes the file of that name
 *     rclone:REMOTE              the same with `rclone copyto`, to and from REMOTE/NAME
 *
 * COMMAND is a line for sh; put or get and NAME are appended to it. Exit status 0 means success. A
 * name has one slash at most: "00000040/manifest.json". The line may contain secrets, so no message
 * contains it.
 */
#ifndef MODEL_REMOTE_H
#define MODEL_REMOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct remote {
	const char *to;  /* the option's value: COMMAND or rclone:REMOTE; borrowed */
	atomic_bool stopped;
	/* Time limit of a command, after which the command fails; 0: no limit. */
	int64_t limit_us;
};

/* Refuses a value that can never store a file: too long (-ENAMETOOLONG), or rclone is not installed
 * (-ENOENT). */
int remote_check(const char *to, struct error *err);
/* Stores the file, reads it back and compares the hashes (hash.h). Blocks until the command ends.
 * -EIO: the command failed. -EBADMSG: the store returned other bytes. -ECANCELED: remote_stop was
 * called. */
int remote_put(struct remote *r, const char *name, const char *path, struct error *err);
/* Fetches a file to path, creates its folder if it is missing, and gives the file's hash. Errors as
 * for remote_put. */
int remote_get(struct remote *r, const char *name, const char *path, uint64_t *hash,
	       struct error *err);
/* Ends the running command within seconds, even if the command ignores SIGTERM, and prevents later
 * commands. Does not wait. Another thread may call this function. */
void remote_stop(struct remote *r);

#endif
