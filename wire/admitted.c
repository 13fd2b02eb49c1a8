/* admitted.c - the list of the keys that may connect, and the text file that holds it (keys.h).
 * Operators change the file while programs use it, so a broken or missing file must not expel
 * everybody. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/file.h"
#include "wire/keys.h"

#define LIST_FILE_MOST ((size_t)1 << 20)
static const char magic[] = "skippipe-admitted 1";

/* The values of stat that change with the file's content. */
struct stamp {
	int missing; /* errno of stat; 0: the file exists */
	ino_t inode;
	off_t size;
	struct timespec modified;
};

struct keys_list {
	char *path; /* path of the list's file; NULL: the list is in memory only */
	struct keys_entry *entries;
	size_t n, room;
	uint64_t version;
	struct stamp read;     /* stamp of the file that was last read */
	bool was_read;         /* a file was read before */
	struct stamp reported; /* stamp of the file whose error was last reported */
	bool has_reported;     /* an error was reported since the last success */
};

struct keys_list *keys_list_new(void)
{
	struct keys_list *list = alloc_new(sizeof(*list));
	list->version = 1;
	return list;
}

void keys_list_free(struct keys_list *list)
{
	if (list == NULL)
		return;
	free(list->path);
	free(list->entries);
	free(list);
}

size_t keys_list_count(const struct keys_list *list)
{
	return list->n;
}

const struct keys_entry *keys_list_at(const struct keys_list *list, size_t i)
{
	return i < list->n ? &list->entries[i] : NULL;
}

uint64_t keys_list_version(const struct keys_list *list)
{
	return list->version;
}

static struct keys_entry *find_key(const struct keys_list *list, const struct keys_public *key)
{
	for (size_t i = 0; i < list->n; i++) {
		if (keys_equal(&list->entries[i].key, key))
			return &list->entries[i];
	}
	return NULL;
}

const struct keys_entry *keys_list_find(const struct keys_list *list, const struct keys_public *key)
{
	const struct keys_entry *found = find_key(list, key);
	return found != NULL && !found->barred ? found : NULL;
}

void keys_list_bar(struct keys_list *list, const struct keys_public *key)
{
	struct keys_entry *found = find_key(list, key);
	if (found != NULL && !found->barred) {
		found->barred = true;
		list->version++;
	}
}

bool keys_list_barred(const struct keys_list *list, const struct keys_public *key)
{
	const struct keys_entry *found = find_key(list, key);
	return found != NULL && found->barred;
}

static struct keys_entry *find_name(const struct keys_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->entries[i].name, name) == 0)
			return &list->entries[i];
	}
	return NULL;
}

static bool name_ok(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	return n > 0 && n < KEYS_NAME_SIZE && name[n] == '\0' && name[0] != '-';
}

/* Adds the entry, or replaces the one with its key. */
static int put_entry(struct keys_list *list, const struct keys_entry *entry, struct error *err)
{
	struct keys_entry *same_name = find_name(list, entry->name);
	if (same_name != NULL && !keys_equal(&same_name->key, &entry->key))
		return error_set(err, -EEXIST, "the name \"%s\" belongs to another key",
			entry->name);
	struct keys_entry *old = find_key(list, &entry->key);
	if (old != NULL) {
		*old = *entry;
		return 0;
	}
	if (list->n == KEYS_LIST_MOST)
		return error_set(err, -ENOSPC, "the list is full (%d entries)", KEYS_LIST_MOST);
	array_reserve(&list->entries, &list->room, list->n + 1, sizeof(*list->entries));
	list->entries[list->n++] = *entry;
	return 0;
}

/* ---- the file ---- */

static int refuse_name(const char *name, struct error *err)
{
	return error_set(err, -EINVAL,
		"\"%.80s\" is not a name: expected up to %d letters, digits, '.', '_' or '-'", name,
		KEYS_NAME_SIZE - 1);
}

/* Parses "KEY ROLE NAME". Changes line. */
static int parse_entry(char *line, struct keys_entry *out, struct error *err)
{
	char *rest = NULL;
	char *key = strtok_r(line, " \t", &rest);
	char *role = strtok_r(NULL, " \t", &rest);
	char *name = strtok_r(NULL, " \t", &rest);
	if (name == NULL || strtok_r(NULL, " \t", &rest) != NULL)
		return error_set(err, -EINVAL, "expected a key, a role and a name");
	int rc = keys_parse(key, &out->key, err);
	if (rc < 0)
		return rc;
	if (keys_role_parse(role, &out->role) < 0)
		return error_set(err, -EINVAL,
			"\"%.40s\" is not a role: expected agent, controller, console or watcher",
			role);
	if (!name_ok(name))
		return refuse_name(name, err);
	memset(out->name, 0, sizeof(out->name));
	memcpy(out->name, name, strlen(name));
	return 0;
}

/* Parses the file into a new list, so that a broken file changes nothing. Changes text. */
static int parse_text(const char *path, char *text, struct keys_list *into, struct error *err)
{
	size_t number = 0;
	char *line = text;
	while (line != NULL) {
		char *end = strchr(line, '\n');
		struct keys_entry entry = {0};
		if (end != NULL)
			*end++ = '\0';
		size_t length = strlen(line);
		if (length > 0 && line[length - 1] == '\r') /* editors of Windows write CRLF */
			line[length - 1] = '\0';
		number++;
		line += strspn(line, " \t");
		if (number == 1) {
			if (strcmp(line, magic) != 0)
				return error_set(err, -EINVAL, "%s:1: expected \"%s\"", path,
					magic);
		} else if (line[0] != '\0' && line[0] != '#') {
			int rc = parse_entry(line, &entry, err);
			if (rc == 0 && find_key(into, &entry.key) != NULL)
				rc = error_set(err, -EINVAL, "this key occurs twice");
			if (rc == 0)
				rc = put_entry(into, &entry, err);
			if (rc < 0)
				return error_prefix(err, rc, "%s:%zu", path, number);
		}
		line = end;
	}
	return 0;
}

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	struct stamp s = {0};
	if (stat(path, &st) == 0) {
		s.inode = st.st_ino;
		s.size = st.st_size;
		s.modified = st.st_mtim;
	} else {
		s.missing = errno;
	}
	return s;
}

static bool stamp_equal(const struct stamp *a, const struct stamp *b)
{
	return a->missing == b->missing && a->inode == b->inode && a->size == b->size &&
	       a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

/* Returns true if the new list b would change nothing. A list that is written again lifts the bars
 * of a, because an operator has looked at their cause. */
static bool same_entries(const struct keys_list *a, const struct keys_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct keys_entry *x = &a->entries[i], *y = &b->entries[i];
		if (x->barred || !keys_equal(&x->key, &y->key) || x->role != y->role ||
		    strcmp(x->name, y->name) != 0)
			return false;
	}
	return true;
}

/* Reads the file. Returns 1 if the entries have changed. A file that never existed is an empty
 * list. A file that has disappeared is an error: the cause may be a failed disk or a careless move,
 * and nobody decided to expel all keys. */
static int reread_list(struct keys_list *list, struct error *err)
{
	struct keys_list fresh = {0};
	struct stamp now = stamp_of(list->path);
	char *text = NULL;
	size_t size = 0;
	int rc = 0;
	if (now.missing != 0 && (list->was_read || now.missing != ENOENT))
		rc = error_set(err, -now.missing, "%s: %s: the list read before stays in force",
			list->path, strerror(now.missing));
	else if (now.missing == 0)
		rc = file_read_text(list->path, LIST_FILE_MOST, &text, &size, err);
	if (rc == 0 && text != NULL) {
		if (memchr(text, '\0', size) != NULL)
			rc = error_set(err, -EINVAL, "%s: holds a NUL byte", list->path);
		else
			rc = parse_text(list->path, text, &fresh, err);
	}
	free(text);
	if (rc < 0) {
		free(fresh.entries);
		return rc;
	}
	list->read = now;
	list->was_read = now.missing == 0;
	if (same_entries(list, &fresh)) {
		free(fresh.entries);
		return 0;
	}
	free(list->entries);
	list->entries = fresh.entries;
	list->n = fresh.n;
	list->room = fresh.room;
	list->version++;
	return 1;
}

int keys_list_open(struct keys_list **out, const char *path, struct error *err)
{
	struct keys_list *list = keys_list_new();
	list->path = alloc_string(path);
	int rc = reread_list(list, err);
	if (rc < 0) {
		keys_list_free(list);
		return rc;
	}
	*out = list;
	return 0;
}

int keys_list_refresh(struct keys_list *list, struct error *err)
{
	if (list->path == NULL)
		return 0;
	struct stamp now = stamp_of(list->path);
	if (stamp_equal(&now, &list->read)) {
		list->has_reported = false;
		return 0;
	}
	if (list->has_reported && stamp_equal(&now, &list->reported))
		return 0;
	int rc = reread_list(list, err);
	list->has_reported = rc < 0;
	list->reported = now;
	return rc;
}

static int write_list(struct keys_list *list, struct error *err)
{
	size_t room = 64 + list->n * (KEYS_TEXT_SIZE + KEYS_NAME_SIZE + 32);
	char *text = alloc_new(room), hex[KEYS_TEXT_SIZE];
	size_t at = (size_t)snprintf(text, room, "%s\n# key, role, name\n", magic);
	for (size_t i = 0; i < list->n; i++) {
		keys_text(&list->entries[i].key, hex);
		at += (size_t)snprintf(text + at, room - at, "%s %s %s\n", hex,
			keys_role_name(list->entries[i].role), list->entries[i].name);
	}
	int rc = file_write(list->path, text, at, FILE_PRIVATE, err);
	free(text);
	if (rc == 0) {
		list->read = stamp_of(list->path);
		list->was_read = true;
	}
	return rc;
}

/* Locks a file beside the list, so that only one program at a time edits the list. */
static int lock_file(const struct keys_list *list, int *fd, struct error *err)
{
	char path[4096];
	*fd = -1;
	if (list->path == NULL)
		return 0;
	if (snprintf(path, sizeof(path), "%s.lock", list->path) >= (int)sizeof(path))
		return error_set(err, -ENAMETOOLONG, "%s: the path is too long", list->path);
	int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(lock, LOCK_EX) < 0) {
		int rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
		close(lock);
		return rc;
	}
	*fd = lock;
	return 0;
}

/* Starts an edit: locks the list, reads it again, and copies the entries to *before. */
static int edit_begin(struct keys_list *list, int *lock, struct keys_list *before,
	struct error *err)
{
	int rc = lock_file(list, lock, err);
	if (rc < 0)
		return rc;
	if (list->path != NULL && (rc = reread_list(list, err)) < 0)
		goto unlock;
	*before = (struct keys_list){.n = list->n, .room = list->n};
	before->entries = alloc_array(list->n + 1, sizeof(*list->entries));
	if (list->n > 0)
		memcpy(before->entries, list->entries, list->n * sizeof(*list->entries));
	return 0;
unlock:
	if (*lock >= 0)
		close(*lock);
	return rc;
}

/* Ends an edit: writes the list, or on an error restores the entries of *before. */
static int edit_end(struct keys_list *list, int lock, struct keys_list *before, int rc,
	struct error *err)
{
	if (rc == 0 && list->path != NULL)
		rc = write_list(list, err);
	if (rc < 0) {
		free(list->entries);
		list->entries = before->entries;
		list->n = before->n;
		list->room = before->n + 1;
	} else {
		free(before->entries);
		list->version++;
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

int keys_list_admit(struct keys_list *list, const struct keys_public *key, enum keys_role role,
	const char *name, struct error *err)
{
	struct keys_entry entry = {.key = *key, .role = role};
	struct keys_list before;
	int lock;
	if (role < KEYS_AGENT || role > KEYS_WATCHER)
		return error_set(err, -EINVAL, "%d is not a role", (int)role);
	if (!name_ok(name))
		return refuse_name(name, err);
	memcpy(entry.name, name, strlen(name));
	int rc = edit_begin(list, &lock, &before, err);
	if (rc < 0)
		return rc;
	rc = put_entry(list, &entry, err);
	return edit_end(list, lock, &before, rc, err);
}

static int remove_entry(struct keys_list *list, const char *who, struct error *err)
{
	struct keys_public key;
	const struct keys_entry *found = find_name(list, who);
	if (found == NULL && keys_parse(who, &key, NULL) == 0)
		found = find_key(list, &key);
	if (found == NULL)
		return error_set(err, -ENOENT, "the list has no entry \"%.80s\"", who);
	size_t i = (size_t)(found - list->entries);
	memmove(&list->entries[i], &list->entries[i + 1],
		(list->n - i - 1) * sizeof(*list->entries));
	list->n--;
	return 0;
}

int keys_list_expel(struct keys_list *list, const char *who, struct error *err)
{
	struct keys_list before;
	int lock;
	int rc = edit_begin(list, &lock, &before, err);
	if (rc < 0)
		return rc;
	rc = remove_entry(list, who, err);
	return edit_end(list, lock, &before, rc, err);
}
