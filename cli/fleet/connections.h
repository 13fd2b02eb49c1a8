/* connections.h - how ssh is called: with the user's configuration, and one connection for each
 * host.
 *
 * The first ssh for a host opens a connection that serves all later ones (ControlMaster). The
 * sockets are in a private folder.
 */
#ifndef CLI_FLEET_CONNECTIONS_H
#define CLI_FLEET_CONNECTIONS_H

#include "base/error.h"
#include "cli/args.h"
#include "cli/fleet/hosts.h"

struct connections {
	/* Path of the sockets' folder, short because a socket's path has at most 107 bytes; "":
	 * none */
	char folder[64];
};

int connections_open(struct connections *c, struct error *err);
/* Appends the words of an ssh command, up to the name of the host. */
void connections_add_ssh(const struct connections *c, const struct host *host, struct args *a);
/* Closes all connections and removes the folder. */
void connections_close(struct connections *c);

#endif
