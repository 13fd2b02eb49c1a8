/* split.h - cuts text into words, as the pre-tokenizers of byte-level BPE do.
 *
 * A token never crosses the end of a word. A tokenizer.json describes words by a regular
 * expression. The expressions of GPT-2, LLaMA 3 and Qwen differ only in a few points (struct
 * split_rule). One function therefore implements all of them, without an engine for regular
 * expressions.
 */
#ifndef MODEL_SPLIT_H
#define MODEL_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/text/characters.h"

/* The points in which the families of expressions differ. */
struct split_rule {
	const char *regex; /* the regular expression as it is written in a tokenizer.json */
	uint32_t digits;   /* limit of digits in one word; 0: GPT-2's rule, without a limit */
	bool marks;        /* combining marks (\p{M}) belong to words of letters */
};

/* Returns the rule of an expression, or NULL if the expression is not known. */
const struct split_rule *split_find(const char *regex);
const struct split_rule *split_gpt2(void);

/* Returns the length in bytes of the first word of valid UTF-8 (size > 0). characters: made with
 * the rule's `marks`. */
size_t split_word(const struct split_rule *rule, const struct characters *characters,
		  const char *text, size_t size);

#endif
