/* libFuzzer: reads key files and lists of admitted keys with any contents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct keys_list *list;
	struct keys_identity *id;
	struct error err = {""};
	snprintf(path, sizeof(path), "/dev/shm/skippipe-list-fuzz.%d", (int)getpid());
	FILE *f = fopen(path, "wb");
	if (f == NULL)
		return 0;
	fchmod(fileno(f), 0600);
	if (fwrite(data, 1, size, f) != size)
		abort();
	fclose(f);
	if (keys_list_open(&list, path, &err) == 0) {
		for (size_t i = 0; i < keys_list_count(list); i++) {
			const struct keys_entry *e = keys_list_at(list, i);
			if (keys_list_find(list, &e->key) != e || e->name[0] == '\0')
				abort();
		}
		keys_list_free(list);
	} else if (err.text[0] == '\0') {
		abort();
	}
	if (keys_load(&id, path, &err) == 0)
		keys_free(id);
	unlink(path);
	return 0;
}
