/* tokenizer_files.h - the small files of a model besides its weights: its tokenizer and the
 * settings for generation. Commands that copy a model copy these files unchanged. */
#ifndef MODEL_TOKENIZER_FILES_H
#define MODEL_TOKENIZER_FILES_H

#include <stdbool.h>

#include "base/error.h"

/* Checks that the files of the folder can be read. Missing files are no error. */
int tokenizer_files_check(const char *folder, struct error *err);
/* Copies the files that exist from one folder to another, which is created if it is missing. */
int tokenizer_files_copy(const char *from, const char *to, struct error *err);
/* Removes the files of a replaced model from the folder. Keeps a file if the new model's folder
 * `from` has a file of the same name. Also keeps the file or folder `tokenizer`. `from` and
 * `tokenizer` may be NULL. Errors are the system's. */
int tokenizer_files_remove(const char *folder, const char *from, const char *tokenizer,
			   struct error *err);

/* Returns true if the folder has a tokenizer whose tokens are not simply bytes. */
bool tokenizer_files_beyond_bytes(const char *folder);

#endif
