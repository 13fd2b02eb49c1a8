/* Reads and writes the record of a fleet. Its first lines give the run's folder, the controller,
 * the invitations, and whether `down` has revoked the invitations. The hosts follow, in the format
 * of FILE. The record holds no secret. */
#include "cli/fleet/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process/user_folder.h"

enum { FILE_MOST = 1 << 20 };

/* Continues a hash (FNV-1a) with the text. */
static void hash_text(uint64_t *hash, const char *text)
{
	do
		*hash = (*hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	while (*text++);
}

int record_id(char out[RECORD_ID], const char *file, struct error *err)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	char path[PATH_MAX], host[256] = "", *machine = NULL;
	size_t size;

	if (!realpath(file, path))
		return error_set(err, -errno, "%s: %s", file, strerror(errno));
	if (file_read("/etc/machine-id", 256, &machine, &size, NULL) != 0)
		gethostname(host, sizeof(host) - 1);
	hash_text(&hash, path);
	hash_text(&hash, machine && *machine ? machine : host);
	snprintf(host, sizeof(host), "%lu", (unsigned long)getuid());
	hash_text(&hash, host);
	free(machine);
	snprintf(out, RECORD_ID, "%012" PRIx64, hash >> 16);
	return 0;
}

static int find_file(char path[PATH_MAX], const char *id, struct error *err)
{
	char name[RECORD_ID + 16];

	snprintf(name, sizeof(name), "fleet-%s", id);
	return user_state_file(path, PATH_MAX, name, err);
}

/* If the line at *at is "KEY VALUE", copies the value, moves *at behind the line, and returns
 * true. */
static bool take_line(char **at, const char *key, char *out, size_t room)
{
	size_t n = strcspn(*at, "\n"), k = strlen(key);

	if (n <= k || strncmp(*at, key, k) != 0 || (*at)[k] != ' ' || n - k - 1 >= room)
		return false;
	snprintf(out, room, "%.*s", (int)(n - k - 1), *at + k + 1);
	*at += n + ((*at)[n] == '\n');
	return true;
}

static int parse_record(struct record *out, char *text, const char *path, struct error *err)
{
	const size_t room = strlen(text) + 1;
	char controller[HOST_TARGET + 16], forgotten[8];
	char *ids = alloc_new(room), *rest = NULL;
	int rc = 0;

	if (!take_line(&text, "run", out->run_dir, sizeof(out->run_dir)) ||
	    !take_line(&text, "controller", controller, sizeof(controller)) ||
	    !take_line(&text, "invitation", ids, room))
		rc = error_set(err, -EINVAL, "%s: is damaged; remove it", path);
	for (char *id = strtok_r(ids, " ", &rest); rc == 0 && id; id = strtok_r(NULL, " ", &rest))
		if (strcmp(id, "-") != 0)
			args_add(&out->invitations, id);
	free(ids);
	out->is_forgotten = rc == 0 && take_line(&text, "forgotten", forgotten, sizeof(forgotten));
	if (rc == 0 && strcmp(controller, "-") != 0)
		rc = hosts_parse_target(&out->controller, controller, err);
	return rc == 0 ? hosts_parse(&out->hosts, text, path, err) : rc;
}

int record_read(struct record *out, const char *id, struct error *err)
{
	char path[PATH_MAX], *text;
	size_t size;
	int rc = find_file(path, id, err);

	*out = (struct record){ 0 };
	if (rc != 0 || access(path, F_OK) != 0)
		return rc;
	rc = file_read(path, FILE_MOST, &text, &size, err);
	if (rc != 0)
		return rc;
	rc = parse_record(out, text, path, err);
	free(text);
	return rc;
}

static void write_target(FILE *to, const struct host *h)
{
	const char *at = strrchr(h->target, '@'), *host = at ? at + 1 : h->target;

	fprintf(to, strchr(host, ':') ? "%.*s[%s]" : "%.*s%s", (int)(host - h->target), h->target,
		host);
	if (h->port[0])
		fprintf(to, ":%s", h->port);
}

int record_write(const struct record *r, const char *id, struct error *err)
{
	char path[PATH_MAX], *text = NULL;
	size_t size = 0;
	int rc = find_file(path, id, err);
	FILE *to;

	if (rc != 0)
		return rc;
	to = open_memstream(&text, &size);
	if (!to)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	fprintf(to, "run %s\ncontroller ", r->run_dir);
	if (r->controller.target[0])
		write_target(to, &r->controller);
	else
		fputc('-', to);
	fputs(r->invitations.n > 0 ? "\ninvitation" : "\ninvitation -", to);
	for (size_t i = 0; i < r->invitations.n; i++)
		fprintf(to, " %s", r->invitations.list[i]);
	fputs(r->is_forgotten ? "\nforgotten yes\n" : "\n", to);
	for (size_t i = 0; i < r->hosts.n; i++) {
		write_target(to, &r->hosts.list[i]);
		fprintf(to, " name=%s\n", r->hosts.list[i].name);
	}
	fclose(to);
	rc = file_write(path, text, size, FILE_PRIVATE, err);
	free(text);
	return rc;
}

void record_remove(const char *id)
{
	char path[PATH_MAX];

	if (find_file(path, id, NULL) == 0)
		unlink(path);
}

const struct host *record_conflict(const struct record *r, const struct host *host)
{
	const struct host *old = hosts_find(&r->hosts, host->name);
	bool is_same =
		old && strcmp(old->target, host->target) == 0 && strcmp(old->port, host->port) == 0;

	return is_same ? NULL : old;
}

void record_free(struct record *r)
{
	args_free(&r->invitations);
	hosts_free(&r->hosts);
	*r = (struct record){ 0 };
}
