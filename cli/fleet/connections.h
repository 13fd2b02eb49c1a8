/* connections.h - how ssh is called: with the user's configuration, and one connection for each
 * host.
 *
 * The first ssh for a host opens a connection that serves all later ones (ControlMaster). The
 * sockets are in a private folder.
 */
#ifndef CLI_FLEET_CONNECTIONS_H
#define CLI_FLEET_CONNECTIONS_H

#include "base/error.h"
#include "base/file.h"
#include "cli/args.h"
#include "cli/fleet/hosts.h"

struct connections {
	/* Path of the folder of sockets; "": there is none. Short, because a socket's path has at
	 * most 107 bytes. */
	char folder[FILE_TEMPORARY];
};

int connections_open(struct connections *c, struct error *err);
/* Appends the words of an ssh command, including the name of the host. The caller appends the
 * command to run there. */
void connections_add_ssh(const struct connections *c, const struct host *host, struct args *a);
/* Closes all connections and removes the folder. */
void connections_close(struct connections *c);

#endif
