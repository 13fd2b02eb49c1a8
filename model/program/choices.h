/* choices.h - measures how often a model chooses the true continuation of a text from several
 * choices. */
#ifndef MODEL_CHOICES_H
#define MODEL_CHOICES_H

#include "base/error.h"
#include "model/program/omission.h"
#include "model/program/options.h"
#include "model/trainer.h"

/* opaque: a file of questions (model/text/question.h), and memory for one question. */
struct choices;

/* Reads the file o->eval.choices, and checks every line. `trainer` has loaded the model of the
 * folder o->files.at[0]. o and trainer are borrowed until choices_free. -EINVAL: a line is no
 * question, or a choice is longer than the model's sequence; the error names the line. -EFBIG: the
 * file is too large. */
int choices_new(struct choices **out, const struct options *o, struct trainer *trainer,
		struct error *err);
void choices_free(struct choices *c); /* NULL is allowed */

/* Answers every question and prints the accuracy with its 95% interval (Wilson, 1927). m: the
 * stages that are skipped; random stages are drawn again for each question. what: a name for m in
 * the output. -ERANGE: a loss is not finite. EXIT_INTERRUPTED after a signal; other errors are
 * those of the trainer. */
int choices_show(struct choices *c, const char *what, const struct omission *m);

#endif
