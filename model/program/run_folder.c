/* run_folder.c - gathers the files of a run's newest checkpoint in the run folder.
 *
 * Every agent writes its stage to its own disk, and the controller writes the manifest. On one
 * machine nothing needs to be gathered. The controller of a running run collects the files from its
 * agents when it finds the file RUN/collect (controller/weights/offsite.h). */
#include "model/program/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "model/files/checkpoint.h"
#include "model/files/remote.h"

enum {
	PATH = 4096,
	TEXT_MOST = 1 << 20,
	LOOK_MS = 100,
	TRIES = 20,
	/* Time limit for the controller to take a request. A controller takes a request within a
	 * second. */
	TAKEN_US = 60000000
};

#define FILE_US  INT64_C(3600000000)
/* Time limit of one command of a store; the user may interrupt it earlier. */
#define STORE_US INT64_C(86400000000)

bool run_folder_is_run(const char *folder)
{
	struct stat st;

	return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	       !file_exists(folder, "manifest.json") && !file_exists(folder, "config.json");
}

/* Returns true if a controller is running and writes the record of this run. */
static bool is_live(const char *run)
{
	char path[PATH];
	int fd;
	bool live;

	snprintf(path, sizeof(path), "%s/run.lock", run);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	live = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
	if (fd >= 0)
		close(fd);
	return live;
}

/* ---- finding the newest checkpoint ---- */

static bool find_newest(const char *run, uint64_t *newest)
{
	char folder[PATH], manifest[512];
	bool found = false;
	DIR *d;

	snprintf(folder, sizeof(folder), "%s/checkpoints", run);
	d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		char *end;
		uint64_t iteration = strtoull(e->d_name, &end, 10);

		snprintf(manifest, sizeof(manifest), "%s/manifest.json", e->d_name);
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || *end ||
		    !file_exists(folder, manifest) || (found && iteration <= *newest))
			continue;
		*newest = iteration;
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

/* Fetches the manifest of the store's newest checkpoint, which the store's file `latest` names. */
static int fetch_manifest(const char *run, struct remote *store, uint64_t *newest,
			  struct error *err)
{
	char path[PATH], name[64], *text, *end;
	uint64_t hash;
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "%s/checkpoints/latest", run);
	rc = remote_get(store, "latest", path, &hash, err);
	if (rc == 0)
		rc = file_read(path, TEXT_MOST, &text, &size, err);
	if (rc != 0)
		return rc;
	*newest = strtoull(text, &end, 10);
	if (end == text || *end != '\n')
		rc = error_set(err, -EINVAL, "%s: expected the number of an iteration", path);
	free(text);
	if (rc != 0)
		return rc;
	snprintf(name, sizeof(name), "%08" PRIu64 "/manifest.json", *newest);
	snprintf(path, sizeof(path), "%s/checkpoints/%s", run, name);
	return remote_get(store, name, path, &hash, err);
}

/* ---- fetching the checkpoint's files ---- */

static int copy_file(const char *from, const char *to, struct error *err)
{
	struct file_aside a;
	char *block = malloc(TEXT_MOST);
	int fd = open(from, O_RDONLY | O_CLOEXEC), rc;
	ssize_t n = 0;

	if (fd < 0 || !block) {
		rc = error_set(err, fd < 0 ? -errno : -ENOMEM, "%s: %s", from,
			       fd < 0 ? strerror(errno) : "no memory");
		goto done;
	}
	rc = file_aside_open(&a, to, FILE_RESULT, err);
	if (rc != 0)
		goto done;
	while (rc == 0 && (n = read(fd, block, TEXT_MOST)) > 0)
		rc = file_aside_write(&a, block, (size_t)n, err);
	if (rc == 0 && n < 0)
		rc = error_set(err, -errno, "%s: %s", from, strerror(errno));
	rc = file_aside_close(&a, rc, err);
done:
	if (fd >= 0)
		close(fd);
	free(block);
	return rc;
}

/* Copies one stage's file from another folder or from the store. Returns 0 even if both lack the
 * file, because the controller may have it. */
static int bring(const char *run, uint32_t stage, uint64_t iteration, char *const *others,
		 uint32_t n, struct remote *store, struct error *err)
{
	char path[PATH], from[PATH], name[128];
	struct error ignored = { "" };
	uint64_t hash;

	if (checkpoint_stage_path(path, sizeof(path), run, stage, iteration) < 0)
		return error_set(err, -ENAMETOOLONG, "%s: the path is too long", run);
	for (uint32_t i = 0; i < n && access(path, R_OK) != 0; i++) {
		if (checkpoint_stage_path(from, sizeof(from), others[i], stage, iteration) == 0 &&
		    access(from, R_OK) == 0) {
			int rc = copy_file(from, path, err);

			if (rc != 0)
				return rc;
		}
	}
	if (!store->to || access(path, R_OK) == 0)
		return 0;
	snprintf(name, sizeof(name), "%08" PRIu64 "/stage-%03" PRIu32 ".%08" PRIu64 ".safetensors",
		 iteration, stage, iteration);
	if (remote_get(store, name, path, &hash, &ignored) != 0)
		fprintf(stderr, "skippipe export: %s\n", ignored.text);
	return 0;
}

static uint32_t first_missing(const char *run, uint32_t n_stages, uint64_t iteration)
{
	char path[PATH];

	for (uint32_t s = 0; s < n_stages; s++)
		if (checkpoint_stage_path(path, sizeof(path), run, s, iteration) < 0 ||
		    access(path, R_OK) != 0)
			return s;
	return n_stages;
}

/* Returns true if the checkpoint still exists. A live run removes old checkpoints when newer ones
 * are complete. */
static bool is_there(const char *run, uint64_t iteration)
{
	char manifest[64];

	snprintf(manifest, sizeof(manifest), "checkpoints/%08" PRIu64 "/manifest.json", iteration);
	return file_exists(run, manifest);
}

struct request {
	/* Path of the file RUN/collect that makes the request. The controller removes this file
	 * when it takes the request. */
	const char *path;
	/* The first stage whose file is missing. since_us: the time of this number's last
	 * change. */
	uint32_t missing;
	int64_t since_us;
};

/* Returns -ETIMEDOUT if the controller does not take the request, or if no file has arrived for too
 * long. */
static int check_progress(struct request *q, uint32_t missing, struct error *err)
{
	int64_t waited_us = clock_monotonic_us() - q->since_us;

	if (missing != q->missing) {
		q->missing = missing;
		q->since_us = clock_monotonic_us();
		return 0;
	}
	if (waited_us > TAKEN_US && access(q->path, F_OK) == 0)
		return error_set(err, -ETIMEDOUT,
				 "the controller has not taken the request (%s) for %d s: is it "
				 "stopped?",
				 q->path, TAKEN_US / 1000000);
	if (waited_us > FILE_US)
		return error_set(err, -ETIMEDOUT,
				 "the file of stage %" PRIu32 " has not come for %d minutes",
				 missing, (int)(FILE_US / 60000000));
	return 0;
}

/* Requests the files from the controller and waits while they arrive. -EAGAIN: the run has removed
 * the checkpoint meanwhile. -ETIMEDOUT: the controller does not respond. */
static int ask_controller(const char *run, uint32_t n_stages, uint64_t iteration,
			  struct error *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	char path[PATH], failed[PATH], text[32], *why;
	struct request q = { path, UINT32_MAX, 0 };
	uint32_t missing;
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "%s/collect", run);
	snprintf(failed, sizeof(failed), "%s/collect.failed", run);
	unlink(failed);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", iteration);
	rc = file_write(path, text, strlen(text), FILE_PRIVATE, err);
	if (rc != 0)
		return rc;
	fputs("skippipe export: the controller collects the checkpoint from its agents\n", stderr);
	while ((missing = first_missing(run, n_stages, iteration)) < n_stages) {
		if (!is_there(run, iteration)) {
			unlink(path);
			return -EAGAIN;
		}
		nanosleep(&pause, NULL);
		if (file_read(failed, TEXT_MOST, &why, &size, NULL) == 0) {
			error_set(err, -ENOENT, "the controller cannot collect it: %.150s", why);
			free(why);
			return -ENOENT;
		}
		if (!is_live(run)) {
			unlink(path);
			return error_set(err, -ENOENT, "the controller has ended meanwhile");
		}
		rc = check_progress(&q, missing, err);
		if (rc != 0) {
			unlink(path);
			return rc;
		}
	}
	return 0;
}

/* Links a file into the folder `to`, or copies it where links are not possible. */
static int keep_file(const char *from, const char *to, struct error *err)
{
	if (link(from, to) == 0)
		return 0;
	return errno == ENOENT ? -EAGAIN : copy_file(from, to, err);
}

/* Links the files into a separate folder, because a live run removes old checkpoints. If this user
 * may not write to the run folder, the files are used where they are. The export then fails if the
 * run removes them meanwhile. -EAGAIN: the run has removed this checkpoint. */
static int keep(const char *run, uint64_t iteration, uint32_t n_stages, char *out, size_t room,
		bool *temporary, struct error *err)
{
	char from[PATH], to[PATH + 128], name[128];
	int rc = 0;

	if (snprintf(to, sizeof(to), "%s/export-XXXXXX", run) >= (int)room)
		return error_set(err, -ENAMETOOLONG, "%s: the path is too long", run);
	*temporary = mkdtemp(to) != NULL;
	if (!*temporary && (errno == EROFS || errno == EACCES))
		return 0;
	if (!*temporary)
		return error_set(err, -errno, "%s: cannot make a folder there: %s", run,
				 strerror(errno));
	snprintf(out, room, "%s", to);
	for (uint32_t s = 0; s <= n_stages && rc == 0; s++) {
		snprintf(name, sizeof(name), "manifest.json");
		if (s < n_stages)
			snprintf(name, sizeof(name),
				 "stage-%03" PRIu32 ".%08" PRIu64 ".safetensors", s, iteration);
		if (snprintf(from, sizeof(from), "%s/checkpoints/%08" PRIu64 "/%s", run, iteration,
			     name) >= (int)sizeof(from))
			rc = error_set(err, -ENAMETOOLONG, "%s: the path is too long", run);
		snprintf(to, sizeof(to), "%s/%s", out, name);
		if (rc == 0)
			rc = keep_file(from, to, err);
	}
	if (rc != 0) {
		file_remove_folder(out);
		*temporary = false;
	}
	return rc;
}

/* Gathers the files of a checkpoint in the run folder. -EAGAIN: a running run has removed the
 * checkpoint meanwhile. */
static int gather(const char *run, char *const *others, uint32_t n, const char *store, char *out,
		  size_t room, bool *temporary, struct error *err)
{
	struct remote remote = { .to = store, .limit_us = STORE_US };
	struct checkpoint k;
	uint64_t iteration = 0;
	uint32_t missing;
	int rc = 0;

	if (store)
		rc = fetch_manifest(run, &remote, &iteration, err);
	else if (!find_newest(run, &iteration))
		rc = error_set(err, -ENOENT, "%s/checkpoints: no complete checkpoint is there",
			       run);
	snprintf(out, room, "%s/checkpoints/%08" PRIu64, run, iteration);
	if (rc == 0)
		rc = checkpoint_read(out, &k, err);
	if (rc != 0)
		return rc;
	for (uint32_t s = 0; s < k.config.n_stages && rc == 0; s++)
		rc = bring(run, s, iteration, others, n, &remote, err);
	missing = first_missing(run, k.config.n_stages, iteration);
	if (rc == 0 && missing < k.config.n_stages && !is_live(run))
		rc = error_set(err, -ENOENT,
			       "%s lacks stage %" PRIu32 ", and no controller of the run lives: "
			       "add the agents' run folders, or --checkpoint-from",
			       out, missing);
	if (rc == 0 && missing < k.config.n_stages)
		rc = ask_controller(run, k.config.n_stages, iteration, err);
	return rc ? rc : keep(run, iteration, k.config.n_stages, out, room, temporary, err);
}

int run_folder_checkpoint(const char *run, char *const *others, uint32_t n, const char *store,
			  char *out, size_t room, bool *temporary, struct error *err)
{
	int rc = -EAGAIN;

	for (int i = 0; i < TRIES && rc == -EAGAIN; i++)
		rc = gather(run, others, n, store, out, room, temporary, err);
	if (rc == -EAGAIN)
		error_set(err, rc, "%s: the run removes its checkpoints before they are collected",
			  run);
	return rc;
}
