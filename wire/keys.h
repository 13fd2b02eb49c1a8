/* keys.h - the identity of a process, and the list of the keys that it admits.
 *
 * An identity is an X25519 key pair. The secret half is stored in a file of mode 0600. In memory
 * the secret half is locked, kept out of core dumps and wiped after use. The secret half is never
 * printed or logged. The public half, 64 hex digits, identifies the process to others.
 *
 * The admitted list holds the public keys that may connect, with a role and a name for each. The
 * list may be bound to a text file. An operator edits the file while the program runs, by hand or
 * with `skippipe admit` and `skippipe expel`:
 *
 *     skippipe-admitted 1
 *     # key, role, name
 *     5e0c...(64 hex digits) agent node7
 *
 * Each key and each name may occur once. When a key is removed from the list, the program ends the
 * key's sessions at the next turn of its event loop. The list also holds invitations
 * (wire/invite/invitations.h), whose keys may only ask to admit another key.
 */
#ifndef WIRE_KEYS_H
#define WIRE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KEYS_BYTES     32
#define KEYS_TEXT_SIZE 65   /* size of a key as text: the hex digits and the NUL */
#define KEYS_NAME_SIZE 64   /* size of a name with the NUL */
#define KEYS_LIST_MOST 4096 /* limit of entries of one list */
/* Characters that a name may contain. The first character must not be '-'. */
#define KEYS_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Messages contain these numbers: never change them. */
enum keys_role {
	KEYS_AGENT = 1, /* a process that computes stages */
	KEYS_CONTROLLER,
	KEYS_CONSOLE,   /* a process that watches and gives commands */
	KEYS_WATCHER,   /* a process that only watches */
	KEYS_INVITATION /* a key that may only ask for the admission of another key */
};
#define KEYS_ROLE_BIT(role) (1u << (role))

struct keys_public {
	uint8_t bytes[KEYS_BYTES];
};

struct keys_identity; /* opaque: a key pair */

/* Makes a key pair. The caller frees *out with keys_free. -ENOMEM: no locked memory; -EIO: no
 * randomness. */
int keys_generate(struct keys_identity **out, struct error *err);
/* Makes the key pair whose secret half is a copy of the KEYS_BYTES bytes at `secret`. The errors
 * are those of keys_generate. */
int keys_from_secret(struct keys_identity **out, const uint8_t *secret, struct error *err);
/* Loads a key pair. -EACCES: users other than the owner may read or change the file. There is an
 * exception: if root owns the file and this process does not run as root, the file's group may
 * read the file. -EINVAL: the file is no key file, or its two halves do not belong together. The
 * error names file and line. */
int keys_load(struct keys_identity **out, const char *path, struct error *err);
/* Saves a key pair with mode 0600. -EEXIST: the file exists; a key is never overwritten. */
int keys_save(const struct keys_identity *id, const char *path, struct error *err);
/* Loads the key pair from a file. If there is no such file, makes a key pair and saves it there. */
int keys_load_or_make(struct keys_identity **out, const char *path, struct error *err);
void keys_free(struct keys_identity *id); /* wipes the secret; NULL is allowed */
/* Returns the public half, borrowed. */
const struct keys_public *keys_public_of(const struct keys_identity *id);

/* Writes the key as 64 hex digits, NUL-terminated. */
void keys_text(const struct keys_public *key, char text[KEYS_TEXT_SIZE]);
/* Parses exactly 64 hex digits. -EINVAL: the text is anything else. */
int keys_parse(const char *text, struct keys_public *out, struct error *err);
/* Returns true if the two keys have the same bytes. */
bool keys_equal(const struct keys_public *a, const struct keys_public *b);

/* Returns the role's name; "?" if the role is unknown. */
const char *keys_role_name(enum keys_role role);
int keys_role_parse(const char *text, enum keys_role *out);  /* -EINVAL: the name is unknown */

struct keys_list; /* opaque: the list of the keys that may connect */

/* The terms of an invitation (wire/invite/invitations.h). */
struct keys_terms {
	enum keys_role role; /* role that the invitation grants: agent, console or watcher */
	/* Number of keys that the invitation may admit in all, and number of keys that it has
	 * admitted. */
	uint32_t uses, used;
	int64_t ends_s;      /* time at which the invitation ends, in seconds since 1970 */
	bool is_revoked;
};

struct keys_entry {
	struct keys_public key;
	enum keys_role role;
	char name[KEYS_NAME_SIZE];
	/* terms of an entry with role KEYS_INVITATION; zeros for other roles */
	struct keys_terms terms;
	bool barred; /* keys_list_bar was called for the key */
};

/* Makes an empty list in memory (keys_list_free). */
struct keys_list *keys_list_new(void);
/* Opens a list that is bound to a file. If the file is missing, the list is empty, and the first
 * keys_list_admit creates the file. */
int keys_list_open(struct keys_list **out, const char *path, struct error *err);
/* Returns the path of the list's file; NULL: the list is in memory only. */
const char *keys_list_path(const struct keys_list *list);
/* NULL is allowed. */
void keys_list_free(struct keys_list *list);

/* Reads the file again if it has changed. Call this function a few times a second. If the file
 * has not changed, a call costs one stat. Returns 1 if the list changed, 0 if not. After an
 * error, even if the file is gone (-ENOENT), the old list stays in force. The same error is not
 * reported again until the file has changed. */
int keys_list_refresh(struct keys_list *list, struct error *err);

/* Adds an entry, or replaces the entry of this key. Several programs may edit one file. Therefore
 * this function locks the file, reads it again, changes the list and writes it. -EEXIST: another
 * key has the name; -EINVAL: the role or the name is invalid; -ENOSPC: the list is full. */
int keys_list_admit(struct keys_list *list, const struct keys_public *key, enum keys_role role,
	const char *name, struct error *err);
/* Removes the entry with this name, or with this key as 64 hex digits. -ENOENT: there is no such
 * entry. */
int keys_list_expel(struct keys_list *list, const char *who, struct error *err);

/* Bars a key: this process refuses the key as if it were not on the list. The bar ends when
 * another process writes the list's file, even if the entries stay the same. This function does
 * not write the file. An operator lifts the bar by writing the file. */
void keys_list_bar(struct keys_list *list, const struct keys_public *key);
/* Returns true if the key is on the list and barred. */
bool keys_list_barred(const struct keys_list *list, const struct keys_public *key);

/* Finds the entry of a key. The entry is borrowed until the list changes. NULL: the key is not on
 * the list, or is barred. */
const struct keys_entry *keys_list_find(const struct keys_list *list,
	const struct keys_public *key);
/* For tests and fuzzers. These two functions return the number of entries, and entry i in the
 * order of the file. */
size_t keys_list_count(const struct keys_list *list);
const struct keys_entry *keys_list_at(const struct keys_list *list, size_t i);
/* Returns a number that increases with every change of the list, so that callers can detect
 * changes. */
uint64_t keys_list_version(const struct keys_list *list);

#endif
