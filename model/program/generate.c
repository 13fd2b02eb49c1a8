#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/decoder.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"
#include "model/sample.h"

static const char help[] =
	"usage: skippipe generate MODEL [--prompt TEXT]\n"
	"Continues the text with a byte-level model (vocab 256).\n"
	"  --tokens N          how many (default 200; the text keeps within the context)\n"
	"  --temperature X     0 is the likeliest token each time (default 0.8)\n"
	"  --top-p P           of the likeliest tokens that make up P (default 0.95)\n"
	"  --exit-after S      without the stages after S\n"
	"  --seed N\n";

/* The window slides by half when the context is full: its second half is read again. */
static int slide(struct decoder *d, unsigned char *text, uint32_t *n, const float **logits)
{
	uint32_t half = *n / 2;

	memmove(text, text + *n - half, half);
	*n = half;
	decoder_rewind(d, 0);
	for (uint32_t i = 0; i < half; i++) {
		int rc = decoder_next(d, text[i], logits);

		if (rc)
			return rc;
	}
	return 0;
}

static int continue_text(const struct options *o, struct decoder *d, struct sampler *s,
			 unsigned char *text, uint32_t length)
{
	const char *prompt = o->prompt ? o->prompt : "\n";
	const float *logits = NULL;
	uint32_t n = 0;
	struct rng r;
	int rc = 0;

	rng_init(&r, o->seed);
	if (strlen(prompt) >= length)
		prompt += strlen(prompt) - length + 1;
	for (; prompt[n] && !rc; n++) {
		text[n] = (unsigned char)prompt[n];
		rc = decoder_next(d, text[n], &logits);
	}
	fwrite(text, 1, n, stdout);
	for (uint32_t i = 0; i < o->tokens && !rc && !interrupt_seen(); i++) {
		if (n == length)
			rc = slide(d, text, &n, &logits);
		if (rc)
			break;
		text[n] = (unsigned char)sampler_draw(s, logits, o->temperature, o->top_p, &r);
		putchar(text[n]);
		fflush(stdout);
		rc = decoder_next(d, text[n++], &logits);
	}
	putchar('\n');
	return rc;
}

static int run(struct options *o, struct error *err)
{
	uint32_t path[1024], n = 0, length;
	struct trainer *t = NULL;
	struct decoder *d = NULL;
	struct sampler *s = NULL;
	unsigned char *text = NULL;
	int rc = load_model_folder(&t, o->files[0], o, 0, err);

	if (rc)
		return rc;
	length = o->config.context;
	if (o->config.vocab != 256 || length < 2) {
		rc = error_set(err, -1,
			       "vocab is %" PRIu32 ": only byte-level models can be "
			       "given text",
			       o->config.vocab);
		goto free_all;
	}
	for (uint32_t i = 1; i < o->config.n_stages; i++)
		if (!o->exit_after || i <= o->exit_after)
			path[n++] = i;
	rc = decoder_new(&d, trainer_stages(t), path, n, length, err);
	if (rc)
		goto free_all;
	s = sampler_new(o->config.vocab);
	text = malloc(length);
	if (!s || !text)
		rc = error_set(err, -1, "no memory");
	else if (continue_text(o, d, s, text, length))
		rc = error_set(err, -1, "decoding failed");
free_all:
	free(text);
	sampler_free(s);
	decoder_free(d);
	trainer_free(t);
	return rc;
}

int command_generate(int argc, char **argv)
{
	struct options o;
	struct error err = { "" };
	int rc = options_parse(&o, argc, argv, help);

	if (!rc && o.n_files != 1) {
		fputs(help, stderr);
		rc = EXIT_USAGE;
	}
	interrupt_catch();
	if (!rc) {
		rc = run(&o, &err);
		if (rc)
			rc = options_fail("generate", &err);
		else if (interrupt_seen())
			rc = EXIT_INTERRUPTED;
	}
	options_fini(&o);
	return rc < 0 ? 0 : rc;
}
