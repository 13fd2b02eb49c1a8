/* keys.h - who a process is, and whom it lets in.
 *
 * An identity is an X25519 key pair. The secret half lives in a file of mode 0600 and in memory
 * that is locked, kept out of core dumps and wiped; it is never printed or logged. The public
 * half, 64 hex digits, is the node's name to the others.
 *
 * The admitted list says which public keys may connect, as what, under which name. It may be bound
 * to a text file that an operator edits (or `skippipe admit` and `skippipe expel` do) while the
 * program runs:
 *
 *     skippipe-admitted 1
 *     # key, role, name
 *     5e0c...(64 hex digits) agent node7
 *
 * A key and a name stand at most once. Whoever is taken off loses its sessions at the next turn
 * of the loop.
 */
#ifndef WIRE_KEYS_H
#define WIRE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KEYS_BYTES     32
#define KEYS_TEXT_SIZE 65  /* hex digits and the NUL */
#define KEYS_NAME_SIZE 64  /* with the NUL: letters, digits, '.', '_', '-' */
#define KEYS_LIST_MOST 4096 /* entries of one list */

/* Numbers go over the wire: never renumber. */
enum keys_role {
	KEYS_AGENT = 1,   /* runs stages */
	KEYS_CONTROLLER,  /* decides */
	KEYS_CONSOLE,     /* watches and steers */
	KEYS_WATCHER      /* may only watch */
};
#define KEYS_ROLE_BIT(role) (1u << (role))

struct keys_public {
	uint8_t bytes[KEYS_BYTES];
};

struct keys_identity; /* opaque: a key pair */

/* Gives *out (keys_free). -ENOMEM; -EIO no randomness. */
int keys_generate(struct keys_identity **out, struct error *err);
/* Gives *out. Refuses a file that others may read (-EACCES), one that is not a key file or whose
 * public half does not fit (-EINVAL); the message names file and line. */
int keys_load(struct keys_identity **out, const char *path, struct error *err);
/* Written aside with mode 0600 and renamed. -EEXIST when path exists: a key is never overwritten. */
int keys_save(const struct keys_identity *id, const char *path, struct error *err);
/* keys_load, or keys_generate and keys_save where there is no such file. */
int keys_load_or_make(struct keys_identity **out, const char *path, struct error *err);
void keys_free(struct keys_identity *id); /* wipes; NULL is allowed */
const struct keys_public *keys_public_of(const struct keys_identity *id); /* borrowed */

/* The key as people copy it, NUL-terminated. */
void keys_text(const struct keys_public *key, char text[KEYS_TEXT_SIZE]);
/* 64 hex digits, nothing before or after. -EINVAL. */
int keys_parse(const char *text, struct keys_public *out, struct error *err);
/* All bytes are equal. */
bool keys_equal(const struct keys_public *a, const struct keys_public *b);

const char *keys_role_name(enum keys_role role);             /* "?" when unknown */
int keys_role_parse(const char *text, enum keys_role *out);  /* -EINVAL */

struct keys_list; /* opaque: the admitted */

struct keys_entry {
	struct keys_public key;
	enum keys_role role;
	char name[KEYS_NAME_SIZE];
	bool barred; /* keys_list_bar */
};

/* An empty list, in memory only. Gives *out (keys_list_free). */
int keys_list_new(struct keys_list **out);
/* Bound to path. A file that is not there yet is an empty list and is made by the first admit. */
int keys_list_open(struct keys_list **out, const char *path, struct error *err);
/* NULL is allowed. */
void keys_list_free(struct keys_list *list);

/* Reads the file again when it changed since (one stat otherwise; call it a few times a second).
 * Returns 1 changed, 0 not (always 0 in memory). On an error the old list stays in force, also where
 * the file that was read is gone (-ENOENT) or cannot be looked at; the same error is not reported
 * twice for the same file. */
int keys_list_refresh(struct keys_list *list, struct error *err);

/* Adds, or replaces the entry that has this key. A bound list is re-read and written first (under
 * a lock: several programs may edit one file). -EEXIST the name belongs to another key; -EINVAL;
 * -ENOSPC list full. */
int keys_list_admit(struct keys_list *list, const struct keys_public *key, enum keys_role role,
	const char *name, struct error *err);
/* By name or by 64 hex digits. -ENOENT. */
int keys_list_expel(struct keys_list *list, const char *who, struct error *err);

/* Refuses a key from now on, in this process, as if it were not on the list: until the list is
 * changed, so that a person has looked. Nothing is written. */
void keys_list_bar(struct keys_list *list, const struct keys_public *key);
bool keys_list_barred(const struct keys_list *list, const struct keys_public *key);

/* Borrowed until the list next changes. NULL: not admitted, or barred. */
const struct keys_entry *keys_list_find(const struct keys_list *list, const struct keys_public *key);
/* What was read, in the order of the file: for tests and fuzzers. */
size_t keys_list_count(const struct keys_list *list);
const struct keys_entry *keys_list_at(const struct keys_list *list, size_t i);
/* Grows with every change: who keeps decisions compares it. */
uint64_t keys_list_version(const struct keys_list *list);

#endif
