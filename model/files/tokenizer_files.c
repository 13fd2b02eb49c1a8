/* tokenizer_files.c - copies and removes the small files of a model. */
#include "model/files/tokenizer_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/text/tokenizer.h"

enum { PATH = 4096, TEXT_MOST = 256 << 20 };

static const char *const names[] = {
	"tokenizer.json",
	"tokenizer.model",
	"tokenizer_config.json",
	"vocab.json",
	"merges.txt",
	"special_tokens_map.json",
	"added_tokens.json",
	"generation_config.json",
	"chat_template.jinja",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static int read_named(const char *folder, const char *name, char **text, size_t *size,
		      struct error *err)
{
	char path[PATH];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return file_read(path, TEXT_MOST, text, size, err);
}

int tokenizer_files_check(const char *folder, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < NAMES && !rc; i++) {
		char *text;
		size_t size;

		if (!file_exists(folder, names[i]))
			continue;
		rc = read_named(folder, names[i], &text, &size, err);
		if (!rc)
			free(text);
	}
	return rc;
}

int tokenizer_files_copy(const char *from, const char *to, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < NAMES && !rc; i++) {
		char target[PATH], *text;
		size_t size;

		if (!file_exists(from, names[i]))
			continue;
		rc = read_named(from, names[i], &text, &size, err);
		if (rc)
			break;
		snprintf(target, sizeof(target), "%s/%s", to, names[i]);
		rc = file_make_folder(to, err);
		if (!rc)
			rc = file_replace(target, text, size, FILE_RESULT, err);
		free(text);
	}
	return rc;
}

int tokenizer_files_remove(const char *folder, const char *from, const char *tokenizer,
			   struct error *err)
{
	if (tokenizer && file_is_same(folder, tokenizer))
		return 0;
	for (size_t i = 0; i < NAMES; i++) {
		char path[PATH];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if ((from && file_exists(from, names[i])) ||
		    (tokenizer && file_is_same(path, tokenizer)))
			continue;
		if (unlink(path) != 0 && errno != ENOENT)
			return error_set(err, -errno, "%s: cannot be removed: %s", path,
					 strerror(errno));
	}
	return 0;
}

bool tokenizer_files_beyond_bytes(const char *folder)
{
	struct tokenizer *t = NULL;
	struct error ignored;
	bool other;

	if (!tokenizer_is_in(folder))
		return false;
	other = tokenizer_open(&t, folder, &ignored) != 0 || !tokenizer_is_bytes(t);
	tokenizer_free(t);
	return other;
}
