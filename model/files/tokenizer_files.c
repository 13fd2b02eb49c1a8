/* tokenizer_files.c - copies and removes the small files of a model. */
#include "model/files/tokenizer_files.h"

#include <stdio.h>
#include <stdlib.h>
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

/* to is NULL: the file is only read. */
static int copy_file(const char *from, const char *to, const char *name, struct error *err)
{
	char source[PATH], target[PATH], *text;
	size_t size;
	int rc;

	snprintf(source, sizeof(source), "%s/%s", from, name);
	rc = file_read(source, TEXT_MOST, &text, &size, err);
	if (rc)
		return rc;
	if (to) {
		snprintf(target, sizeof(target), "%s/%s", to, name);
		rc = file_make_folder(to, err);
		if (!rc)
			rc = file_replace(target, text, size, 0644, err);
	}
	free(text);
	return rc;
}

static int copy_files(const char *from, const char *to, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < NAMES && !rc; i++)
		if (file_exists(from, names[i]))
			rc = copy_file(from, to, names[i], err);
	return rc;
}

int tokenizer_files_check(const char *folder, struct error *err)
{
	return copy_files(folder, NULL, err);
}

int tokenizer_files_copy(const char *from, const char *to, struct error *err)
{
	return copy_files(from, to, err);
}

void tokenizer_files_remove(const char *folder, const char *from, const char *tokenizer)
{
	if (tokenizer && file_is_same(folder, tokenizer))
		return;
	for (size_t i = 0; i < NAMES; i++) {
		char path[PATH];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (!(from && file_exists(from, names[i])) &&
		    !(tokenizer && file_is_same(path, tokenizer)))
			unlink(path);
	}
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
