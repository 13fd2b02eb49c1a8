/* Divides layers into stages. All other code calls these functions to find the layers of a stage.
 *
 * An equal cut has only one form, stage_layers.n == 0. Models with the same cut therefore have
 * equal configs and equal documents. A file without the key stage_layers means an equal cut. */
#include "model/cut.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"

enum { LAYERS_MOST = 1024 }; /* limit of layers, as for n_layers in config.c */

/* Time to look up one number of the embedding, in floating-point operations. Because of this time,
 * the work of stage 0 is more than 0 even if stage 0 has no layers. */
static const double lookup_flop = 32;

int stage_layers_parse(struct stage_layers *out, const char *option, const char *text,
		       struct error *err)
{
	struct stage_layers read = { 0 };
	const char *at = text;

	for (;;) {
		char *end;
		unsigned long v = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || v > LAYERS_MOST || (*end && *end != ','))
			return error_set(err, -EINVAL,
					 "%s %s: expected the number of layers of each stage, "
					 "as 0,5,3",
					 option, text);
		if (read.n == ROUTE_HOPS)
			return error_set(err, -EINVAL, "%s %s: expected at most %d stages", option,
					 text, ROUTE_HOPS);
		read.of[read.n++] = (uint16_t)v;
		if (!*end)
			break;
		at = end + 1;
	}
	*out = read;
	return 0;
}

static void format_layers(const struct stage_layers *cut, const char *between, char *out,
			  size_t room)
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t s = 0; s < cut->n && at < room; s++)
		at += (size_t)snprintf(out + at, room - at, "%s%d", s ? between : "", cut->of[s]);
}

static int check_layers(const struct stage_layers *cut, uint32_t n_layers, const char *option,
			struct error *err)
{
	char text[STAGE_LAYERS_TEXT];
	uint32_t sum = 0;

	if (cut->n > ROUTE_HOPS)
		return error_set(err, -EINVAL, "%s: expected at most %d stages", option,
				 ROUTE_HOPS);
	for (uint32_t s = 0; s < cut->n; s++) {
		if (s > 0 && cut->of[s] == 0)
			return error_set(err, -EINVAL,
					 "%s: stage %" PRIu32
					 " has no layers: only stage 0 may have none",
					 option, s);
		sum += cut->of[s];
	}
	if (sum == n_layers)
		return 0;
	format_layers(cut, " + ", text, sizeof(text));
	return error_set(err, -EINVAL,
			 "%s: %s is %" PRIu32 " layers, but the model has %" PRIu32 " (n_layers)",
			 option, text, sum, n_layers);
}

/* Returns true if the cut gives the stages the same numbers of layers as an equal cut. */
static bool is_equal(const struct stage_layers *cut, const struct model_config *c)
{
	struct model_config equal = *c;

	equal.stage_layers.n = 0;
	equal.n_stages = cut->n;
	for (uint32_t s = 0; s < cut->n; s++)
		if (cut->of[s] != model_layer_count(&equal, s))
			return false;
	return true;
}

int model_cut(struct model_config *c, const struct stage_layers *cut, const char *option,
	      struct error *err)
{
	int rc = cut->n ? check_layers(cut, c->n_layers, option, err) : 0;

	if (rc || cut->n == 0)
		return rc;
	c->n_stages = cut->n;
	c->stage_layers = is_equal(cut, c) ? (struct stage_layers){ 0 } : *cut;
	return 0;
}

void model_cut_equally(struct model_config *c, uint32_t n_stages)
{
	if (n_stages != c->n_stages)
		c->stage_layers = (struct stage_layers){ 0 };
	c->n_stages = n_stages;
}

int model_cut_check(const struct model_config *c, struct error *err)
{
	if (c->stage_layers.n == 0)
		return 0;
	if (c->stage_layers.n != c->n_stages)
		return error_set(err, -EINVAL,
				 "stage_layers has %" PRIu32 " stages, n_stages is %" PRIu32,
				 c->stage_layers.n, c->n_stages);
	return check_layers(&c->stage_layers, c->n_layers, "stage_layers", err);
}

int model_cut_check_stack(const struct model_config *c, struct error *err)
{
	if (c->stage_layers.n == 0 || c->stage_layers.of[0] > 0)
		return 0;
	return error_set(err, -EINVAL,
			 "--stack, --recipe: other stages would start as copies of stage 0, which "
			 "has no layers: give it some (--cut)");
}

uint32_t model_first_layer(const struct model_config *c, uint32_t stage)
{
	uint32_t first = 0;

	if (c->stage_layers.n == 0)
		return (uint32_t)((uint64_t)stage * c->n_layers / c->n_stages);
	for (uint32_t s = 0; s < stage; s++)
		first += c->stage_layers.of[s];
	return first;
}

uint32_t model_layer_count(const struct model_config *c, uint32_t stage)
{
	return model_first_layer(c, stage + 1) - model_first_layer(c, stage);
}

double model_stage_work(const struct model_config *c, uint32_t stage)
{
	double dim = c->dim, kv = (double)c->n_kv_heads * model_head_size(c);
	double layer = 2 * dim * (2 * dim + 2 * kv + 3.0 * c->ffn_dim);
	double layers = model_layer_count(c, stage);

	if (c->stage_layers.n == 0)
		return 1;
	if (stage == 0)
		layers += lookup_flop * dim / layer;
	return layers * c->n_stages / c->n_layers;
}

void model_cut_format(const struct model_config *c, char *out)
{
	struct stage_layers cut = { .n = c->n_stages <= ROUTE_HOPS ? c->n_stages : 0 };

	for (uint32_t s = 0; s < cut.n; s++)
		cut.of[s] = (uint16_t)model_layer_count(c, s);
	format_layers(&cut, ",", out, STAGE_LAYERS_TEXT);
}

void model_cut_append(const struct model_config *c, char *text, size_t room)
{
	char cut[STAGE_LAYERS_TEXT];
	size_t n = strlen(text);

	model_cut_format(c, cut);
	if (c->stage_layers.n > 0 && n + strlen(", layers ") + strlen(cut) < room)
		snprintf(text + n, room - n, ", layers %s", cut);
}
