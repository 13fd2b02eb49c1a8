/* Creates and removes the folders of a demo. Sockets have a folder of their own, because a Unix
 * socket's path is limited to 107 bytes and a run folder's path is often longer. */
#include "cli/demo_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timestamp.h"
#include "base/process/user_folder.h"

static int join_path(char *to, size_t room, const char *folder, const char *name,
		     struct error *err)
{
	if ((size_t)snprintf(to, room, "%s/%s", folder, name) >= room)
		return error_set(err, -ENAMETOOLONG, "%s/%s: the name is too long", folder, name);
	return 0;
}

/* Makes a name from the date, the time and a random number. The random number distinguishes runs
 * that begin in the same second, even in different containers. */
static void dated_name(char *to, size_t room)
{
	char now[TIMESTAMP_NAME_SIZE];
	uint32_t number;

	timestamp_name(clock_wall_us(), now);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)getpid();
	snprintf(to, room, "%s-%08" PRIx32, now, number);
}

/* Creates the run folder and its subfolders, and checks that this user can write to them. */
static int make_run(const char *run, struct error *err)
{
	char log[PATH_MAX], keys[PATH_MAX];
	int rc = join_path(log, sizeof(log), run, "log", err);

	if (rc == 0)
		rc = join_path(keys, sizeof(keys), run, "keys", err);
	if (rc == 0)
		rc = file_make_writable_folder(log, err);
	if (rc == 0)
		rc = file_make_private_folder(keys, err);
	return rc == 0 && access(keys, W_OK | X_OK) != 0
		       ? error_set(err, -errno, "%s: %s", keys, strerror(errno))
		       : rc;
}

/* Copies to `to` the path of the folder in which run folders are created by default. -ENOENT: this
 * user has no home folder. */
static int default_folder(char *to, size_t room, struct error *err)
{
	char folder[PATH_MAX];
	int rc = user_folder(folder, sizeof(folder), "XDG_STATE_HOME", ".local/state", err);

	return rc == 0 ? join_path(to, room, folder, "runs", err) : rc;
}

/* A folder in /tmp that another user created is refused: that user could read and change the
 * run. */
int demo_dirs_own(const char *folder, struct error *err)
{
	struct stat st;

	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return error_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (lstat(folder, &st) != 0)
		return error_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 022) != 0)
		return error_set(err, -EPERM, 
				 "%s: not a folder that only this user can write; use --run-dir",
				 folder);
	return 0;
}

static int make_dated(struct demo_dirs *p, struct error *err)
{
	char folder[PATH_MAX], name[64];
	struct error why;
	int rc;

	dated_name(name, sizeof(name));
	rc = default_folder(folder, sizeof(folder), &why);
	if (rc == 0)
		rc = join_path(p->run, sizeof(p->run), folder, name, &why);
	if (rc == 0)
		rc = make_run(p->run, &why);
	if (rc == 0)
		return 0;
	snprintf(p->why_moved, sizeof(p->why_moved), "%.*s", (int)sizeof(p->why_moved) - 1,
		 why.text);
	snprintf(folder, sizeof(folder), "/tmp/skippipe-runs-%ld", (long)getuid());
	rc = demo_dirs_own(folder, err);
	if (rc != 0)
		return rc;
	rc = join_path(p->run, sizeof(p->run), folder, name, err);
	return rc == 0 ? make_run(p->run, err) : rc;
}

static int make_given(struct demo_dirs *p, const char *run_dir, struct error *err)
{
	char path[PATH_MAX], here[PATH_MAX];
	struct stat st;
	int rc;

	if (*run_dir == '/' || !getcwd(here, sizeof(here)))
		rc = (size_t)snprintf(p->run, sizeof(p->run), "%s", run_dir) >= sizeof(p->run)
			     ? error_set(err, -ENAMETOOLONG, "%s: the name is too long", run_dir)
			     : 0;
	else
		rc = join_path(p->run, sizeof(p->run), here, run_dir, err);
	if (rc == 0)
		rc = join_path(path, sizeof(path), p->run, "run.db", err);
	if (rc == 0 && stat(path, &st) == 0)
		rc = error_set(err, -EEXIST, "%s: this folder already contains a run", path);
	return rc == 0 ? make_run(p->run, err) : rc;
}

static int make_sockets(struct demo_dirs *p, struct error *err)
{
	const char *parents[] = { getenv("XDG_RUNTIME_DIR"), "/tmp", getenv("TMPDIR") };
	struct stat st;

	if (parents[0] && (stat(parents[0], &st) != 0 || st.st_uid != getuid()))
		parents[0] = NULL;
	return file_make_temporary(p->sockets, "skippipe", parents, 3, err);
}

int demo_dirs_make(struct demo_dirs *p, const char *run_dir, struct error *err)
{
	int rc;

	*p = (struct demo_dirs){ .why_moved = "" };
	rc = run_dir ? make_given(p, run_dir, err) : make_dated(p, err);
	return rc == 0 ? make_sockets(p, err) : rc;
}

void demo_dirs_remove(struct demo_dirs *p)
{
	DIR *d = p->sockets[0] ? opendir(p->sockets) : NULL;
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	rmdir(p->sockets);
	p->sockets[0] = '\0';
}
