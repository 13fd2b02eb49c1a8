/* system_tree.c - makes folders with files like those of a real system, and checks findings. */
#include "doctor/tests/system_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tests/test.h"

void tree_make(struct system_tree *t)
{
	strcpy(t->root, "/tmp/skippipe-doctor-XXXXXX");
	assert_non_null(mkdtemp(t->root));
}

void tree_remove(struct system_tree *t)
{
	file_remove_folder(t->root);
}

void tree_put(const struct system_tree *t, const char *path, const char *text)
{
	char *whole = alloc_format("%s%s", t->root, path), *slash = strrchr(whole, '/');

	*slash = 0;
	assert_int_equal(file_make_folder(whole, NULL), 0);
	*slash = '/';
	assert_int_equal(file_write(whole, text, strlen(text), FILE_RESULT, NULL), 0);
	free(whole);
}

void must_find(const struct findings *f, const char *check, enum finding_level level,
	       const char *found, const char *remedy)
{
	for (size_t i = 0; i < f->all.n; i++) {
		const struct finding *g = &f->all.list[i];

		if (strcmp(g->check, check) == 0 && g->level == level && strstr(g->found, found) &&
		    strstr(g->remedy, remedy))
			return;
	}
	findings_print(f, true, stderr);
	fail_msg("no %s of level %d with \"%s\" and \"%s\"", check, (int)level, found, remedy);
}

void must_be(const struct findings *f, const char *check, enum finding_level level)
{
	unsigned n = 0;

	for (size_t i = 0; i < f->all.n; i++) {
		const struct finding *g = &f->all.list[i];

		if (strcmp(g->check, check) != 0)
			continue;
		n++;
		if (g->level != level)
			fail_msg("%s: %s", check, g->found);
	}
	assert_true(n > 0);
}
