/* options.h - the command lines of skippipe-model. */
#ifndef MODEL_PROGRAM_OPTIONS_H
#define MODEL_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/config.h"
#include "model/trainer.h"
#include "model/program/visits.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, OPTION_ROWS_MOST = 80 };

/* Words of the command line that are no options, borrowed from argv. */
struct words {
	char *at[256]; /* the n words */
	uint32_t n;
};

struct eval_options {
	const char *omit, *logits, *choices;
	float omit_fraction;
	bool table;
	/* Set by the verb eval, not by an option: a microbatch has one sequence in place of the
	 * configured number. */
	bool one_sequence;
};

struct generate_options {
	const char *prompt;
	bool ignore_eos;
	uint32_t tokens;
	float temperature, top_p;
};

/* Options of `skippipe train` alone. */
struct train_options {
	/* Path of a file with a plan, or with the plans of phases; NULL: paths are drawn. */
	const char *plan;
	uint32_t checkpoint_every, validate_every;
	const char *recipe;        /* name of the recipe (base/skip_schedule.h); NULL: none */
	const char *skip_schedule; /* a list of skip ratios as text; NULL: a single ratio */
	bool stack;      /* newly visited stages start from a trained stage */
	bool new_corpus; /* the user knows that the corpus differs from the checkpoint's */
	/* The training ends after this number of rejected iterations in a row. */
	uint32_t skip_bad_steps;
	enum tensor_format wire, sum_wire;
};

/* Records which parts --set has changed. */
struct named_fields {
	/* Parts that the command line has set. stages: n_stages or --cut; shape: other fields of
	 * the model; hyper: hyperparameters. */
	bool stages, shape, hyper;
	bool length;             /* the command line has set `iterations` of the hyperparameters */
	struct stage_layers cut; /* value of --cut; n == 0: not given */
	uint32_t n_stages;       /* value of --set n_stages or of --skip K/STAGES; 0: not given */
};

/* A change of the model that the command line asks for. */
struct model_change {
	/* FIELD=VALUE of --set, borrowed; NULL: the change is an equal cut into n_stages. */
	const char *set;
	uint32_t n_stages; /* number of stages of --skip K/STAGES */
};

struct model_changes {
	struct model_change *list; /* the n changes, in the order of the command line */
	uint32_t n;
};

struct options {
	/* The model: a preset or a file, changed by --set; or a checkpoint. */
	const char *preset, *model_file, *from;
	struct model_config config;
	struct hyperparameters hyper;
	struct named_fields set;
	struct model_changes changes;

	char **corpus; /* the n_corpus paths of the corpus, borrowed from argv */
	uint32_t n_corpus;
	const char *out, *tokenizer, *checkpoint_from;
	struct visit_rules visits;
	enum grad_norm grad_norm;
	uint32_t iterations, microbatches, threads, batches;
	uint32_t exit_after;
	struct train_options train;
	struct eval_options eval;
	struct generate_options generate;
	uint64_t seed;
	const char *device;
	enum recompute recompute;
	bool jsonl; /* --format jsonl was given */
	bool force, raw;
	bool given[OPTION_ROWS_MOST]; /* for each row of the table: the option was given */
	struct words files; /* arguments that are neither an option nor its value */
};

/* Reads a command line, whose argv[0] is the verb. Config and hyperparameters come from --from,
 * --model or --preset, and are then changed by --set. intro: beginning of the verb's help. Returns
 * 0; the exit status after an error message; or -1 after the help. The caller must call
 * options_fini in all cases. */
int options_parse(struct options *o, int argc, char **argv, const char *intro);
void options_fini(struct options *o);
/* Returns true if the command line contains the option, such as "skip". */
bool options_given(const struct options *o, const char *name);

/* Cuts the model according to --cut, if the command line has this option. -EINVAL: the cut does not
 * fit the model, or another option gives a different number of stages. */
int options_cut(struct options *o, struct error *err);

/* Prints the verb's help as an error, because the command line has too few or too many words.
 * Returns the exit status. */
int options_refuse_words(const char *verb, const char *intro);

/* Prints "skippipe VERB: message" and returns the exit status. */
int options_fail(const char *verb, const struct error *err);

#endif
