/* origin.h - the weights with which a run begins, if they are not made from the seed: a skippipe
 * checkpoint, cut into any number of stages, or a folder of the transformers library.
 *
 * The controller cuts the model into the files of its stages, RUN/checkpoints/00000000, and sends
 * them to the agents. Verify begins with the same files. The run's record contains the description
 * in struct origin.
 */
#ifndef MODEL_ORIGIN_H
#define MODEL_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/route.h"
#include "model/config.h"

struct origin {
	/* Folder from which the model was read; "": the run begins with the seed's weights. */
	char folder[1024];
	uint64_t steps;    /* number of AdamW steps in which the weights were trained */
	uint64_t position; /* number of microbatches that the weights were trained on */
	uint64_t corpus;   /* hash of the corpus that the weights were trained on; 0: unknown */
	uint64_t seed;     /* seed from which the weights were first made; 0: unknown */
	uint32_t n_stages;
	uint64_t hashes[ROUTE_HOPS]; /* hash of each stage's file */
};

/* Reads the folder's configuration. *trained: the folder has a skippipe checkpoint. Its
 * hyperparameters are then read into r, and its moments are used by the run. Otherwise r stays
 * unchanged. The caller chooses c->n_stages. -ENOENT: the folder has neither config.json nor
 * manifest.json; other errors name file and key. */
int origin_read(struct origin *o, const char *folder, struct model_config *c,
		struct hyperparameters *r, bool *trained, struct error *err);
/* Cuts the model into the files of iteration 0 of a run, one for each stage of c, and sets n_stages
 * and hashes. Needs memory for one stage. */
int origin_cut(struct origin *o, const struct model_config *c, const char *run, struct error *err);
/* The run and the iteration whose checkpoint receives the files of the new stages. */
struct origin_cut_to {
	const char *run;
	uint64_t iteration;
	uint64_t *hashes, *bytes; /* hash and size of each stage's file; room for ROUTE_HOPS */
};
/* Cuts the model of a folder, with its moments, into one file for each stage of c. */
int origin_cut_folder(const char *folder, const struct model_config *c,
		      const struct origin_cut_to *to, struct error *err);
/* Repeats origin_cut, and compares the files with the hashes of o. -ESTALE: o->folder has
 * changed. */
int origin_cut_again(const struct origin *o, const struct model_config *c, const char *run,
		     struct error *err);

/* Returns the description as JSON, which the caller frees; NULL if memory runs out. */
char *origin_print(const struct origin *o);
/* Parses what origin_print has written. -EINVAL: the text is something else. */
int origin_parse(struct origin *o, const char *text, struct error *err);

#endif
