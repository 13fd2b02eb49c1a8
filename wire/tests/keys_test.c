/* Tests key files and the list of admitted keys. */
#include "wire/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"

struct place {
	char folder[64], key[128], list[128];
};

static void place_make(struct place *p)
{
	snprintf(p->folder, sizeof(p->folder), "/tmp/skippipe-keys-test.XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->key, sizeof(p->key), "%s/key", p->folder);
	snprintf(p->list, sizeof(p->list), "%s/admitted", p->folder);
}

static void place_clear(struct place *p)
{
	char lock[160];
	snprintf(lock, sizeof(lock), "%s.lock", p->list);
	unlink(p->key);
	unlink(p->list);
	unlink(lock);
	assert_int_equal(rmdir(p->folder), 0);
}

static void write_text(const char *path, const char *text, mode_t mode)
{
	assert_int_equal(file_write(path, text, strlen(text), mode, NULL), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Hard links fail, as on a file system without hard links. */
static bool links_fail;

int link(const char *from, const char *to)
{
	if (!links_fail)
		return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
	errno = EPERM;
	return -1;
}

TEST(a_key_needs_no_hard_links)
{
	struct place p;
	struct keys_identity *a, *b;
	struct error err;
	place_make(&p);
	links_fail = true;
	assert_int_equal(keys_load_or_make(&a, p.key, &err), 0);
	assert_int_equal(keys_save(a, p.key, &err), -EEXIST);
	links_fail = false;
	assert_int_equal(keys_load(&b, p.key, &err), 0);
	assert_true(keys_equal(keys_public_of(a), keys_public_of(b)));
	keys_free(a);
	keys_free(b);
	place_clear(&p);
}

TEST(a_key_survives_its_file)
{
	struct place p;
	struct keys_identity *a, *b;
	struct stat st;
	struct error err;
	place_make(&p);
	assert_int_equal(keys_load_or_make(&a, p.key, &err), 0);
	assert_int_equal(stat(p.key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(keys_load_or_make(&b, p.key, &err), 0);
	assert_true(keys_equal(keys_public_of(a), keys_public_of(b)));
	assert_int_equal(keys_save(a, p.key, &err), -EEXIST);
	assert_non_null(strstr(err.text, p.key));
	keys_free(a);
	keys_free(b);
	assert_int_equal(chmod(p.key, 0640), 0);
	assert_int_equal(keys_load(&a, p.key, &err), -EACCES);
	place_clear(&p);
}

/* Returns the result of keys_load in a process of another user, who is in group 4242. */
static int load_as_user(const char *path)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct keys_identity *id;

		if (setgroups(0, NULL) < 0 || setgid(4242) < 0 || setuid(4243) < 0)
			_exit(1);
		_exit(-keys_load(&id, path, NULL));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* A service manager hands over a key in a file. The file belongs to root, and the service's group
 * may read it. The path is a symbolic link. */
TEST(a_key_is_lent_by_root)
{
	struct place p;
	struct keys_identity *id;
	char path[256];

	if (geteuid() != 0)
		skip();
	place_make(&p);
	snprintf(path, sizeof(path), "%s.link", p.key);
	assert_int_equal(keys_load_or_make(&id, p.key, NULL), 0);
	keys_free(id);
	assert_int_equal(symlink(p.key, path), 0);
	assert_int_equal(chmod(p.folder, 0711), 0);
	assert_int_equal(chown(p.key, 0, 4242), 0);
	assert_int_equal(chmod(p.key, 0440), 0);
	assert_int_equal(load_as_user(path), 0);
	assert_int_equal(chmod(p.key, 0444), 0);
	assert_int_equal(load_as_user(path), -EACCES);
	assert_int_equal(chmod(p.key, 0460), 0);
	assert_int_equal(load_as_user(path), -EACCES);
	assert_int_equal(chmod(p.key, 0440), 0);
	assert_int_equal(chown(p.key, 4243, 4242), 0);
	assert_int_equal(load_as_user(path), -EACCES);
	unlink(path);
	place_clear(&p);
}

TEST(a_key_file_has_the_line_ends_of_windows)
{
	struct place p;
	struct keys_identity *id;
	char hex[KEYS_TEXT_SIZE], text[256], *from, *to = text;
	size_t size;

	place_make(&p);
	assert_int_equal(keys_load_or_make(&id, p.key, NULL), 0);
	keys_text(keys_public_of(id), hex);
	keys_free(id);
	assert_int_equal(file_read(p.key, 200, &from, &size, NULL), 0);
	for (size_t i = 0; i < size; i++) {
		if (from[i] == '\n')
			*to++ = '\r';
		*to++ = from[i];
	}
	*to = 0;
	free(from);
	write_text(p.key, text, 0600);
	assert_int_equal(keys_load(&id, p.key, NULL), 0);
	keys_text(keys_public_of(id), text);
	assert_string_equal(text, hex);
	keys_free(id);
	place_clear(&p);
}

static void expect_bad_key(const struct place *p, const char *text, const char *where)
{
	struct keys_identity *id;
	struct error err = {""};
	write_text(p->key, text, 0600);
	assert_int_equal(keys_load(&id, p->key, &err), -EINVAL);
	if (strstr(err.text, where) == NULL || strstr(err.text, p->key) == NULL)
		fail_msg("\"%s\" does not name %s", err.text, where);
	assert_null(strstr(err.text, "1111")); /* the error must not show a part of the secret */
}

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"

TEST(broken_key_files_are_named)
{
	struct place p;
	place_make(&p);
	expect_bad_key(&p, "", ":1:");
	expect_bad_key(&p, "skippipe-key 2\n", ":1:");
	expect_bad_key(&p, "skippipe-key 1\n", ":2:");
	expect_bad_key(&p, "skippipe-key 1\npublic 12\n", ":2:");
	expect_bad_key(&p, "skippipe-key 1\npublic " ONES "\n", ":3:");
	expect_bad_key(&p, "skippipe-key 1\npublic " ONES "\nsecret " ONES "2\n", ":3:");
	expect_bad_key(&p, "skippipe-key 1\npublic " ONES "\nsecret " ONES "\n",
		       "does not belong to the secret");
	place_clear(&p);
}

TEST(the_list_is_edited_and_reread)
{
	struct place p;
	struct keys_list *one, *two;
	struct error err = {""};
	struct keys_public a = {{1}}, b = {{2}};
	char hex[KEYS_TEXT_SIZE];
	place_make(&p);
	assert_int_equal(keys_list_open(&one, p.list, &err), 0);
	assert_int_equal(keys_list_open(&two, p.list, &err), 0);
	assert_int_equal(keys_list_admit(one, &a, KEYS_AGENT, "node1", &err), 0);
	assert_int_equal(keys_list_refresh(two, &err), 1);
	assert_int_equal(keys_list_refresh(two, &err), 0);
	assert_string_equal(keys_list_find(two, &a)->name, "node1");
	/* `one` has not read the edit that the other program made. An edit by `one` must not undo
	 * the other edit. */
	assert_int_equal(keys_list_admit(one, &b, KEYS_CONSOLE, "desk", &err), 0);
	uint64_t version = keys_list_version(two);
	assert_int_equal(keys_list_expel(two, "node1", &err), 0);
	assert_true(keys_list_version(two) > version);
	assert_int_equal(keys_list_count(two), 1);
	assert_int_equal(keys_list_refresh(one, &err), 1);
	assert_null(keys_list_find(one, &a));
	assert_int_equal(keys_list_find(one, &b)->role, KEYS_CONSOLE);
	keys_text(&b, hex);
	assert_int_equal(keys_list_expel(one, hex, &err), 0);
	assert_int_equal(keys_list_expel(one, hex, &err), -ENOENT);
	/* A refused edit must change nothing. */
	assert_int_equal(keys_list_admit(one, &a, KEYS_AGENT, "x", &err), 0);
	assert_int_equal(keys_list_admit(one, &b, KEYS_AGENT, "x", &err), -EEXIST);
	assert_int_equal(keys_list_admit(one, &b, KEYS_AGENT, "a b", &err), -EINVAL);
	assert_int_equal(keys_list_admit(one, &b, KEYS_AGENT, "--role", &err), -EINVAL);
	assert_int_equal(keys_list_admit(one, &b, (enum keys_role)9, "y", &err), -EINVAL);
	/* The new role and name must replace the key's entry. */
	assert_int_equal(keys_list_admit(one, &a, KEYS_WATCHER, "z", &err), 0);
	assert_int_equal(keys_list_count(one), 1);
	assert_string_equal(keys_list_at(one, 0)->name, "z");
	keys_list_free(one);
	keys_list_free(two);
	place_clear(&p);
}

/* Only an edit may remove keys. If the file is missing, the list must stay in force. Each time
 * that the file disappears, the error must be reported once. */
TEST(a_list_that_is_gone_stays_in_force)
{
	struct place p;
	struct keys_list *list;
	struct error err = {""};
	char away[256];
	place_make(&p);
	snprintf(away, sizeof(away), "%s.away", p.list);
	write_text(p.list, "skippipe-admitted 1\n" ONES " agent x\n", 0600);
	assert_int_equal(keys_list_open(&list, p.list, &err), 0);
	uint64_t version = keys_list_version(list);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rename(p.list, away), 0);
		assert_int_equal(keys_list_refresh(list, &err), -ENOENT);
		assert_non_null(strstr(err.text, p.list));
		assert_int_equal(keys_list_refresh(list, &err), 0);
		assert_int_equal(keys_list_count(list), 1);
		assert_int_equal(rename(away, p.list), 0);
		assert_int_equal(keys_list_refresh(list, &err), 0);
	}
	assert_int_equal(keys_list_version(list), version);
	write_text(p.list, "skippipe-admitted 1\n", 0600);
	assert_int_equal(keys_list_refresh(list, &err), 1);
	assert_int_equal(keys_list_count(list), 0);
	keys_list_free(list);
	place_clear(&p);
}

static void expect_bad_list(const struct place *p, const char *text, const char *where)
{
	struct keys_list *list;
	struct error err = {""};
	write_text(p->list, text, 0600);
	assert_int_equal(keys_list_open(&list, p->list, &err), -EINVAL);
	if (strstr(err.text, where) == NULL || strstr(err.text, p->list) == NULL)
		fail_msg("\"%s\" does not name %s", err.text, where);
}

TEST(broken_lists_are_named)
{
	struct place p;
	struct keys_list *list;
	struct error err;
	place_make(&p);
	expect_bad_list(&p, "", ":1:");
	expect_bad_list(&p, "skippipe-admitted 2\n", ":1:");
	expect_bad_list(&p, "skippipe-admitted 1\n12 agent x\n", ":2:");
	expect_bad_list(&p, "skippipe-admitted 1\n\n" ONES " agnet x\n", ":3:");
	expect_bad_list(&p, "skippipe-admitted 1\n" ONES " agent\n", ":2:");
	expect_bad_list(&p, "skippipe-admitted 1\n" ONES " agent x y\n", ":2:");
	expect_bad_list(&p, "skippipe-admitted 1\n" ONES " agent x\n" ONES " agent y\n", ":3:");
	expect_bad_list(&p, "skippipe-admitted 1\r" ONES " agent x\r", ":1:");
	/* Editors of Windows end lines with CRLF, which must be accepted. */
	write_text(p.list, "skippipe-admitted 1\r\n\r\n" ONES " agent x\r\n", 0600);
	assert_int_equal(keys_list_open(&list, p.list, &err), 0);
	assert_string_equal(keys_list_at(list, 0)->name, "x");
	keys_list_free(list);
	/* If the file becomes invalid, the list in memory must stay in force, and the error must be
	 * reported once. */
	write_text(p.list, "skippipe-admitted 1\n# c\n" ONES " agent x\n", 0600);
	assert_int_equal(keys_list_open(&list, p.list, &err), 0);
	write_text(p.list, "skippipe-admitted 1\nrubbish\n", 0600);
	assert_int_equal(keys_list_refresh(list, &err), -EINVAL);
	assert_int_equal(keys_list_refresh(list, &err), 0);
	assert_int_equal(keys_list_count(list), 1);
	/* An edit must be refused, because it would overwrite the invalid file. */
	assert_int_equal(keys_list_expel(list, "x", &err), -EINVAL);
	keys_list_free(list);
	place_clear(&p);
}

/* Reads from /proc/self/smaps the flags of the memory mapping that contains `at`. */
static void mapping_flags(const void *at, char *flags, size_t room)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long from, to;
	bool here = false;

	assert_non_null(f);
	*flags = '\0';
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (unsigned long)at >= from && (unsigned long)at < to;
		if (here && strncmp(line, "VmFlags:", 8) == 0)
			snprintf(flags, room, "%s", line + 8);
	}
	fclose(f);
}

/* A mapping has the flag "dd" if it is excluded from core dumps (MADV_DONTDUMP). */
TEST(secrets_stay_out_of_core_dumps)
{
	struct keys_identity *id;
	char flags[512], plain[64];
	assert_int_equal(keys_generate(&id, NULL), 0);
	mapping_flags(id, flags, sizeof(flags));
	assert_non_null(strstr(flags, " dd"));
	/* Ordinary memory must lack the flag. Otherwise the test would prove nothing. */
	mapping_flags(plain, flags, sizeof(flags));
	assert_null(strstr(flags, " dd"));
	keys_free(id);
}

TEST(a_barred_key_is_off_until_the_list_changes)
{
	struct place p;
	struct keys_identity *a, *b;
	struct keys_list *list, *editor;
	place_make(&p);
	assert_int_equal(keys_generate(&a, NULL), 0);
	assert_int_equal(keys_generate(&b, NULL), 0);
	assert_int_equal(keys_list_open(&list, p.list, NULL), 0);
	assert_int_equal(keys_list_admit(list, keys_public_of(a), KEYS_AGENT, "a", NULL), 0);
	uint64_t version = keys_list_version(list);
	keys_list_bar(list, keys_public_of(a));
	assert_true(keys_list_version(list) > version);
	assert_true(keys_list_barred(list, keys_public_of(a)));
	assert_null(keys_list_find(list, keys_public_of(a)));
	/* The file has not changed after the last read, so it must not be read again. */
	assert_int_equal(keys_list_refresh(list, NULL), 0);
	assert_true(keys_list_barred(list, keys_public_of(a)));
	assert_int_equal(keys_list_open(&editor, p.list, NULL), 0);
	assert_int_equal(keys_list_admit(editor, keys_public_of(b), KEYS_AGENT, "b", NULL), 0);
	assert_int_equal(keys_list_refresh(list, NULL), 1);
	assert_non_null(keys_list_find(list, keys_public_of(a)));
	/* This program itself admits the key again. The entries in the file stay the same. */
	keys_list_bar(list, keys_public_of(a));
	assert_int_equal(keys_list_admit(editor, keys_public_of(a), KEYS_AGENT, "a", NULL), 0);
	assert_int_equal(keys_list_refresh(list, NULL), 1);
	assert_non_null(keys_list_find(list, keys_public_of(a)));
	keys_list_free(editor);
	keys_list_free(list);
	keys_free(a);
	keys_free(b);
	place_clear(&p);
}
