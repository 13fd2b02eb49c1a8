/* config.h - the shape of a model, how the model is cut into stages, and the hyperparameters of its
 * training.
 *
 * A model is a LLaMA: RMSNorm, rotary positions, causal attention with grouped key/value heads,
 * SwiGLU. The frequencies of the rotary positions may be scaled, as in models whose context was
 * extended. Stage 0 holds the embedding, the first layers, the final norm and the head; every other
 * stage holds consecutive layers (cut.h). Plain data: copied freely, no pointers.
 *
 * As JSON ("format": "skippipe.model/1") a config is sent to agents and stored in checkpoints.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/route.h"
#include "model/adamw.h"
#include "model/cut.h"

struct model_config {
	uint32_t vocab;      /* number of different tokens; 256 if tokens are bytes */
	uint32_t dim;        /* C, width of the residual stream */
	uint32_t n_layers;   /* number of layers in all stages */
	uint32_t n_heads;    /* number of query heads; the head size dim / n_heads must be even */
	uint32_t n_kv_heads; /* number of key/value heads, which divides n_heads */
	uint32_t ffn_dim;    /* F, inner width of the SwiGLU */
	uint32_t context;    /* longest sequence, in tokens */
	/* Number of stages, 1 .. n_layers + 1. With n_layers + 1 stages, stage 0 has no layer.
	 */
	uint32_t n_stages;
	float rope_theta;
	float norm_eps;
	float init_std; /* standard deviation of the initial matrices */
	bool tied;      /* the head uses the embedding's weights */
	/* RoPE scaling, which divides frequencies by rope_factor; 0: plain RoPE. If the other three
	 * fields are 0, all frequencies are divided. Otherwise, as in Llama 3.1, the turns that a
	 * frequency makes within rope_original_context are counted. A frequency with more than
	 * rope_high_freq_factor turns stays as it is. A frequency with fewer than
	 * rope_low_freq_factor turns is divided. Frequencies between these limits are
	 * interpolated. */
	float rope_factor;
	float rope_low_freq_factor, rope_high_freq_factor;
	uint32_t rope_original_context;
	/* 0: the model is trained. Otherwise the model is for a rehearsal: its tensors have 1 /
	 * rehearsal of the real bytes, and only the device "pretend" accepts it
	 * (model/rehearsal). */
	uint32_t rehearsal;
	/* Numbers of layers of the stages. n == 0: the numbers are as equal as possible; otherwise
	 * n is n_stages. Only model_cut sets this field. */
	struct stage_layers stage_layers;
};

/* How the learning rate falls after the warm-up, from the peak to final_lr. WSD (warm-up, stable,
 * decay) keeps the peak, and lowers the rate only in the last part of the iterations. */
enum lr_schedule {
	LR_COSINE, /* half a period of a cosine over all iterations */
	LR_LINEAR, /* a straight line over all iterations */
	LR_WSD,    /* a straight line over the last part */
	/* As LR_WSD, but the curve is 1 - sqrt(x) instead of 1 - x, where x goes from 0 to 1 in the
	 * last part. */
	LR_WSD_SQRT,
};

#define HYPER_BATCH_MOST (1 << 16) /* limit of the sequences in a microbatch */
struct hyperparameters {
	uint32_t batch;      /* number of sequences in a microbatch, B */
	uint32_t sequence;   /* number of tokens in a sequence, T, at most `context` */
	struct adamw adamw;  /* lr is the peak learning rate */
	float clip;          /* limit of the averaged gradient's global norm; 0: no clipping */
	uint32_t warmup;     /* number of iterations of linear warm-up */
	uint32_t iterations; /* iteration at which the rate is final_lr; 0: the rate never falls */
	float final_lr;      /* learning rate at the end, as a fraction of the peak */
	uint32_t schedule;   /* a value of enum lr_schedule */
	/* For the WSD schedules: length of the last part, in which the rate falls. A value below 1
	 * is a share of the iterations, any other value a number of iterations. 0: HYPER_DECAY. */
	float decay;
};

#define HYPER_DECAY 0.2 /* share of a WSD schedule's iterations in which the rate falls */

/* Checks the config. Returns 0, or -EINVAL with a message that names the field and the expected
 * value. */
int model_config_check(const struct model_config *c, struct error *err);
/* Checks the hyperparameters of this model; errors as for model_config_check. */
int hyper_check(const struct hyperparameters *r, const struct model_config *c, struct error *err);

/* Gives the preset "tiny" (the demo), "30m", "124m", "500m", "1.5b" or "7b". Either output may be
 * NULL. -ENOENT: no such preset; the message lists them. */
int model_preset(const char *name, struct model_config *c, struct hyperparameters *r,
		 struct error *err);
/* Returns the name of preset i; NULL after the last. For tests, which try all presets. */
const char *model_preset_name(size_t i);

struct json_t; /* a JSON value of the library jansson */

/* Reads a document that model_config_print has written. If the document has no hyperparameters, r
 * stays unchanged. r may be NULL. `where` begins every message. Unknown keys are refused by name.
 * -EINVAL, -ENOMEM. */
int model_config_parse(struct model_config *c, struct hyperparameters *r, const char *text,
		       size_t size, const char *where, struct error *err);
/* Reads a document as model_config_parse does, but from a parsed object. Messages begin with the
 * key. */
int model_config_read(struct model_config *c, struct hyperparameters *r, const struct json_t *root,
		      struct error *err);
/* Returns the document in one line, which the caller frees; NULL if memory runs out. r may be
 * NULL. */
char *model_config_print(const struct model_config *c, const struct hyperparameters *r);

/* Sets one field by its name ("dim", "lr", ...) from a text: a number, true, false or a name. c may
 * be NULL: only the hyperparameters are set. Does not check the model as a whole. -EINVAL: there is
 * no such field, or the value has the wrong type. */
int model_config_set(struct model_config *c, struct hyperparameters *r, const char *name,
		     const char *text, struct error *err);

/* Returns the number of floats of one attention head. */
uint32_t model_head_size(const struct model_config *c);
/* Returns the angle in radians by which each position turns pair i < D / 2 of a head, with RoPE
 * scaling. */
double model_frequency(const struct model_config *c, size_t i);
/* Computes the cosines and sines (T, D / 2) of rotary positions 0 .. T - 1 in double precision. */
void model_angles(const struct model_config *c, size_t positions, float *cosines, float *sines);

/* Makes the learning rate's schedule end when the training ends, unless this would change rates
 * that were already used. iterations: length of the training, 0: unknown; done: number of completed
 * iterations. In a cosine or linear schedule all rates depend on the end. Such a schedule therefore
 * changes only if it has no end yet and no iteration is done. A WSD schedule changes unless its
 * decay has begun. If the decay would begin before `done`, the decay is shortened to the iterations
 * that are left. Nothing changes if no iteration is left. */
void hyper_end_with(struct hyperparameters *r, uint64_t done, uint64_t iterations);
const char *hyper_schedule_name(const struct hyperparameters *r);
/* Returns the last iteration before the rate begins to fall; UINT64_MAX: the rate never falls. */
uint64_t hyper_decay_begin(const struct hyperparameters *r);
/* Returns the learning rate of iteration t, counted from 1. It depends on t and the hyperparameters
 * alone, and stays the same after the hyperparameters' last iteration. */
float hyper_lr(const struct hyperparameters *r, uint64_t t);
/* Converts a position in the text, for a training whose hyperparameters change from `was` to `now`.
 * Microbatches of `was` and of `now` may have different numbers of tokens. position: number of
 * microbatches of `was` that the training has read. Returns this position in microbatches of `now`,
 * rounded up, so that no text is read twice. */
uint64_t hyper_position(const struct hyperparameters *was, const struct hyperparameters *now,
			uint64_t position);
/* Returns the factor by which summed gradients are multiplied. The factor 1 / divisor turns the sum
 * into an average. If this average's norm, sqrt(sum_squares) / divisor, would exceed r->clip, the
 * returned factor is smaller, so that the norm is r->clip. */
float hyper_scale(const struct hyperparameters *r, double sum_squares, double divisor);
/* Returns the factor of one stage's summed gradient: `scale` divided by the stage's visits. If
 * `visits` has no number for the stage, or the number 0, returns `scale` itself. */
float hyper_stage_scale(float scale, const struct stage_visits *visits, uint32_t stage);

#endif
