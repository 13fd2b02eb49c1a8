/* system_file.c - reads single values from files of the kernel. A missing file is not an error,
 * because kernels and containers provide different files. */
#include "doctor/system_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static FILE *open_file(const char *root, const char *path)
{
	char *whole = alloc_format("%s%s", root, path);
	FILE *f = fopen(whole, "re");

	free(whole);
	return f;
}

bool system_line(const char *root, const char *path, char *out, size_t room)
{
	FILE *f = open_file(root, path);
	bool read = f && fgets(out, (int)room, f) != NULL;

	if (!read)
		out[0] = 0;
	out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
	return read;
}

uint64_t system_number(const char *root, const char *path, unsigned index, uint64_t missing)
{
	char line[256], *at = line, *end;

	system_line(root, path, line, sizeof(line));
	for (unsigned i = 0;; i++, at = end) {
		while (isspace((unsigned char)*at))
			at++;
		if (!isdigit((unsigned char)*at))
			return missing;
		const uint64_t value = strtoull(at, &end, 10);
		if (i == index)
			return value;
	}
}

uint64_t system_keyed(const char *root, const char *path, const char *key, uint64_t missing)
{
	const size_t n = strlen(key);
	char line[512];
	FILE *f = open_file(root, path);

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, n) == 0 && strspn(line + n, " \t") > 0) {
			char *at = line + n + strspn(line + n, " \t");

			if (isdigit((unsigned char)*at))
				missing = strtoull(at, NULL, 10);
			break;
		}
	if (f)
		fclose(f);
	return missing;
}

bool system_has_word(const char *root, const char *path, const char *word)
{
	char line[512], *rest = line, *at;

	system_line(root, path, line, sizeof(line));
	while ((at = strsep(&rest, " \t")))
		if (strcmp(at, word) == 0)
			return true;
	return false;
}
