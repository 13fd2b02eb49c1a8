/* system_file.h - reads small files of /proc, /sys, /etc and /dev.
 *
 * root: a folder that contains proc, sys, etc and dev; "" for the real ones. Tests pass folders
 * with made-up files.
 */
#ifndef DOCTOR_SYSTEM_FILE_H
#define DOCTOR_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the first line of a file such as "/proc/sys/net/ipv4/tcp_rmem" to `out`. Returns false and
 * sets `out` to "" if the file does not exist. */
bool system_line(const char *root, const char *path, char *out, size_t room);
/* Returns a number of the file's first line; `index` counts the numbers from 0. Returns `missing`
 * if the line has no such number. */
uint64_t system_number(const char *root, const char *path, unsigned index, uint64_t missing);
/* Finds the line that begins with the word `key`, as in /proc/meminfo, and returns the number after
 * the word. Returns `missing` if there is none. */
uint64_t system_keyed(const char *root, const char *path, const char *key, uint64_t missing);
/* Returns true if the first line of the file contains this word. */
bool system_has_word(const char *root, const char *path, const char *word);

#endif
