/* skippipe generate: continues a prompt, token by token. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistr.h>

#include "base/process/output.h"
#include "base/rng.h"
#include "model/cpu/decoder.h"
#include "model/files/generation.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"
#include "model/program/omission.h"
#include "model/text/sample.h"
#include "model/text/tokenizer.h"

static const char intro[] =
	"usage: skippipe generate MODEL [options]\n"
	"\n"
	"Continues the text. Without --tokenizer the tokenizer beside the model is used; if there\n"
	"is none, tokens are bytes. A text ends with the model's eos_token_id\n"
	"(generation_config.json or config.json) or the tokenizer's eos_token. If there is\n"
	"neither, the token that begins the next document ends it.\n"
	"\n";

struct generation {
	struct options o;
	struct trainer *trainer;
	struct tokenizer *tokenizer;
	struct decoder *decoder;
	struct sampler *sampler;
	int32_t *tokens; /* tokens in the window, with room for `length` */
	uint32_t n, length;
	/* Bytes of the window's text that were printed, and bytes that wait to be printed. */
	size_t printed, waiting;
	const float *logits;
	int32_t *ends; /* the n_ends tokens that end a text */
	size_t n_ends;
};

static int read_token(struct generation *s, int32_t token)
{
	s->tokens[s->n++] = token;
	return decoder_next(s->decoder, token, &s->logits);
}

/* Marks the window's text as printed, except for an incomplete character at its end. */
static int skip_window(struct generation *s)
{
	char *text;
	size_t size;
	int rc = tokenizer_decode(s->tokenizer, s->tokens, s->n, &text, &size);

	if (rc)
		return rc;
	free(text);
	s->printed = size > s->waiting ? size - s->waiting : 0;
	return 0;
}

/* Drops the first half of the window when the context is full. The model then reads the second half
 * again. */
static int slide_window(struct generation *s)
{
	uint32_t half = s->n / 2;
	int rc = 0;

	memmove(s->tokens, s->tokens + s->n - half, half * sizeof(*s->tokens));
	s->n = 0;
	decoder_rewind(s->decoder, 0);
	for (uint32_t i = 0; i < half && !rc; i++)
		rc = read_token(s, s->tokens[i]);
	return rc ? rc : skip_window(s);
}

/* Writes text to the output. Bytes that belong to no character become U+FFFD. */
static int write_characters(const char *text, size_t size)
{
	while (size > 0) {
		ucs4_t c;
		size_t n = (size_t)u8_mbtouc(&c, (const uint8_t *)text, size);

		if (c == 0xfffd)
			fputs("\xef\xbf\xbd", stdout);
		else
			fwrite(text, 1, n, stdout);
		text += n;
		size -= n;
	}
	return output_flush(NULL);
}

/* Prints what the last token adds to the text of the window. A token by itself may be a part of a
 * character, or may begin with a space that the text does not have. A part of a character waits for
 * the next token, unless the text ends. */
static int print_last(struct generation *s, bool ends)
{
	char *text;
	size_t size, shown;
	int rc = tokenizer_decode(s->tokenizer, s->tokens, s->n, &text, &size);

	if (rc)
		return rc;
	shown = ends ? size : tokenizer_shown(text, size);
	if (shown > s->printed) {
		rc = write_characters(text + s->printed, shown - s->printed);
		s->printed = shown;
	}
	s->waiting = size > s->printed ? size - s->printed : 0;
	free(text);
	return rc;
}

/* Reads the prompt. Keeps as many tokens of its end as the window has room for. */
static int read_prompt(struct generation *s, struct error *err)
{
	const struct generate_options *o = &s->o.generate;
	int32_t *tokens, begin = tokenizer_begin(s->tokenizer);
	const char *prompt = o->prompt ? o->prompt : begin >= 0 ? "" : "\n";
	size_t n, from;
	int rc = tokenizer_encode(s->tokenizer, prompt, strlen(prompt), &tokens, &n);

	if (rc == -EINVAL)
		return error_set(err, rc,
				 "--prompt: byte %zu: not UTF-8, or the tokenizer has no token for "
				 "it",
				 n + 1);
	if (rc)
		return error_set(err, rc, "--prompt: %s", strerror(-rc));
	from = n >= s->length - 1 ? n - (s->length - 2) : 0;
	if (begin >= 0)
		rc = read_token(s, begin);
	for (size_t i = from; i < n && !rc; i++)
		rc = read_token(s, tokens[i]);
	free(tokens);
	fputs(prompt, stdout);
	if (!rc)
		rc = skip_window(s);
	return rc ? error_set(err, rc, "the prompt cannot be read: %s", strerror(-rc)) : 0;
}

/* Finds the tokens that end a text. Some models end a turn with the tokenizer's eos_token, although
 * generation_config.json names only another token. */
static int find_ends(struct generation *s, const char *model, struct error *err)
{
	int32_t end = tokenizer_end(s->tokenizer);
	int rc = generation_ends(model, &s->ends, &s->n_ends, err);

	if (!rc && s->n_ends == 0 && end < 0)
		end = tokenizer_document(s->tokenizer);
	if (!rc && end >= 0)
		s->ends[s->n_ends++] = end;
	if (s->o.generate.ignore_eos)
		s->n_ends = 0;
	return rc;
}

static bool is_end(const struct generation *s, int32_t token)
{
	for (size_t i = 0; i < s->n_ends; i++)
		if (s->ends[i] == token)
			return true;
	return false;
}

static int continue_text(struct generation *s, struct error *err)
{
	const struct generate_options *o = &s->o.generate;
	struct rng r;
	int32_t token;
	int rc = read_prompt(s, err);

	if (rc)
		return rc;
	if (s->n == 0)
		return error_set(err, -EINVAL,
				 "an empty --prompt: there is nothing to continue");
	rng_init(&r, s->o.seed);
	for (uint32_t i = 0; i < o->tokens && !rc && !interrupt_seen(); i++) {
		if (s->n == s->length)
			rc = slide_window(s);
		if (rc)
			break;
		token = sampler_draw(s->sampler, s->logits, o->temperature, o->top_p, &r);
		if (token < 0) {
			putchar('\n');
			return error_set(err, -ERANGE,
					 "the logits are not finite: the model's weights are "
					 "damaged, or too large for fp32");
		}
		if (is_end(s, token))
			break;
		rc = read_token(s, token);
		if (!rc)
			rc = print_last(s, false);
	}
	if (!rc)
		rc = print_last(s, true);
	putchar('\n');
	return rc ? error_set(err, rc, "decoding failed: %s", strerror(-rc)) : 0;
}

static int open_decoder(struct generation *s, struct error *err)
{
	uint32_t path[1024], n = 0;
	int rc = omission_check_exit(&s->o, err);

	if (rc)
		return rc;
	for (uint32_t i = 1; i < s->o.config.n_stages; i++)
		if (!s->o.exit_after || i <= s->o.exit_after)
			path[n++] = i;
	return decoder_new(&s->decoder, trainer_stages(s->trainer), path, n, s->length, err);
}

static int run_generate(struct generation *s, struct error *err)
{
	const char *model = s->o.files.at[0];
	int rc = load_model_folder(&s->trainer, model, &s->o, 0, err);

	if (!rc)
		rc = load_tokenizer(&s->tokenizer, model, &s->o, err);
	if (!rc)
		rc = find_ends(s, model, err);
	if (rc)
		return rc;
	s->length = s->o.config.context;
	if (s->length < 4)
		return error_set(err, -EINVAL,
				 "the model's context is %" PRIu32 ", expected 4 or more",
				 s->length);
	rc = open_decoder(s, err);
	if (rc)
		return rc;
	s->sampler = sampler_new(tokenizer_vocab(s->tokenizer));
	s->tokens = malloc(s->length * sizeof(*s->tokens));
	if (!s->sampler || !s->tokens)
		return error_set(err, -ENOMEM, "no memory");
	return continue_text(s, err);
}

int command_generate(int argc, char **argv)
{
	struct generation s = { .trainer = NULL };
	struct error err = { "" };
	int rc = options_parse(&s.o, argc, argv, intro);

	if (!rc && s.o.files.n != 1)
		rc = options_refuse_words(argv[0], intro);
	interrupt_catch();
	if (!rc) {
		rc = run_generate(&s, &err);
		if (rc)
			rc = options_fail("generate", &err);
		else if (interrupt_seen())
			rc = EXIT_INTERRUPTED;
	}
	free(s.tokens);
	free(s.ends);
	sampler_free(s.sampler);
	decoder_free(s.decoder);
	trainer_free(s.trainer);
	tokenizer_free(s.tokenizer);
	options_fini(&s.o);
	return rc < 0 ? 0 : rc;
}
