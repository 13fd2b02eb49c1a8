/* system_file.h - small files of /proc, /sys, /etc and /dev below a folder.
 *
 * root: the folder that has proc, sys, etc and dev; "": this system's. Tests give folders of their
 * own. */
#ifndef DOCTOR_SYSTEM_FILE_H
#define DOCTOR_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the first line of a file such as "/proc/sys/net/ipv4/tcp_rmem". Returns false and gives ""
 * if there is none. */
bool system_line(const char *root, const char *path, char *out, size_t room);
/* Reads number `index` (from 0) of the first line. Returns `missing` if there is none. */
uint64_t system_number(const char *root, const char *path, unsigned index, uint64_t missing);
/* Reads the number after `key` at the beginning of a line, as in /proc/meminfo. */
uint64_t system_keyed(const char *root, const char *path, const char *key, uint64_t missing);
/* Returns true if the first line has this word. */
bool system_has_word(const char *root, const char *path, const char *word);

#endif
