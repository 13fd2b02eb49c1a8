/* system_file.h - small files of /proc, /sys, /etc and /dev below a folder.
 *
 * root: the folder that contains proc, sys, etc and dev; "": those of this system. Tests pass
 * folders of their own. */
#ifndef DOCTOR_SYSTEM_FILE_H
#define DOCTOR_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the first line of a file such as "/proc/sys/net/ipv4/tcp_rmem". Returns false and sets out
 * to "" if there is no such file. */
bool system_line(const char *root, const char *path, char *out, size_t room);
/* Returns the number at position `index` (from 0) in the first line of a file. Returns `missing` if
 * there is none. */
uint64_t system_number(const char *root, const char *path, unsigned index, uint64_t missing);
/* Returns the number after the word `key` at the beginning of a line, as in /proc/meminfo. */
uint64_t system_keyed(const char *root, const char *path, const char *key, uint64_t missing);
/* Returns true if the first line of the file contains this word. */
bool system_has_word(const char *root, const char *path, const char *word);

#endif
