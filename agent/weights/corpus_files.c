/* corpus_files.c - finds the corpus for a data node. The corpus may have another path on each
 * machine. READY reports the hash of the corpus's bytes, by which the controller recognises the
 * run's corpus. */
#include "agent/weights/corpus_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/job.h"
#include "base/alloc.h"

/* `named` and `found` are lists of paths, each ended by NUL. */
struct corpus_files {
	char *named; /* paths in the controller's WELCOME */
	size_t named_size;
	/* The corresponding paths on this machine, for the first n_found paths in `named`. */
	char *found;
	size_t found_size;
	uint32_t n_found;
	size_t next;     /* offset in `named` of the next path to find */
	/* The n_own paths of the option --corpus, which replace the controller's paths. */
	const char *own;
	uint32_t n_own;
	struct tell *tell;
	struct files *files;
};

struct corpus_files *corpus_files_new(struct tell *tell, struct files *files, const char *own,
				      uint32_t n_own)
{
	struct corpus_files *c = alloc_new(sizeof(*c));

	c->tell = tell;
	c->files = files;
	c->own = own;
	c->n_own = n_own;
	return c;
}

static void forget(struct corpus_files *c)
{
	free(c->named);
	free(c->found);
	c->named = c->found = NULL;
	c->named_size = c->found_size = c->next = 0;
	c->n_found = 0;
}

void corpus_files_free(struct corpus_files *c)
{
	if (c)
		forget(c);
	free(c);
}

void corpus_files_welcome(struct corpus_files *c, const char *paths, size_t size)
{
	if (c->named_size == size && (size == 0 || memcmp(c->named, paths, size) == 0))
		return;
	forget(c);
	if (size == 0)
		return;
	c->named = alloc_array(size, 1);
	memcpy(c->named, paths, size);
	c->named_size = size;
}

static void add_found(struct corpus_files *c, const char *path)
{
	size_t n = strlen(path) + 1;

	c->found = alloc_resize(c->found, c->found_size + n, 1);
	memcpy(c->found + c->found_size, path, n);
	c->found_size += n;
	c->n_found++;
	c->next += strlen(c->named + c->next) + 1;
}

/* Gives the path for a fetched file. The path includes the file's number, because the corpus may
 * have two files with the same name. */
static bool fetched_path(struct corpus_files *c, char *path, size_t room)
{
	const char *folder = files_folder(c->files), *name = c->named + c->next;
	const char *slash = strrchr(name, '/');
	int n = folder ? snprintf(path, room, "%s/corpus/%04u.%s", folder, c->n_found,
				  slash ? slash + 1 : name)
		       : -1;

	return n > 0 && (size_t)n < room;
}

static bool fetch(struct corpus_files *c, int64_t now_us)
{
	const struct transfer *t = files_fetched(c->files);
	struct msg_file_ask ask = { .kind = FILE_CORPUS, .index = c->n_found };
	char path[4096];

	if (!fetched_path(c, path, sizeof(path))) {
		tell_trouble(c->tell, true, "corpus: no folder for %s", c->named + c->next);
		return true;
	}
	if (t->state == TRANSFER_IDLE || strcmp(t->path, path) != 0) {
		files_fetch(c->files, &ask, path, now_us);
	} else if (t->state == TRANSFER_DONE) {
		add_found(c, path);
		files_cancel(c->files);
		return false;
	} else if (t->state == TRANSFER_FAILED) {
		tell_trouble(c->tell, true,
			     "corpus: %s is not on this machine, and the controller cannot send "
			     "it: %s",
			     c->named + c->next, t->reason);
	}
	return true;
}

bool corpus_files_fetching(struct corpus_files *c, int64_t now_us)
{
	if (c->n_own > 0 || c->tell->end.leaving)
		return false;
	while (c->next < c->named_size) {
		if (access(c->named + c->next, R_OK) == 0)
			add_found(c, c->named + c->next);
		else if (fetch(c, now_us))
			return true;
	}
	return false;
}

void corpus_files_name(const struct corpus_files *c, struct job *job)
{
	job->prepare.corpus = c->n_own > 0 ? c->own : c->found;
	job->prepare.n_corpus = c->n_own > 0 ? c->n_own : c->n_found;
}
