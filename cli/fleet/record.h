/* record.h - what this machine remembers of a fleet between `fleet up` and `fleet down`.
 *
 * The record is a file in ~/.local/state/skippipe. It lists the hosts of the last `up`. Thus `down`
 * also reaches hosts that the operator has removed from FILE in the meantime.
 */
#ifndef CLI_FLEET_RECORD_H
#define CLI_FLEET_RECORD_H

#include "cli/args.h"
#include "cli/fleet/hosts.h"

enum { RECORD_ID = 24, RECORD_PATH = 4096 };

struct record {
	char run_dir[RECORD_PATH]; /* run folder; "": there is no record */
	struct host controller;    /* the controller's machine; target "": this machine */
	struct args invitations;   /* ids of the invitations that `up` has made, oldest first */
	bool is_forgotten;         /* `down` has revoked the invitations and expelled the agents */
	struct hosts hosts;
};

/* Makes the id of the fleet from FILE's path, this machine and this user. The id is a part of
 * folder names on the hosts. */
int record_id(char out[RECORD_ID], const char *file, struct error *err);
/* Reads the record; *out is empty if there is no record. Errors: the record cannot be read or is
 * damaged. */
int record_read(struct record *out, const char *id, struct error *err);
int record_write(const struct record *r, const char *id, struct error *err);
/* Removes the file of the record. */
void record_remove(const char *id);
/* Returns the recorded host with the same name if it is another machine (its target or port
 * differs); otherwise NULL. */
const struct host *record_conflict(const struct record *r, const struct host *host);
void record_free(struct record *r);

#endif
