/* recut_record.h - the record of a run after a change to other stages: model, cluster, the nodes'
 * stages, and the list of the run's parts. All of this is made from the record alone. A controller
 * that resumes the run therefore gets the same result as the controller that took the order. */
#ifndef CONTROLLER_JOINING_RECUT_RECORD_H
#define CONTROLLER_JOINING_RECUT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "wire/msg.h"

struct cluster;
struct recut_order;
struct store;

struct recut_record {
	uint64_t after; /* the last commit before the change; 0: none yet, and the texts are NULL */
	uint32_t n_stages_before;
	struct model_config model; /* the model, divided into the new stages */
	uint32_t n_shards, per_shard, n_parts;
	int stage_of[MSG_NODES]; /* stage of each node; RECUT_AWAY or RECUT_LEFT_OUT: none */
	char *model_text, *cluster_text, *state_text, *options_text, *parts_text;
};

/* Fills *out, which the caller frees with recut_record_free. option: the name with which error
 * messages about the layers begin. Returns 1, with nothing to free, if the run already has the
 * ordered stages. -EINVAL: the run cannot have these stages, for the reason in err. */
int recut_record_make(struct recut_record *out, struct store *s, const struct recut_order *o,
		      const char *option, struct error *err);
void recut_record_free(struct recut_record *r); /* r may be zeroed */

#endif
