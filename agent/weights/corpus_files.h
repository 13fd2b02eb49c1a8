/* corpus_files.h - finds the corpus for a data node. The corpus is the agent's own files
 * (--corpus), or the files that WELCOME names. A named file that this machine lacks is fetched from
 * the controller. */
#ifndef AGENT_CORPUS_FILES_H
#define AGENT_CORPUS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/shared/tell.h"
#include "agent/weights/files.h"

struct job;
struct corpus_files; /* opaque */

/* own: n_own paths, in the format of agent_options.corpus. All arguments are borrowed until
 * corpus_files_free. */
struct corpus_files *corpus_files_new(struct tell *tell, struct files *files, const char *own,
				      uint32_t n_own);
void corpus_files_free(struct corpus_files *c); /* NULL is allowed */

/* Takes the paths of a WELCOME, each ended by NUL. If the previous WELCOME had the same paths, the
 * files that were found stay valid. */
void corpus_files_welcome(struct corpus_files *c, const char *paths, size_t size);
/* Fetches missing files, one after another. Returns true until this machine has all files. A file
 * that cannot be fetched ends the agent. */
bool corpus_files_fetching(struct corpus_files *c, int64_t now_us);
/* Sets the job's paths of the corpus, which the job borrows. */
void corpus_files_name(const struct corpus_files *c, struct job *job);

#endif
