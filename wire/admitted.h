/* admitted.h - edits of the admitted list under its lock. Only admitted.c and invitations.c may
 * include this header. */
#ifndef WIRE_ADMITTED_H
#define WIRE_ADMITTED_H

#include "wire/keys.h"

/* An edit that is under way. The struct has the lock, and a copy of the entries as they were at
 * the start of the edit. */
struct admitted_edit {
	int lock;                   /* descriptor of the locked file; -1: the list has no file */
	struct keys_entry *entries; /* copy of the n entries, owned until admitted_end */
	size_t n;
};

/* Starts an edit: locks the list's file, and reads the file again if another process has written
 * it. */
int admitted_begin(struct keys_list *list, struct admitted_edit *edit, struct error *err);
/* Ends an edit. rc is the edit's own result. If rc is 0, writes the list to its file. If rc is
 * negative, or if writing fails, restores the old entries and returns the error. */
int admitted_end(struct keys_list *list, struct admitted_edit *edit, int rc, struct error *err);

/* Returns the entry of the key, even if the key is barred. NULL: the key has no entry. */
struct keys_entry *admitted_find(const struct keys_list *list, const struct keys_public *key);
struct keys_entry *admitted_named(const struct keys_list *list, const char *name);
/* Adds the entry, or replaces the entry that has the same key. -EEXIST: another key has the
 * name. */
int admitted_put(struct keys_list *list, const struct keys_entry *entry, struct error *err);
void admitted_drop(struct keys_list *list, struct keys_entry *entry);

#endif
