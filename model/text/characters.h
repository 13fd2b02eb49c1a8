/* characters.h - what a tokenizer must know about characters: their classes and normal form C.
 *
 * The results are the same as in the tokenizers package, which uses one library for classes
 * (Unicode 16) and another library for normal form C (Unicode 9). The two versions of Unicode
 * differ only in recently added characters.
 */
#ifndef MODEL_CHARACTERS_H
#define MODEL_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CHARACTER_OTHER: a character in none of the classes \p{L}, \p{N} and \s. */
enum character { CHARACTER_OTHER, CHARACTER_LETTER, CHARACTER_NUMBER, CHARACTER_SPACE };

struct characters; /* opaque; read-only once made */

/* marks_are_letters: combining marks (\p{M}) count as letters; otherwise as other characters. */
struct characters *characters_new(bool marks_are_letters);
void characters_free(struct characters *c); /* NULL is allowed */

/* Returns the class of the first character of valid UTF-8, and its length in bytes in *n. */
enum character characters_class(const struct characters *c, const char *text, size_t *n);

/* Returns the normal form C of valid UTF-8 (size > 0) and its length in *n. The caller frees it;
 * NULL if memory runs out. */
char *characters_normal(const struct characters *c, const char *text, size_t size, size_t *n);

#endif
