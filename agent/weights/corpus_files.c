/* corpus_files.c - finds the corpus for a data node. The corpus need not lie at one path on every
 * machine: the hash of its bytes, which READY reports, decides if it is the run's. */
#include "agent/weights/corpus_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/alloc.h"

/* Lists of paths, each ended by NUL. */
struct corpus_files {
	char *named; /* paths as the controller named them */
	size_t named_size;
	char *found; /* paths on this machine, for the first n_found of the named ones */
	size_t found_size;
	uint32_t n_found;
	size_t next; /* offset in `named` of the first path that is not found */
};

struct corpus_files *corpus_files_new(void)
{
	struct corpus_files *c = alloc_new(sizeof(*c));

	return c;
}

static void forget(struct corpus_files *c)
{
	free(c->named);
	free(c->found);
	*c = (struct corpus_files){ .named = NULL };
}

void corpus_files_free(struct corpus_files *c)
{
	if (c)
		forget(c);
	free(c);
}

void corpus_files_welcome(struct agent *a, const char *paths, size_t size)
{
	struct corpus_files *c = a->modules.corpus_files;

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

/* Fetched files have a number, because the corpus may have two files of the same name. */
static bool fetched_path(struct agent *a, char *path, size_t room)
{
	const struct corpus_files *c = a->modules.corpus_files;
	const char *folder = files_folder(a), *name = c->named + c->next;
	const char *slash = strrchr(name, '/');
	int n = folder ? snprintf(path, room, "%s/corpus/%04u.%s", folder, c->n_found,
				  slash ? slash + 1 : name)
		       : -1;

	return n > 0 && (size_t)n < room;
}

static bool fetch(struct agent *a, int64_t now_us)
{
	const struct corpus_files *c = a->modules.corpus_files;
	const struct transfer *t = files_fetched(a);
	struct msg_file_ask ask = { .kind = FILE_CORPUS, .index = c->n_found };
	char path[4096];

	if (!fetched_path(a, path, sizeof(path))) {
		tell_trouble(&a->tell, true, "corpus: no folder for %s", c->named + c->next);
		return true;
	}
	if (t->state == TRANSFER_IDLE || strcmp(t->path, path) != 0) {
		files_fetch(a, &ask, path, now_us);
	} else if (t->state == TRANSFER_DONE) {
		add_found(a->modules.corpus_files, path);
		files_cancel(a);
		return false;
	} else if (t->state == TRANSFER_FAILED) {
		tell_trouble(&a->tell, true,
			     "corpus: %s is not on this machine, and the controller cannot send "
			     "it: %s",
			     c->named + c->next, t->reason);
	}
	return true;
}

bool corpus_files_fetching(struct agent *a, int64_t now_us)
{
	struct corpus_files *c = a->modules.corpus_files;

	if (a->options.n_corpus > 0 || a->tell.end.leaving)
		return false;
	while (c->next < c->named_size) {
		if (access(c->named + c->next, R_OK) == 0)
			add_found(c, c->named + c->next);
		else if (fetch(a, now_us))
			return true;
	}
	return false;
}

void corpus_files_name(const struct agent *a, struct job *job)
{
	const struct corpus_files *c = a->modules.corpus_files;

	job->prepare.corpus = a->options.n_corpus > 0 ? a->options.corpus : c->found;
	job->prepare.n_corpus = a->options.n_corpus > 0 ? a->options.n_corpus : c->n_found;
}
