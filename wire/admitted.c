/* admitted.c - the list of the keys that may connect, and the text file that stores the list
 * (keys.h). Operators change the file while programs use it. A broken or missing file therefore
 * leaves the list in memory as it is. */
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
#include "wire/admitted.h"
#include "wire/invite/invitations.h"

#define LIST_FILE_MOST ((size_t)1 << 20)
static const char magic[] = "skippipe-admitted 1";

/* Properties of a file, as stat reports them. If the properties are unchanged, the content counts
 * as unchanged. */
struct stamp {
	int missing; /* errno of stat; 0: the file exists */
	ino_t inode;
	off_t size;
	struct timespec modified;
};

struct keys_list {
	char *path; /* path of the list's file; NULL: the list has no file */
	struct keys_entry *entries;
	size_t n, room;
	uint64_t version;
	struct stamp read;     /* stamp of the file that was last read */
	bool was_read;         /* the file was read at least once */
	struct stamp reported; /* stamp of the file whose error was last reported */
	/* The present error of the file was reported. A successful read sets this to false. */
	bool has_reported;
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

struct keys_entry *admitted_find(const struct keys_list *list, const struct keys_public *key)
{
	for (size_t i = 0; i < list->n; i++) {
		if (keys_equal(&list->entries[i].key, key))
			return &list->entries[i];
	}
	return NULL;
}

const struct keys_entry *keys_list_find(const struct keys_list *list, const struct keys_public *key)
{
	const struct keys_entry *found = admitted_find(list, key);
	return found != NULL && !found->barred ? found : NULL;
}

void keys_list_bar(struct keys_list *list, const struct keys_public *key)
{
	struct keys_entry *found = admitted_find(list, key);
	if (found != NULL && !found->barred) {
		found->barred = true;
		list->version++;
	}
}

bool keys_list_barred(const struct keys_list *list, const struct keys_public *key)
{
	const struct keys_entry *found = admitted_find(list, key);
	return found != NULL && found->barred;
}

struct keys_entry *admitted_named(const struct keys_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->entries[i].name, name) == 0)
			return &list->entries[i];
	}
	return NULL;
}

static bool name_ok(const char *name)
{
	size_t n = strspn(name, KEYS_NAME_CHARACTERS);
	return n > 0 && n < KEYS_NAME_SIZE && name[n] == '\0' && name[0] != '-';
}

int admitted_put(struct keys_list *list, const struct keys_entry *entry, struct error *err)
{
	struct keys_entry *same_name = admitted_named(list, entry->name);
	if (same_name != NULL && !keys_equal(&same_name->key, &entry->key))
		return error_set(err, -EEXIST, "the name \"%s\" belongs to another key",
			entry->name);
	struct keys_entry *old = admitted_find(list, &entry->key);
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

/* Parses "KEY ROLE NAME", and the terms of an invitation after it. Changes line. */
static int parse_entry(char *line, struct keys_entry *out, struct error *err)
{
	char *rest = NULL;
	char *key = strtok_r(line, " \t", &rest);
	char *role = strtok_r(NULL, " \t", &rest);
	char *name = strtok_r(NULL, " \t", &rest);
	const bool invites = role != NULL && strcmp(role, keys_role_name(KEYS_INVITATION)) == 0;
	if (name == NULL || (!invites && strtok_r(NULL, " \t", &rest) != NULL))
		return error_set(err, -EINVAL, "expected a key, a role and a name");
	int rc = keys_parse(key, &out->key, err);
	if (rc == 0 && invites)
		rc = invitations_parse_terms(rest, &out->terms, err);
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
			if (rc == 0 && admitted_find(into, &entry.key) != NULL)
				rc = error_set(err, -EINVAL, "this key occurs twice");
			if (rc == 0)
				rc = admitted_put(into, &entry, err);
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

static bool terms_equal(const struct keys_terms *a, const struct keys_terms *b)
{
	return a->role == b->role && a->uses == b->uses && a->used == b->used &&
	       a->ends_s == b->ends_s && a->is_revoked == b->is_revoked;
}

/* Returns true if the newly read list b equals a and a has no barred key. If a has barred keys,
 * the caller must replace a by b, because an operator lifts the bars by writing the file. */
static bool same_entries(const struct keys_list *a, const struct keys_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct keys_entry *x = &a->entries[i], *y = &b->entries[i];
		if (x->barred || !keys_equal(&x->key, &y->key) || x->role != y->role ||
		    strcmp(x->name, y->name) != 0 || !terms_equal(&x->terms, &y->terms))
			return false;
	}
	return true;
}

/* Reads the file. Returns 1 if the entries have changed. A file that never existed counts as an
 * empty list. A file that has disappeared is an error, and no key is expelled, because a failed
 * disk or a mistake can be the cause. */
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

const char *keys_list_path(const struct keys_list *list)
{
	return list->path;
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
	size_t room = 64 + list->n * (KEYS_TEXT_SIZE + KEYS_NAME_SIZE + 32 + INVITATION_TERMS_SIZE);
	char *text = alloc_new(room), hex[KEYS_TEXT_SIZE], terms[INVITATION_TERMS_SIZE];
	size_t at = (size_t)snprintf(text, room, "%s\n# key, role, name\n", magic);
	for (size_t i = 0; i < list->n; i++) {
		keys_text(&list->entries[i].key, hex);
		invitations_print_terms(&list->entries[i], terms);
		at += (size_t)snprintf(text + at, room - at, "%s %s %s%s\n", hex,
				       keys_role_name(list->entries[i].role), list->entries[i].name,
				       terms);
	}
	int rc = file_write(list->path, text, at, FILE_PRIVATE, err);
	free(text);
	if (rc == 0) {
		list->read = stamp_of(list->path);
		list->was_read = true;
	}
	return rc;
}

/* Locks a file in the folder of the list, so that only one program at a time can edit the
 * list. */
static int lock_file(const struct keys_list *list, int *fd, struct error *err)
{
	char path[4096];
	*fd = -1;
	if (list->path == NULL)
		return 0;
	/* A program may open the list through a symbolic link. The lock is beside the real file,
	 * so that all programs use the same lock. */
	char *real = realpath(list->path, NULL);
	const int length =
		snprintf(path, sizeof(path), "%s.lock", real != NULL ? real : list->path);
	free(real);
	if (length >= (int)sizeof(path))
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

/* Reads the file only if another process has written it since the last read. Reading an unchanged
 * file again would lift the bars of keys, although no operator has looked at the cause. */
static int reread_if_changed(struct keys_list *list, struct error *err)
{
	const struct stamp now = stamp_of(list->path);
	return list->was_read && stamp_equal(&now, &list->read) ? 0 : reread_list(list, err);
}

int admitted_begin(struct keys_list *list, struct admitted_edit *edit, struct error *err)
{
	int rc = lock_file(list, &edit->lock, err);
	if (rc == 0 && list->path != NULL)
		rc = reread_if_changed(list, err);
	if (rc < 0) {
		if (edit->lock >= 0)
			close(edit->lock);
		return rc;
	}
	edit->n = list->n;
	edit->entries = alloc_array(list->n + 1, sizeof(*list->entries));
	if (list->n > 0)
		memcpy(edit->entries, list->entries, list->n * sizeof(*list->entries));
	return 0;
}

int admitted_end(struct keys_list *list, struct admitted_edit *edit, int rc, struct error *err)
{
	if (rc == 0 && list->path != NULL)
		rc = write_list(list, err);
	if (rc < 0) {
		free(list->entries);
		list->entries = edit->entries;
		list->n = edit->n;
		list->room = edit->n + 1;
	} else {
		free(edit->entries);
		list->version++;
	}
	if (edit->lock >= 0)
		close(edit->lock);
	return rc;
}

int keys_list_admit(struct keys_list *list, const struct keys_public *key, enum keys_role role,
	const char *name, struct error *err)
{
	struct keys_entry entry = {.key = *key, .role = role};
	struct admitted_edit edit;
	if (role < KEYS_AGENT || role > KEYS_WATCHER)
		return error_set(err, -EINVAL, "%d is not a role", (int)role);
	if (!name_ok(name))
		return refuse_name(name, err);
	memcpy(entry.name, name, strlen(name));
	int rc = admitted_begin(list, &edit, err);
	if (rc < 0)
		return rc;
	rc = admitted_put(list, &entry, err);
	return admitted_end(list, &edit, rc, err);
}

void admitted_drop(struct keys_list *list, struct keys_entry *entry)
{
	size_t i = (size_t)(entry - list->entries);
	memmove(entry, entry + 1, (list->n - i - 1) * sizeof(*entry));
	list->n--;
}

static int remove_entry(struct keys_list *list, const char *who, struct error *err)
{
	struct keys_public key;
	struct keys_entry *found = admitted_named(list, who);
	if (found == NULL && keys_parse(who, &key, NULL) == 0)
		found = admitted_find(list, &key);
	if (found == NULL)
		return error_set(err, -ENOENT, "the list has no entry \"%.80s\"", who);
	admitted_drop(list, found);
	return 0;
}

int keys_list_expel(struct keys_list *list, const char *who, struct error *err)
{
	struct admitted_edit edit;
	int rc = admitted_begin(list, &edit, err);
	if (rc < 0)
		return rc;
	rc = remove_entry(list, who, err);
	return admitted_end(list, &edit, rc, err);
}
