/* characters.h - what a tokenizer must know about characters: their classes and normal form C.
 *
 * Both are those of the tokenizers package, which takes them from two libraries: classes of Unicode
 * 16, and a normal form of Unicode 9. Only the newest characters show the difference.
 */
#ifndef MODEL_CHARACTERS_H
#define MODEL_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* \p{L}, \p{N}, \s and all others. */
enum character { CHARACTER_OTHER, CHARACTER_LETTER, CHARACTER_NUMBER, CHARACTER_SPACE };

struct characters; /* opaque; read-only once made */

/* marks_are_letters: combining marks (\p{M}) are in the class of letters, not of others. */
struct characters *characters_new(bool marks_are_letters);
void characters_free(struct characters *c); /* NULL is allowed */

/* Returns the class of the first character of valid UTF-8, and its bytes in *n. */
enum character characters_class(const struct characters *c, const char *text, size_t *n);

/* Returns valid UTF-8 (size > 0) in normal form C, freed by the caller, and its bytes in *n; NULL
 * without memory. */
char *characters_normal(const struct characters *c, const char *text, size_t size, size_t *n);

#endif
