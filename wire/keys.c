/* keys.c - makes, saves and loads the key pair of a process, and keeps its secret half safe.
 * admitted.c holds the list of the keys that may connect. */
#include "wire/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/file.h"
#include "wire/identity.h"

#define KEY_FILE_MOST 4096
static const char magic[] = "skippipe-key 1";

static int identity_new(struct keys_identity **out, struct error *err)
{
	if (sodium_init() < 0)
		return error_set(err, -EIO, "the system gives no randomness");
	/* sodium_malloc gives memory that is locked, lies between guard pages, and is excluded from
	 * core dumps. */
	struct keys_identity *id = sodium_malloc(sizeof(*id));
	if (id == NULL)
		return error_set(err, -ENOMEM, "no locked memory left for a key (ulimit -l)");
	memset(id, 0, sizeof(*id));
	*out = id;
	return 0;
}

int keys_generate(struct keys_identity **out, struct error *err)
{
	struct keys_identity *id;
	int rc = identity_new(&id, err);
	if (rc < 0)
		return rc;
	randombytes_buf(id->secret, sizeof(id->secret));
	crypto_scalarmult_base(id->public.bytes, id->secret);
	*out = id;
	return 0;
}

int keys_from_secret(struct keys_identity **out, const uint8_t *secret, struct error *err)
{
	struct keys_identity *id;
	int rc = identity_new(&id, err);
	if (rc < 0)
		return rc;
	memcpy(id->secret, secret, sizeof(id->secret));
	crypto_scalarmult_base(id->public.bytes, id->secret);
	*out = id;
	return 0;
}

void keys_free(struct keys_identity *id)
{
	sodium_free(id); /* wipes the memory and frees it */
}

const struct keys_public *keys_public_of(const struct keys_identity *id)
{
	return &id->public;
}

void keys_text(const struct keys_public *key, char text[KEYS_TEXT_SIZE])
{
	sodium_bin2hex(text, KEYS_TEXT_SIZE, key->bytes, sizeof(key->bytes));
}

static int parse_hex(const char *text, size_t length, uint8_t out[KEYS_BYTES])
{
	size_t got = 0;
	const char *end = NULL;
	if (length != 2 * KEYS_BYTES)
		return -EINVAL;
	if (sodium_hex2bin(out, KEYS_BYTES, text, length, NULL, &got, &end) != 0 ||
	    got != KEYS_BYTES || end != text + length)
		return -EINVAL;
	return 0;
}

int keys_parse(const char *text, struct keys_public *out, struct error *err)
{
	struct keys_public key = {{0}};
	if (parse_hex(text, strlen(text), key.bytes) < 0)
		return error_set(err, -EINVAL,
			"\"%.80s\" is not a public key: expected %d hex digits", text,
			2 * KEYS_BYTES);
	*out = key;
	return 0;
}

bool keys_equal(const struct keys_public *a, const struct keys_public *b)
{
	return memcmp(a->bytes, b->bytes, KEYS_BYTES) == 0;
}

static const char *const role_names[] = {
	[KEYS_AGENT] = "agent",     [KEYS_CONTROLLER] = "controller", [KEYS_CONSOLE] = "console",
	[KEYS_WATCHER] = "watcher", [KEYS_INVITATION] = "invitation",
};

const char *keys_role_name(enum keys_role role)
{
	return role >= KEYS_AGENT && role <= KEYS_INVITATION ? role_names[role] : "?";
}

int keys_role_parse(const char *text, enum keys_role *out)
{
	for (int i = KEYS_AGENT; i <= KEYS_INVITATION; i++) {
		if (strcmp(text, role_names[i]) == 0) {
			*out = (enum keys_role)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- the key file: the magic line, "public HEX", "secret HEX" ---- */

/* Parses a line that consists of the name, a space and hex digits. */
static int parse_line(const char *line, const char *name, uint8_t out[KEYS_BYTES])
{
	size_t n = strlen(name);
	if (strncmp(line, name, n) != 0 || line[n] != ' ')
		return -EINVAL;
	return parse_hex(line + n + 1, strcspn(line + n + 1, "\r\n"), out);
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static int parse_key_file(const char *path, const char *text, struct keys_identity *id,
	struct error *err)
{
	const char *line = text;
	uint8_t check[KEYS_BYTES];

	if (strncmp(line, magic, strlen(magic)) != 0 || strcspn(line, "\r\n") != strlen(magic))
		return error_set(err, -EINVAL, "%s:1: not a key file: expected \"%s\"", path,
			magic);
	line = next_line(line);
	if (parse_line(line, "public", id->public.bytes) < 0)
		return error_set(err, -EINVAL, "%s:2: expected \"public\" and %d hex digits", path,
			2 * KEYS_BYTES);
	line = next_line(line);
	if (parse_line(line, "secret", id->secret) < 0)
		return error_set(err, -EINVAL, "%s:3: expected \"secret\" and %d hex digits", path,
			2 * KEYS_BYTES);
	crypto_scalarmult_base(check, id->secret);
	if (memcmp(check, id->public.bytes, sizeof(check)) != 0)
		return error_set(err, -EINVAL,
				 "%s: the public key does not belong to the secret key", path);
	return 0;
}

/* Returns true if users other than root and this process may read or change the file. There is an
 * exception: if root owns the file and this process is not root, the group may read the file.
 * Service managers hand over secrets in this way. A systemd credential has mode 0440, and so has
 * a Kubernetes secret with fsGroup. */
static bool is_exposed(const struct stat *st)
{
	const mode_t lent = st->st_uid == 0 && geteuid() != 0 ? S_IRGRP : 0;

	return (st->st_mode & 077 & ~lent) != 0;
}

/* Reads the file into memory that the caller wipes. file_read is not used, because it does not
 * wipe its buffers. Follows symbolic links, because each file of a mounted Kubernetes secret is a
 * symbolic link. */
static int read_secret_file(const char *path, char text[KEY_FILE_MOST], struct error *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	int rc = 0;
	if (fstat(fd, &st) < 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = error_set(err, -EINVAL, "%s: not a regular file", path);
	else if (is_exposed(&st))
		rc = error_set(err, -EACCES, "%s: others may read this secret key (mode %04o): "
			"chmod 600 it, or make a new one", path, (unsigned)(st.st_mode & 07777));
	else if (st.st_size >= KEY_FILE_MOST)
		rc = error_set(err, -EINVAL, "%s: too long for a key file", path);
	if (rc == 0) {
		ssize_t n = read(fd, text, KEY_FILE_MOST - 1);
		if (n < 0)
			rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
		else
			text[n] = '\0';
	}
	close(fd);
	return rc;
}

int keys_load(struct keys_identity **out, const char *path, struct error *err)
{
	struct keys_identity *id;
	char text[KEY_FILE_MOST];
	int rc = identity_new(&id, err);
	if (rc < 0)
		return rc;
	rc = read_secret_file(path, text, err);
	if (rc == 0)
		rc = parse_key_file(path, text, id, err);
	sodium_memzero(text, sizeof(text));
	if (rc < 0) {
		keys_free(id);
		return rc;
	}
	*out = id;
	return 0;
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* Gives the temporary file its final name. link() is used because rename() would replace an
 * existing key. On file systems without hard links, such as exFAT, renameat2() is tried instead.
 * If two programs make the same key file at the same time, one program succeeds and the other
 * program gets -EEXIST. */
static int publish_file(const char *temporary, const char *path)
{
	int rc = link(temporary, path) < 0 ? -errno : 0;
	if (rc != 0 && rc != -EEXIST) {
		if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
			rc = 0;
		else if (errno == EEXIST)
			rc = -EEXIST;
	}
	unlink(temporary);
	if (rc == 0)
		file_sync_folder(path);
	return rc;
}

int keys_save(const struct keys_identity *id, const char *path, struct error *err)
{
	char public_hex[KEYS_TEXT_SIZE], secret_hex[KEYS_TEXT_SIZE], text[256];
	char temporary[FILE_ASIDE];
	int fd = file_make_aside(temporary, path, FILE_PRIVATE);
	if (fd < 0)
		return error_set(err, fd, "%s: %s", path, strerror(-fd));

	keys_text(&id->public, public_hex);
	sodium_bin2hex(secret_hex, sizeof(secret_hex), id->secret, sizeof(id->secret));
	int n = snprintf(text, sizeof(text), "%s\npublic %s\nsecret %s\n", magic, public_hex,
		secret_hex);
	int rc = write_all(fd, text, (size_t)n);
	sodium_memzero(secret_hex, sizeof(secret_hex));
	sodium_memzero(text, sizeof(text));
	close(fd);
	if (rc < 0)
		unlink(temporary);
	else
		rc = publish_file(temporary, path);
	if (rc == -EEXIST)
		return error_set(err, rc, "%s: already there; a key is never overwritten", path);
	if (rc < 0)
		return error_set(err, rc, "%s: %s", path, strerror(-rc));
	return 0;
}

int keys_load_or_make(struct keys_identity **out, const char *path, struct error *err)
{
	struct keys_identity *id;
	int rc = keys_load(out, path, err);
	if (rc != -ENOENT)
		return rc;
	rc = keys_generate(&id, err);
	if (rc < 0)
		return rc;
	rc = keys_save(id, path, err);
	if (rc < 0) {
		keys_free(id);
		return rc == -EEXIST ? keys_load(out, path, err) : rc;
	}
	*out = id;
	return 0;
}
