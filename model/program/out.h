/* out.h - checks the place to which a verb writes. No file of the user is overwritten, and an error
 * is reported at the start instead of after hours of work. */
#ifndef MODEL_PROGRAM_OUT_H
#define MODEL_PROGRAM_OUT_H

#include "base/error.h"
#include "model/files/model_folder.h"
#include "model/program/options.h"

struct out_place {
	int lock;      /* descriptor that locks the folder; -1: none */
	bool replaces; /* the folder has another model, which the new model replaces */
};

#define OUT_PLACE_NONE ((struct out_place){ .lock = -1 })

/* Makes the folder o->out if it is missing, and locks it for a model of this kind. The caller must
 * call out_release when the model is written, and also after an error. -EBUSY: another process has
 * the lock. -EEXIST: the folder already has a model that may not be replaced. A model of this kind
 * may be replaced with o->force, or if it is the checkpoint from which the training continues. */
int out_claim(struct out_place *p, const struct options *o, enum model_kind kind,
	      struct error *err);
void out_release(struct out_place *p);

/* Refuses to replace an existing file o->out, unless o->force is set. -EEXIST. */
int out_refuse_existing(const struct options *o, struct error *err);

#endif
