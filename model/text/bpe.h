/* bpe.h - byte-level BPE, the tokenizers of GPT-2, LLaMA 3 and Qwen, from a tokenizer.json.
 *
 * The tokens are the same as those of the tokenizers package. Text is cut at added tokens, put into
 * normal form C if the file says so, and cut into words (split.h). In each word, the adjacent pair
 * with the lowest rank is joined, and this is repeated until no pair has a rank (Sennrich et al.,
 * 2016). bpe_open (bpe_json.c) reads a tokenizer.json. It builds the tokenizer with bpe_new and the
 * bpe_add and bpe_set functions below.
 */
#ifndef MODEL_BPE_H
#define MODEL_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/text/beside.h"
#include "model/text/split.h"

struct bpe; /* opaque */

enum { BPE_TOKENS_MOST = 1 << 22 };

struct bpe_rules {
	const struct split_rule *split;
	/* How digits are separated from other text before words are cut: not at all, each digit by
	 * itself, or each run of digits. */
	enum { BPE_NO_DIGITS, BPE_EACH_DIGIT, BPE_RUNS_OF_DIGITS } digits;
	bool prefix_space;  /* a space is put before a text that does not begin with one */
	bool nfc;           /* the text is normalised to form C */
	bool ignore_merges; /* a word that is a token becomes this token, without merging */
};

/* Reads json, the bytes of a tokenizer.json; path: for error messages. beside: settings from the
 * files beside it, or NULL. -EINVAL: a key is damaged. -ENOTSUP: a key changes the tokens in a way
 * that is not supported. The error names the key. */
int bpe_open(struct bpe **out, const char *json, size_t size, const char *path,
	     const struct beside *beside, struct error *err);
void bpe_free(struct bpe *b); /* NULL is allowed */

/* Makes an empty tokenizer. tokens: a number above all ids, at most BPE_TOKENS_MOST. */
struct bpe *bpe_new(uint32_t tokens);
void bpe_set_rules(struct bpe *b, const struct bpe_rules *rules);
/* Adds a token, written in GPT-2's alphabet, which has a character for each byte. A token with a
 * character outside this alphabet never matches text. -EEXIST: the id is taken. */
int bpe_add_token(struct bpe *b, uint32_t id, const char *name);
/* Adds a pair to be joined, with its rank. Pairs that cannot occur in a text are ignored. */
void bpe_add_merge(struct bpe *b, uint32_t rank, uint32_t left, uint32_t right, uint32_t joined);

/* A token at which the text is cut before it is tokenized in any other way. lstrip, rstrip: the
 * token includes white space on its left, or on its right. `special`: decoding omits the token.
 * `normalized`: the token is searched for after normalisation. The id may be that of an existing
 * token. */
struct bpe_added {
	const char *content; /* copied */
	uint32_t id;
	bool lstrip, rstrip, special, normalized;
};
void bpe_add_added(struct bpe *b, const struct bpe_added *added);

/* Set the token that begins a text, and the token that begins a document in a corpus; -1: none. */
void bpe_set_begin(struct bpe *b, int32_t id);
void bpe_set_document(struct bpe *b, int32_t id);
/* Sets the token that ends a text. -1: none. */
void bpe_set_end(struct bpe *b, int32_t id);

uint32_t bpe_vocab(const struct bpe *b);
int32_t bpe_begin(const struct bpe *b); /* the token that begins a text; -1: none */
int32_t bpe_document(const struct bpe *b); /* the token that begins a document; -1: none */
int32_t bpe_end(const struct bpe *b);      /* the token that ends a text; -1: none */
/* Returns true if there are exactly 256 tokens and each is the byte with the value of its id. */
bool bpe_is_bytes(const struct bpe *b);

/* Encode and decode; the caller frees the results. -ENOMEM. -EINVAL: the text is not UTF-8 or has a
 * byte without a token, or a token does not exist. If a byte is invalid or has no token, bpe_encode
 * sets *n to the byte's index. If only the normalised text has this byte, *n is `size`. */
int bpe_encode(struct bpe *b, const char *text, size_t size, int32_t **tokens, size_t *n);
int bpe_decode(const struct bpe *b, const int32_t *tokens, size_t n, char **text, size_t *size);

#endif
