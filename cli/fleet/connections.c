/* Makes the command lines of ssh. ssh must not ask questions, must not wait for ever, and should
 * authenticate once for each host. Options on the command line (-o) would override the user's own
 * configuration. Therefore the defaults are in a file, which includes the user's configuration
 * first. */
#include "cli/fleet/connections.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/command.h"

enum { CLOSE_US = 1000000 };

/* ssh uses the first value that it finds for a setting. BatchMode comes before the user's file. It
 * is not an option of the command line, because the ssh that connects to a jump host gets only this
 * file. Without BatchMode, that ssh would ask at the terminal about the jump host's key, and wait
 * for ever. All other settings come after the user's file, so that the user can set them. With the
 * two ServerAlive settings, ssh asks a silent host whether it is alive, and gives up after 60 s
 * without an answer. This time is long because, while a bundle is copied over a slow link, the
 * question waits behind the bundle's bytes. */
static const char configuration[] = "BatchMode yes\n"
				    "Include ~/.ssh/config\n"
				    "Match all\n"
				    "ConnectTimeout 10\n"
				    "ServerAliveInterval 5\n"
				    "ServerAliveCountMax 12\n"
				    "Include /etc/ssh/ssh_config\n";

int connections_open(struct connections *c, struct error *err)
{
	const char *const parents[] = { "/tmp", getenv("TMPDIR") };
	char path[sizeof(c->folder) + 16];
	int rc = file_make_temporary(c->folder, "skippipe-fleet", parents, 2, err);

	if (rc != 0)
		return rc;
	/* ssh would split or expand a path with these characters, because the path is a part of
	 * ssh's options. */
	if (strpbrk(c->folder, " \t\r\n\"'\\%$"))
		return error_set(err, -EINVAL,
				 "TMPDIR=%s: ssh cannot use a folder with spaces, quotes, \\, %% "
				 "or $ in its path",
				 getenv("TMPDIR"));
	snprintf(path, sizeof(path), "%s/.config", c->folder);
	return file_write(path, configuration, strlen(configuration), FILE_PRIVATE, err);
}

void connections_add_ssh(const struct connections *c, const struct host *host, struct args *a)
{
	args_add(a, "ssh");
	args_add(a, "-T");
	args_addf(a, "-F%s/.config", c->folder);
	/* Overrides settings that users make for interactive sessions: ssh refuses a command if
	 * RemoteCommand is set, and two connections cannot forward the same port. */
	args_add(a, "-oRemoteCommand=none");
	args_add(a, "-oClearAllForwardings=yes");
	args_add(a, "-oLogLevel=INFO"); /* QUIET would hide why a login fails */
	args_add(a, "-oControlMaster=auto");
	args_addf(a, "-oControlPath=%s/%%C", c->folder);
	args_add(a, "-oControlPersist=60");
	if (host->port[0])
		args_addf(a, "-p%s", host->port);
	args_add(a, "--");
	args_add(a, host->target);
}

/* Asks the ssh process that holds a connection to close it. The messages of ssh are dropped,
 * because ssh reports the end as if it were an error. */
static void close_one(const struct connections *c, const char *socket)
{
	static const char line[] = "exec ssh -Fnone -Oexit -oControlPath=\"$1\" fleet 2>/dev/null";
	struct command command = { .in = -1, .out = -1, .limit_us = CLOSE_US };
	struct args a = { 0 };

	args_add(&a, "sh");
	args_add(&a, "-c");
	args_add(&a, line);
	args_add(&a, "sh");
	args_addf(&a, "%s/%s", c->folder, socket);
	command.argv = a.list;
	command_run(&command, NULL);
	args_free(&a);
}

void connections_close(struct connections *c)
{
	DIR *folder = c->folder[0] ? opendir(c->folder) : NULL;
	const struct dirent *e;

	while (folder && (e = readdir(folder)))
		if (e->d_name[0] != '.')
			close_one(c, e->d_name);
	if (folder)
		closedir(folder);
	if (c->folder[0])
		file_remove_folder(c->folder);
}
