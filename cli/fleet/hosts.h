/* hosts.h - the file that lists the hosts of a fleet, one host a line.
 *
 *     # USER@HOST:PORT  and options of the agent on that host
 *     gpu@203.0.113.7:40022  name=left  place=eu-west  device=cuda:all
 *     m2                     # user and port come from ssh's configuration
 *     [2001:db8::1]:22       name=six
 *
 * User and port are optional. ssh's configuration may give them.
 */
#ifndef CLI_FLEET_HOSTS_H
#define CLI_FLEET_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
	HOSTS_MOST = 1000,
	HOST_NAME = 64,    /* size of a host's name, with its NUL */
	HOST_TARGET = 300, /* size of USER@HOST, with its NUL */
	HOST_WORD = 160    /* size of an option's value, with its NUL */
};

/* One machine: how ssh reaches it, and options for its agent; "": the file does not give the
 * option. */
struct host {
	char name[HOST_NAME];
	char target[HOST_TARGET]; /* USER@HOST for ssh; "": this machine */
	char port[8];             /* port of ssh; "": the port in ssh's configuration */
	char place[HOST_WORD], device[HOST_WORD], listen[HOST_WORD], advertise[HOST_WORD];
};

struct hosts {
	struct host *list; /* array of n */
	size_t n;
};

/* Parses the text of a file of hosts; `path` is for messages only. -EINVAL: a line is not valid;
 * the message names path and line. */
int hosts_parse(struct hosts *out, const char *text, const char *path, struct error *err);
/* Reads and parses a file. Other errors are those of file_read. */
int hosts_read(struct hosts *out, const char *path, struct error *err);
/* Parses the text USER@HOST:PORT into out->target and out->port. -EINVAL: the text is not valid. */
int hosts_parse_target(struct host *out, const char *text, struct error *err);
/* Returns the host of that name; NULL: none. */
const struct host *hosts_find(const struct hosts *hosts, const char *name);
void hosts_free(struct hosts *hosts);

#endif
