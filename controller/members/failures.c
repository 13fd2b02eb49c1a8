/* failures.c - counts how often each node was lost, in this run and in earlier runs.
 *
 * Some rented machines fail again and again, and each failure costs a new plan and repeated work.
 * The controller stores the failures of each key in a file, because a fleet is used for several
 * runs and a machine keeps its key. The file has a line for each key: the key, its number of
 * failures, and the time of the last failure in seconds since 1970. */
#include "controller/members/failures.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/journal.h"

enum {
	MANY = 3,
	DAY_S = 86400,
	FILE_BYTES = 1 << 20,
	COUNT_MOST = 1000000,
	LINE_SIZE = KEYS_TEXT_SIZE + 48
};
static const char magic[] = "skippipe-failures 1\n";

/* Finds the path of the file with the failures. Returns false if the list of admitted keys is in
 * memory only. */
static bool find_path(const struct members *members, char path[PATH_MAX])
{
	const struct keys_list *keys = members->run->keys.admitted;
	const char *list = keys ? keys_list_path(keys) : NULL;

	return list && snprintf(path, PATH_MAX, "%s.failures", list) < PATH_MAX;
}

/* Returns the file's lines, which the caller frees, or NULL. A damaged or unreadable file is logged
 * and ignored. */
static char *read_lines(const struct members *members, const char *path)
{
	struct error err = { "" };
	char *text = NULL;
	size_t size;
	int rc = file_read_text(path, FILE_BYTES, &text, &size, &err);

	if (rc == 0 && strncmp(text, magic, strlen(magic)) != 0) {
		rc = error_set(&err, -EINVAL, "%s:1: expected \"skippipe-failures 1\"", path);
		free(text);
	}
	if (rc < 0 && rc != -ENOENT)
		log_line(&members->run->log, LOG_WARN, "failures of nodes: %s", err.text);
	return rc < 0 ? NULL : text;
}

struct failure_line {
	struct keys_public key;
	uint32_t n;
	int64_t last_s;
};

/* Reads the line at *at, and moves *at to the next line. Returns false at the end of the text, and
 * for a line that is damaged or older than a day. */
static bool read_line(char **at, int64_t now_s, struct failure_line *out)
{
	char line[LINE_SIZE], key[KEYS_TEXT_SIZE], end;
	size_t length = strcspn(*at, "\n");
	struct error ignored;
	bool fits = length < sizeof(line);

	memcpy(line, *at, fits ? length : 0);
	line[fits ? length : 0] = 0;
	*at += length + ((*at)[length] == '\n');
	return sscanf(line, "%64s %7" SCNu32 " %12" SCNd64 "%c", key, &out->n, &out->last_s,
		      &end) == 3 &&
	       keys_parse(key, &out->key, &ignored) == 0 && out->n <= COUNT_MOST &&
	       out->last_s <= now_s && now_s - out->last_s < DAY_S;
}

void failures_recall(struct members *members, struct member *m)
{
	int64_t now_s = clock_wall_us() / 1000000;
	struct failure_line line;
	char path[PATH_MAX], *text, *at;

	m->move.is_used = false;
	if (!find_path(members, path))
		return;
	text = read_lines(members, path);
	/* If the file exists but cannot be read, the number stays as it is */
	if (text || access(path, F_OK) != 0)
		m->move.failures = 0;
	at = text ? text + strlen(magic) : (char[]){ "" };
	while (*at) {
		if (!read_line(&at, now_s, &line) || !keys_equal(&line.key, &m->key))
			continue;
		m->move.failures = line.n;
		m->move.failed_s = line.last_s;
	}
	free(text);
	if (failures_are_many(m))
		note(members->run, NOTE_EVENT, m->id, 0,
		     "n%02u is used last: it has failed %u times, the last time within a day",
		     m->id, m->move.failures);
}

/* Writes the file with m's new count. Drops the lines of keys that have not failed for a day. */
static void write_lines(struct members *members, const struct member *m)
{
	int64_t now_s = clock_wall_us() / 1000000;
	char path[PATH_MAX], key[KEYS_TEXT_SIZE], *text, *at, *out;
	struct failure_line line;
	struct error err;
	size_t n;

	if (!find_path(members, path))
		return;
	text = read_lines(members, path);
	at = text ? text + strlen(magic) : (char[]){ "" };
	out = alloc_new(sizeof(magic) + strlen(at) + LINE_SIZE + 1);
	n = (size_t)sprintf(out, "%s", magic);
	while (*at) {
		if (!read_line(&at, now_s, &line) || keys_equal(&line.key, &m->key))
			continue;
		keys_text(&line.key, key);
		n += (size_t)sprintf(out + n, "%s %" PRIu32 " %" PRId64 "\n", key, line.n,
				     line.last_s);
	}
	keys_text(&m->key, key);
	n += (size_t)sprintf(out + n, "%s %" PRIu32 " %" PRId64 "\n", key, m->move.failures,
			     now_s);
	if (file_write(path, out, n, FILE_PRIVATE, &err) != 0)
		log_line(&members->run->log, LOG_WARN, "failures of nodes: %s", err.text);
	free(out);
	free(text);
}

void failures_count(struct members *members, struct member *m)
{
	int64_t now_s = clock_wall_us() / 1000000;

	m->move.is_used = false;
	if (now_s - m->move.failed_s >= DAY_S)
		m->move.failures = 0;
	m->move.failed_s = now_s;
	if (m->move.failures < COUNT_MOST)
		m->move.failures++;
	write_lines(members, m);
	if (m->move.failures == MANY)
		note(members->run, NOTE_WARNING, m->id, 0,
		     "n%02u has failed %u times: when it returns, it is used last", m->id,
		     m->move.failures);
}

bool failures_are_many(const struct member *m)
{
	return m->move.failures >= MANY && clock_wall_us() / 1000000 - m->move.failed_s < DAY_S;
}

void failures_reason(const struct member *m, char *out, size_t room)
{
	out[0] = 0;
	if (failures_are_many(m) && !m->move.is_used)
		snprintf(out, room, "used last: failed %u times", m->move.failures);
	else if (m->move.use == USE_SPARE)
		snprintf(out, room, "spare: takes a lost node's place");
}
