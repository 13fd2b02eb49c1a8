/* division.h - estimates roughly how long an iteration takes if the nodes are divided among the
 * stages in a given way, and searches for a division with a short iteration. Internal to
 * schedule/fleet/.
 *
 * The estimate is cheap enough for a million divisions. It only decides which divisions the planner
 * looks at. The estimate is the slowest sum of gradients, plus the largest of these times:
 *     the work of the slowest stage, shared by its nodes, plus the rest of a microbatch's round
 *         trip;
 *     the round trips that a data node makes one after the other, because it has more microbatches
 *         than slots;
 *     the time for which microbatches occupy the slots of a stage.
 */
#ifndef SCHEDULE_DIVISION_H
#define SCHEDULE_DIVISION_H

#include <stdint.h>

#include "schedule/fleet/candidate.h"
#include "schedule/fleet/groups.h"

/* The objective of a choice */
struct aim {
	bool by_price;        /* true: least price of a token; false: shortest time */
	double most_per_hour; /* limit of the price for an hour; INFINITY: none */
};

/* Settings that all divisions of a search share */
struct division_setting {
	int n_stages, sequences, wanted_slots;
};

struct division {
	int layers[CLUSTER_MOST_STAGES];
	/* Number of nodes of each group in each stage. Nodes in no stage are left out. */
	int count[GROUPS_MOST][CLUSTER_MOST_STAGES];
	int left_out[GROUPS_MOST];
	/* Estimated seconds, or price, of an iteration; INFINITY: the division is not possible */
	double cost;
};

/* Searches for the division with the lowest estimated cost, with `steps` proposals. The result
 * depends only on the arguments. Returns false if no division was found that the nodes can hold. */
bool division_search(const struct candidate_frame *f, const struct groups *g, const struct aim *aim,
		     const struct division_setting *set, int steps, uint64_t stream,
		     struct division *out);

/* Gives the layers to the stages one by one, each to the stage whose work is then shortest. The
 * longest work of a stage is thus as short as possible. seconds[n_stages]: work of one layer in
 * each stage. first_s[n_stages]: work of each stage without layers. most[n_stages]: largest number
 * of layers of each stage. Every stage except stage 0 gets at least one layer. Returns the number
 * of layers that no stage can take. */
int division_cut(int n_stages, int n_layers, const double *seconds, const double *first_s,
		 const int *most, int *layers);

/* Sets the stages of a candidate's nodes according to the division. spread: the cards of a machine
 * go to different stages. */
void division_realise(const struct division *d, const struct division_setting *set,
		      const struct candidate_frame *f, const struct groups *g, bool spread,
		      struct candidate *to);

#endif
