/* candidate.h - a way to train a model on a fleet: a cut of the layers into stages, a stage for
 * each node, the size of the microbatches and the formats of tensors. Internal to schedule/fleet/
 * and its callers.
 *
 * To plan a candidate, candidate_cluster makes a cluster of it, in which each node is pinned to
 * its stage. In this cluster, the memory of a node is a number of microbatches: as many as fit into
 * the card's memory beside the node's own stage. The sum of two replicas takes the time of their
 * own stage's gradient. Stages with more layers have more work (cluster.h).
 */
#ifndef SCHEDULE_CANDIDATE_H
#define SCHEDULE_CANDIDATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/model_shape.h"
#include "base/tensor_format.h"
#include "schedule/fleet/fleet.h"
#include "schedule/fleet/stage_cost.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

/* The settings that all candidates of a choice have in common. Pointers are borrowed. */
struct candidate_frame {
	const struct fleet *fleet;
	const struct model_shape *shape;
	int batch; /* number of sequences in an iteration */
	/* A microbatch skips `skip` of every `of_stages` stages. */
	int skip, of_stages;
	struct tensor_formats formats; /* the least exact formats that may be used */
	/* Smallest and largest number of sequences in a microbatch. 0: no limit; the first
	 * candidates then have from a quarter of shape->batch to 8 times shape->batch. */
	int least_sequences, most_sequences;
	/* true: tensors have exactly the formats in `formats`. false: the planner also tries more
	 * exact formats. */
	bool keeps_formats;
	uint64_t seed;
	const atomic_bool *cancel; /* true ends evaluations early; NULL: they are not cancelled */
};

struct candidate {
	int n_stages;
	int layers[CLUSTER_MOST_STAGES]; /* array of n_stages: number of layers of each stage */
	int *stage_of;    /* array of the fleet's n_nodes, owned; -1: the node is left out */
	int sequences;    /* number of sequences in a microbatch */
	int wanted_slots; /* a node with fewer slots than this recomputes blocks */
	struct tensor_formats formats;
	/* Seconds of an iteration with its sums of gradients; INFINITY: not evaluated, or no
	 * plan. */
	double seconds;
	double price_per_hour; /* price of the machines in use; NAN: unknown */
	struct plan *plan;     /* owned; NULL: not evaluated, or there is no plan */
};

void candidate_init(struct candidate *c, const struct candidate_frame *f);
void candidate_fini(struct candidate *c);
/* Copies all fields except the plan, its time and its price. `to` must be initialised. */
void candidate_copy_choice(struct candidate *to, const struct candidate *from,
			   const struct candidate_frame *f);
/* Moves *from's plan and time to `to`, and copies the rest. */
void candidate_move(struct candidate *to, struct candidate *from, const struct candidate_frame *f);
bool candidate_same_choice(const struct candidate *a, const struct candidate *b,
			   const struct candidate_frame *f);

int candidate_size(const struct candidate *c, int stage, const struct candidate_frame *f);
/* Returns the number of stages that a microbatch skips. */
int candidate_skip(const struct candidate_frame *f, int n_stages);
/* Returns true if n_microbatches in an iteration are enough to visit every stage. With fewer, some
 * stage would get no gradient, and its nodes would be idle. */
bool candidate_visits_all(const struct candidate_frame *f, int n_stages, int n_microbatches);
/* Returns the average number of layers that a microbatch computes. */
double candidate_layers_computed(const struct candidate *c, const struct candidate_frame *f);
struct stage_fit candidate_fit(const struct candidate *c, int node,
			       const struct candidate_frame *f);
/* Returns the price per hour of all machines that have a card in use. NAN: a price is unknown. */
double candidate_price(const struct candidate *c, const struct candidate_frame *f);

/* Returns true if the candidate can run: each stage has nodes, each node has memory for its stage,
 * and the data nodes share the batch equally. */
bool candidate_fits(const struct candidate *c, const struct candidate_frame *f);
/* Returns true if the candidate fits and each stage is visited. A choice lists no other
 * candidates. */
bool candidate_is_possible(const struct candidate *c, const struct candidate_frame *f);
/* Makes the cluster of a possible candidate, in fp32. The cluster has the nodes in use, in the
 * fleet's order. NULL: there is no memory for the matrices. */
struct cluster *candidate_cluster(const struct candidate *c, const struct candidate_frame *f);
/* Returns the cluster as the text of a skippipe.cluster/1, with the links of the fleet. The caller
 * frees the text. NULL: out of memory. */
char *candidate_cluster_text(const struct candidate *c, const struct candidate_frame *f);

/* Plans and simulates the candidate with this number of evaluations, and sets its plan, time and
 * price. If no plan is found, the time is INFINITY. */
void candidate_evaluate(struct candidate *c, int64_t evaluations, const struct candidate_frame *f);

#endif
