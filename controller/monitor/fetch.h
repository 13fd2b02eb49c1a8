/* fetch.h - reads a page of a controller's HTTP server (server.h). */
#ifndef CONTROLLER_MONITOR_FETCH_H
#define CONTROLLER_MONITOR_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Fetches a page within limit_us. address: as in server_split. *out ends with a NUL that *size does
 * not count; the caller frees *out. Error messages name the address. -EFBIG: the answer has more
 * than `most` bytes; -EBADMSG: the answer is not HTTP with status 200; other errors are the
 * system's. */
int fetch_page(const char *address, const char *path, size_t most, int64_t limit_us, char **out,
	       size_t *size, struct error *err);

/* Moves the body of an answer to the beginning of the text, which ends with a NUL. Returns false if
 * the answer has no body, or a status other than 200. */
bool fetch_body(char *text, size_t *size);

#endif
