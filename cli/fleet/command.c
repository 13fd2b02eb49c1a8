/* `skippipe fleet`: trains on machines that ssh reaches. Its commands start the training, print its
 * state and its logs, and end it. No command leaves a process on this machine. Files on the hosts,
 * and the record on this machine (record.h), hold what later commands need to know. */
#include "cli/fleet/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/fleet/fleet.h"
#include "cli/verbs.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Opens the file of hosts, and locks it for `up` and `down`, so that only one command changes a
 * fleet at a time. Returns the descriptor or a negative errno. */
static int lock_file(const struct fleet_options *o, struct error *err)
{
	int fd = open(o->file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", o->file, strerror(errno));
	if (o->verb != FLEET_UP && o->verb != FLEET_DOWN)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return fd;
	close(fd);
	return error_set(err, -EBUSY, "%s: another skippipe fleet works on it", o->file);
}

/* Handles hosts of FILE whose name belonged to another machine at the last `up`. For such a host,
 * `up` fails. The other commands use the former machine, because its agent still runs there. */
static int keep_machines(struct fleet *f, struct error *err)
{
	for (size_t i = 0; i < f->hosts.n; i++) {
		struct host *h = &f->hosts.list[i];
		const struct host *old = record_conflict(&f->record, h);

		if (old && f->options->verb == FLEET_UP)
			return error_set(err, -EINVAL,
					 "%s: %s was %s%s%s when the fleet came up; run skippipe "
					 "fleet down first (with --forget %s if that machine is "
					 "gone), or give the new machine another name=",
					 f->options->file, h->name, old->target,
					 old->port[0] ? ":" : "", old->port, h->name);
		if (old)
			*h = *old;
	}
	return 0;
}

/* Adds the hosts of the last `up` that the operator has removed from FILE since. */
static void add_recorded(struct fleet *f)
{
	for (size_t i = 0; i < f->record.hosts.n; i++) {
		const struct host *h = &f->record.hosts.list[i];

		if (hosts_find(&f->hosts, h->name))
			continue;
		f->hosts.list = alloc_resize(f->hosts.list, f->hosts.n + 1, sizeof(*f->hosts.list));
		f->hosts.list[f->hosts.n++] = *h;
	}
}

/* Sets f->controller to the machine on which the controller runs, or will run. */
static int choose_controller(struct fleet *f, struct error *err)
{
	const char *given = f->options->controller;
	const struct host *named = given ? hosts_find(&f->hosts, given) : NULL;
	struct host h = f->record.controller;
	int rc = 0;

	if (named)
		h = *named;
	else if (given) {
		h = (struct host){ 0 };
		rc = hosts_parse_target(&h, given, err);
	}
	if (rc != 0)
		return error_prefix(err, rc, "--controller");
	if (f->record.run_dir[0] && (strcmp(h.target, f->record.controller.target) != 0 ||
				     strcmp(h.port, f->record.controller.port) != 0))
		return error_set(err, -EINVAL,
				 "--controller %s: the fleet is up with another; end it with "
				 "skippipe fleet down",
				 given);
	f->controller = h;
	snprintf(f->controller.name, sizeof(f->controller.name), "controller");
	return 0;
}

/* Adds the controller's machine at the end of the list of hosts. The machine counts as a site of
 * its own unless it is this machine or a host of FILE. */
static void add_controller(struct fleet *f)
{
	bool is_known = !f->controller.target[0];

	for (size_t i = 0; i < f->hosts.n; i++)
		is_known |= strcmp(f->hosts.list[i].target, f->controller.target) == 0 &&
			    strcmp(f->hosts.list[i].port, f->controller.port) == 0;
	f->hosts.list = alloc_resize(f->hosts.list, f->hosts.n + 1, sizeof(*f->hosts.list));
	f->hosts.list[f->hosts.n] = f->controller;
	f->n_sites = f->hosts.n + !is_known;
	f->progress = progress_new(stdout, f->hosts.list, f->n_sites);
}

static int open_fleet(struct fleet *f, struct error *err)
{
	int rc = hosts_read(&f->hosts, f->options->file, err);

	if (rc == 0)
		rc = record_id(f->id, f->options->file, err);
	if (rc == 0)
		rc = record_read(&f->record, f->id, err);
	if (rc == 0)
		rc = keep_machines(f, err);
	if (rc == 0)
		rc = choose_controller(f, err);
	if (rc == 0 && f->options->verb != FLEET_UP)
		add_recorded(f);
	if (rc == 0)
		rc = verbs_program("skippipe", f->program, sizeof(f->program), err);
	if (rc == 0)
		rc = remote_new(&f->remote, SKIPPIPE_VERSION, err);
	if (rc == 0)
		add_controller(f);
	return rc;
}

static void close_fleet(struct fleet *f)
{
	progress_free(f->progress);
	remote_free(f->remote);
	record_free(&f->record);
	hosts_free(&f->hosts);
}

static int run_command(const struct fleet_options *o, struct error *err)
{
	static int (*const commands[])(struct fleet *, struct error *) = { fleet_up, fleet_status,
									   fleet_logs, fleet_down };
	struct fleet f = { .options = o, .begun_us = clock_monotonic_us() };
	int lock = lock_file(o, err), rc = lock < 0 ? lock : open_fleet(&f, err);

	if (rc == 0)
		rc = commands[o->verb](&f, err);
	close_fleet(&f);
	if (lock >= 0)
		close(lock);
	return rc;
}

int fleet_main(char **argv)
{
	struct fleet_options o;
	struct error err = { "" };
	int rc = fleet_options_read(&o, argv, &err), status = 0;

	if (rc < 0) {
		status = EXIT_USAGE;
	} else if (rc == 0) {
		rc = run_command(&o, &err);
		status = rc == 0 ? 0 : EXIT_FAILED;
	}
	if (rc < 0)
		fprintf(stderr, "skippipe fleet: %s\n", err.text);
	free(o.words);
	return status;
}
