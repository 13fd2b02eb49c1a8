/* corpus_files.h - finds the corpus for a data node: the agent's own files (--corpus), or the files
 * that WELCOME names, each on this machine or fetched from the controller. */
#ifndef AGENT_CORPUS_FILES_H
#define AGENT_CORPUS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/shared/tell.h"
#include "agent/weights/files.h"

struct job;
struct corpus_files; /* opaque */

/* own: n_own paths as agent_options has them. All are borrowed (corpus_files_free). */
struct corpus_files *corpus_files_new(struct tell *tell, struct files *files, const char *own,
				      uint32_t n_own);
void corpus_files_free(struct corpus_files *c); /* NULL is allowed */

/* Takes the paths of a WELCOME, each ended by NUL. If the paths are those of the last WELCOME,
 * the files that were found stay found. */
void corpus_files_welcome(struct corpus_files *c, const char *paths, size_t size);
/* Fetches the files that are missing. Returns true while this goes on. A file that cannot be
 * fetched ends the agent. */
bool corpus_files_fetching(struct corpus_files *c, int64_t now_us);
/* Sets the job's paths, which the job borrows. */
void corpus_files_name(const struct corpus_files *c, struct job *job);

#endif
