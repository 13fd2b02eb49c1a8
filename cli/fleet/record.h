/* record.h - what this machine remembers of a fleet between `fleet up` and `fleet down`.
 *
 * The record is a file in ~/.local/state/skippipe. It lists the hosts of the last `up`, so that
 * `down` also reaches hosts that the operator has removed from FILE since. */
#ifndef CLI_FLEET_RECORD_H
#define CLI_FLEET_RECORD_H

#include "cli/args.h"
#include "cli/fleet/hosts.h"

enum { RECORD_ID = 24, RECORD_PATH = 4096 };

struct record {
	char run_dir[RECORD_PATH]; /* run folder; "": there is no record */
	struct host controller;    /* the controller's machine; target "": this machine */
	struct args invitations;   /* IDs of the invitations that `up` has made, oldest first */
	bool is_forgotten;         /* `down` has revoked the invitations and expelled the agents */
	struct hosts hosts;
};

/* Gives the fleet's name on every machine. The name is made from FILE's path, this machine and this
 * user. */
int record_id(char out[RECORD_ID], const char *file, struct error *err);
/* Reads the record. If there is none, *out is empty. Other errors: the record cannot be read. */
int record_read(struct record *out, const char *id, struct error *err);
int record_write(const struct record *r, const char *id, struct error *err);
/* Removes the file of the record. */
void record_remove(const char *id);
/* Returns the recorded host that has the same name as this host but is another machine; NULL:
 * none. */
const struct host *record_conflict(const struct record *r, const struct host *host);
void record_free(struct record *r);

#endif
