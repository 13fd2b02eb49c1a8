/* Prepares each host so that this version of skippipe can start there.
 *
 * A bundle is an archive of skippipe, which a host unpacks in ~/.skippipe/VERSION. The unpacked
 * bundle keeps its stamp, the hash of the archive. If a host's stamp differs, its bundle is another
 * build of the same version, and this module replaces it.
 */
#include "cli/fleet/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/installed.h"
#include "cli/fleet/launch.h"

enum {
	CHECK_US = 40000000,
	COPY_US = 900000000,
	GPUS_MOST = 64,
	UNPACKED = 5 /* largest ratio of the size of an unpacked bundle to its archive's size */
};

struct bundle {
	char path[PATH_MAX]; /* path of the archive; "": no archive was found */
	char stamp[20];
	uint64_t bytes;
};

struct preparation {
	struct fleet *fleet;
	struct site *sites;
	struct bundle bundle;
	struct utsname machine;
};

/* Computes the archive's stamp: FNV-1a of its bytes. */
static int read_stamp(struct bundle *b, struct error *err)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	unsigned char buffer[65536];
	FILE *from = fopen(b->path, "re");
	size_t n;

	if (!from)
		return error_set(err, -errno, "--bundle %s: %s", b->path, strerror(errno));
	while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0) {
		b->bytes += n;
		for (size_t i = 0; i < n; i++)
			hash = (hash ^ buffer[i]) * UINT64_C(1099511628211);
	}
	n = (size_t)ferror(from);
	fclose(from);
	snprintf(b->stamp, sizeof(b->stamp), "%016" PRIx64, hash);
	return n ? error_set(err, -EIO, "--bundle %s: cannot be read", b->path) : 0;
}

/* Finds the archive: the file that the operator named, or else the file in the folder above this
 * program's folder. */
static int find_bundle(struct preparation *p, struct error *err)
{
	const char *given = p->fleet->options->bundle;
	char folder[PATH_MAX];
	int rc = 0;

	if (given)
		snprintf(p->bundle.path, PATH_MAX, "%s", given);
	else {
		rc = installed_folder(folder, sizeof(folder), err);
		if (rc == 0 &&
		    (snprintf(p->bundle.path, PATH_MAX, "%s/../skippipe-%s-%s.tar.gz", folder,
			      SKIPPIPE_VERSION, p->machine.machine) >= PATH_MAX ||
		     access(p->bundle.path, R_OK) != 0))
			p->bundle.path[0] = '\0';
	}
	return rc == 0 && p->bundle.path[0] ? read_stamp(&p->bundle, err) : rc;
}

/* ---- examining the hosts ---- */

void prepare_take_gpus(struct site *s, const char *text)
{
	size_t gpus = strtoul(text, NULL, 10);

	s->gpus = gpus < GPUS_MOST ? gpus : GPUS_MOST;
}

static void take_fact(void *owner, struct remote_job *job, const char *key, const char *value)
{
	struct preparation *p = owner;
	struct site *s = &p->sites[fleet_place(p->fleet, job)];
	const struct {
		const char *key;
		char *to;
		size_t room;
	} texts[] = { { "arch", s->arch, sizeof(s->arch) },
		      { "system", s->system, sizeof(s->system) },
		      { "stamp", s->stamp, sizeof(s->stamp) },
		      { "program", s->program, sizeof(s->program) },
		      { "bundle", s->bundle, sizeof(s->bundle) } };

	for (size_t i = 0; key && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0)
			snprintf(texts[i].to, texts[i].room, "%s", value);
	if (key && strcmp(key, "free") == 0)
		s->free_kib = strtoull(value, NULL, 10);
	if (key && strcmp(key, "log") == 0)
		s->log_bytes = strtoull(value, NULL, 10);
	if (key && strcmp(key, "gpus") == 0)
		prepare_take_gpus(s, value);
	if (key && strcmp(key, "running") == 0)
		s->state = SITE_RUNS;
	if (key && strcmp(key, "key") == 0)
		s->has_key = true;
}

/* Decides from a host's answers if its agent already runs, if it has this version of skippipe, or
 * if the bundle must be copied there. */
static void judge_site(struct preparation *p, size_t place)
{
	struct site *s = &p->sites[place];
	struct progress *shown = p->fleet->progress;
	bool is_old = s->program[0] && strcmp(s->program, s->bundle) == 0 && p->bundle.path[0] &&
		      strcmp(s->stamp, p->bundle.stamp) != 0;

	if (s->state == SITE_RUNS && s->program[0]) {
		progress_set(shown, place, "its agent runs");
		return;
	}
	if (s->program[0] && !is_old) {
		s->state = SITE_FITS;
		progress_set(shown, place, "has skippipe %s: %s", SKIPPIPE_VERSION, s->program);
		return;
	}
	s->state = SITE_FAILED;
	if (!p->bundle.path[0])
		progress_set(shown, place,
			     "FAILED: it has no skippipe %s, and there is no bundle to copy: make "
			     "bundle, or --bundle FILE",
			     SKIPPIPE_VERSION);
	else if (strcmp(s->system, p->machine.sysname) != 0 ||
		 strcmp(s->arch, p->machine.machine) != 0)
		progress_set(shown, place, "FAILED: it is %s %s, and the bundle is for %s %s",
			     s->system, s->arch, p->machine.sysname, p->machine.machine);
	else if (s->free_kib < p->bundle.bytes * UNPACKED / 1024)
		progress_set(shown, place,
			     "FAILED: its home folder has %" PRIu64 " MiB free; the bundle needs "
			     "%" PRIu64,
			     s->free_kib / 1024, p->bundle.bytes * UNPACKED >> 20);
	else
		s->state = SITE_LACKS;
}

static void turn_check(void *owner, struct remote_job *job, bool done)
{
	struct preparation *p = owner;
	size_t place = fleet_place(p->fleet, job);

	if (!done) {
		progress_set(p->fleet->progress, place, "connecting");
	} else if (job->rc == 0) {
		judge_site(p, place);
	} else {
		p->sites[place].state = SITE_FAILED;
		progress_set(p->fleet->progress, place, "FAILED: %s", job->why);
	}
}

static int check_sites(struct preparation *p, struct error *err)
{
	struct fleet *f = p->fleet;
	const struct remote_calls calls = { p, take_fact, turn_check };
	struct remote_job *jobs = alloc_array(f->n_sites, sizeof(*jobs));
	int rc;

	for (size_t i = 0; i < f->n_sites; i++) {
		fleet_agent_job(f, &jobs[i], &f->hosts.list[i], "check");
		launch_add_key(&jobs[i].words, "", &f->hosts.list[i], f->record.run_dir);
	}
	rc = remote_run(f->remote, jobs, f->n_sites, CHECK_US, &calls, err);
	fleet_end_jobs(jobs, f->n_sites);
	free(jobs);
	return rc;
}

/* ---- copying ---- */

static void ignore_line(void *owner, struct remote_job *job, const char *key, const char *value)
{
	(void)owner;
	(void)job;
	(void)key;
	(void)value;
}

static void turn_copy(void *owner, struct remote_job *job, bool done)
{
	struct preparation *p = owner;
	size_t place = fleet_place(p->fleet, job);

	if (!done) {
		progress_set(p->fleet->progress, place, "copying skippipe %s (%" PRIu64 " MiB)",
			     SKIPPIPE_VERSION, p->bundle.bytes >> 20);
		return;
	}
	p->sites[place].state = job->rc == 0 ? SITE_FITS : SITE_FAILED;
	if (job->rc == 0)
		progress_set(p->fleet->progress, place, "has skippipe %s now", SKIPPIPE_VERSION);
	else
		progress_set(p->fleet->progress, place, "FAILED: %s", job->why);
}

static int copy_bundle(struct preparation *p, struct error *err)
{
	struct fleet *f = p->fleet;
	const struct remote_calls calls = { p, ignore_line, turn_copy };
	struct remote_job *jobs = alloc_array(f->n_sites, sizeof(*jobs));
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < f->n_sites; i++) {
		if (p->sites[i].state != SITE_LACKS)
			continue;
		fleet_agent_job(f, &jobs[n], &f->hosts.list[i], "install");
		args_add(&jobs[n].words, p->bundle.stamp);
		jobs[n++].file = p->bundle.path;
	}
	rc = remote_run(f->remote, jobs, n, COPY_US, &calls, err);
	fleet_end_jobs(jobs, n);
	free(jobs);
	return rc;
}

/* Returns the number of hosts in the states from `first` to `last`. */
static size_t count_sites(const struct preparation *p, int first, int last)
{
	size_t n = 0;

	for (size_t i = 0; i < p->fleet->hosts.n; i++)
		n += (int)p->sites[i].state >= first && (int)p->sites[i].state <= last;
	return n;
}

int prepare_sites(struct fleet *f, struct site *sites, struct error *err)
{
	struct preparation p = { .fleet = f, .sites = sites };
	int rc;

	uname(&p.machine);
	rc = find_bundle(&p, err);
	if (rc == 0)
		rc = check_sites(&p, err);
	if (rc != 0)
		return rc;
	fleet_step(f, "checked", count_sites(&p, SITE_LACKS, SITE_RUNS));
	rc = copy_bundle(&p, err);
	if (rc == 0)
		fleet_step(f, "have skippipe " SKIPPIPE_VERSION,
			   count_sites(&p, SITE_FITS, SITE_RUNS));
	return rc;
}
