/* Cuts text into words by the rules of several models, which differ mostly in the white space
 * before a word. GPT-2's rule joins one space to the word that follows. Later rules join any single
 * character to the letters that follow, and end a run of white space after its last newline. */
#include "model/text/split.h"

#include <string.h>

static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
			   "\\s+(?!\\S)|\\s+";

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define LINES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct split_rule rules[] = {
	/* GPT-2 */
	{ gpt2, 0, false },
	/* The expression of GPT-2, as tiktoken writes it. */
	{ "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", 0,
	  false },
	/* LLaMA 3 */
	{ CONTRACTIONS
	  "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES,
	  3, false },
	/* The expression of Qwen 2, 2.5 and 3. */
	{ CONTRACTIONS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES,
	  1, false },
	/* Qwen 3.5 */
	{ CONTRACTIONS "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
		       "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES,
	  1, true },
};

const struct split_rule *split_gpt2(void)
{
	return &rules[0];
}

const struct split_rule *split_find(const char *regex)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].regex, regex) == 0)
			return &rules[i];
	return NULL;
}

enum { END = -1 }; /* class of the place after the end of the text */

struct text {
	const struct characters *characters;
	const char *s;
	size_t size;
};

/* Returns the class of the character at `at` and its length in bytes in *n. */
static int class_at(const struct text *t, size_t at, size_t *n)
{
	*n = 0;
	return at < t->size ? (int)characters_class(t->characters, t->s + at, n) : END;
}

/* Returns the end of the run of characters of a class that begins at `at`. A run ends after `most`
 * characters at the latest. */
static size_t end_of_run(const struct text *t, size_t at, int class, size_t most)
{
	size_t n;

	for (; most > 0 && class_at(t, at, &n) == class; most--)
		at += n;
	return at;
}

static bool is_newline(const struct text *t, size_t at)
{
	return at < t->size && (t->s[at] == '\n' || t->s[at] == '\r');
}

/* Returns the length of the contraction with which the text begins ('s, 't, 'm, 'd, 're, 've, 'll),
 * or 0. With any_case, letters of any case count, and the long s counts as an s, as in Unicode. */
static size_t contraction(const struct text *t, bool any_case)
{
	static const char *const pairs[] = { "re", "ve", "ll" };
	uint8_t fold = any_case ? 0x20 : 0;
	const uint8_t *s = (const uint8_t *)t->s;

	if (t->size < 2 || s[0] != '\'')
		return 0;
	if (s[1] > 0 && s[1] < 0x80 && strchr("stmd", s[1] | fold))
		return 2;
	if (t->size < 3)
		return 0;
	if (any_case && s[1] == 0xc5 && s[2] == 0xbf)
		return 3;
	for (int i = 0; i < 3; i++)
		if ((s[1] | fold) == pairs[i][0] && (s[2] | fold) == pairs[i][1])
			return 3;
	return 0;
}

/* Returns the end of a run of white space. With `lines`, a run that has newlines ends after its
 * last newline. Any other run leaves its last character to the word that follows, unless the run
 * ends the text or is a single character. */
static size_t white_space(const struct text *t, bool lines)
{
	size_t at = 0, last = 0, line = 0, n;

	while (class_at(t, at, &n) == CHARACTER_SPACE) {
		last = at;
		at += n;
		if (is_newline(t, last))
			line = at;
	}
	if (lines && line > 0)
		return line;
	return at == t->size || last == 0 ? at : last;
}

static size_t gpt2_word(const struct text *t)
{
	size_t n, space = t->s[0] == ' ' ? 1 : 0;
	int class = class_at(t, space, &n);

	if (class == END || class == CHARACTER_SPACE)
		return white_space(t, false);
	return end_of_run(t, space, class, SIZE_MAX);
}

/* Returns the end of a word. A word of letters includes the character before it, unless this
 * character is a number or a newline. A word of other characters includes one space before it and
 * the newlines after it. */
static size_t later_word(const struct split_rule *rule, const struct text *t)
{
	size_t n, m, space = t->s[0] == ' ' ? 1 : 0;
	int class = class_at(t, 0, &n);

	if (class == CHARACTER_LETTER)
		return end_of_run(t, 0, CHARACTER_LETTER, SIZE_MAX);
	if (class == CHARACTER_NUMBER)
		return end_of_run(t, 0, CHARACTER_NUMBER, rule->digits);
	if (!is_newline(t, 0) && class_at(t, n, &m) == CHARACTER_LETTER)
		return end_of_run(t, n, CHARACTER_LETTER, SIZE_MAX);
	if (class_at(t, space, &m) != CHARACTER_OTHER)
		return white_space(t, true);
	n = end_of_run(t, space, CHARACTER_OTHER, SIZE_MAX);
	while (is_newline(t, n))
		n++;
	return n;
}

size_t split_word(const struct split_rule *rule, const struct characters *characters,
		  const char *text, size_t size)
{
	struct text t = { characters, text, size };
	bool later = rule->digits > 0;
	size_t n = contraction(&t, later);

	if (n)
		return n;
	return later ? later_word(rule, &t) : gpt2_word(&t);
}
