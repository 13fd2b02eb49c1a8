/* Adds up the layers that the cards of a fleet can hold. */
#include "schedule/fleet/holds.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/format/request.h"

#define GIGA 1e9

/* Returns the most layers of a stage that the node holds with one slot, blocks recomputed. -1: not
 * even a stage without layers. */
static int layers_held(const struct candidate_frame *f, int node, bool has_ends, int sequences)
{
	int most = f->shape->n_layers;

	while (most >= 0 && stage_cost_fit(f->shape, fleet_machines_of(f->fleet, node), most,
					   has_ends, sequences, 1)
					    .slots < 1)
		most--;
	return most;
}

static int compare_falling(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

/* Returns the layers that stages hold if `first` holds stage 0 and the other nodes with most room
 * hold one other stage each. */
static int held_with(const struct candidate_frame *f, const int *as_first, const int *as_other,
		     int first, int most_stages, int *room)
{
	int n = 0, sum = as_first[first];

	for (int i = 0; i < f->fleet->n_nodes; i++)
		if (i != first && as_other[i] > 0)
			room[n++] = as_other[i];
	qsort(room, (size_t)n, sizeof(*room), compare_falling);
	for (int i = 0; i < n && i < most_stages - 1; i++)
		sum += room[i];
	return sum;
}

static int refuse_first(const struct candidate_frame *f, int sequences, struct error *err)
{
	int largest = 0;
	struct stage_fit fit;
	char name[FLEET_NAME];

	for (int i = 1; i < f->fleet->n_nodes; i++)
		if (fleet_machines_of(f->fleet, i)->memory_bytes >
		    fleet_machines_of(f->fleet, largest)->memory_bytes)
			largest = i;
	fit = stage_cost_fit(f->shape, fleet_machines_of(f->fleet, largest), 0, true, sequences, 1);
	fleet_node_name(f->fleet, largest, name);
	return error_set(err, PLAN_INFEASIBLE,
			 "no card holds stage 0: embedding and head need %.1f GB even without "
			 "layers, and the largest card (%s) has %.1f: %.1f GB are missing",
			 (fleet_machines_of(f->fleet, largest)->memory_bytes + fit.missing_bytes) /
				 GIGA,
			 name, fleet_machines_of(f->fleet, largest)->memory_bytes / GIGA,
			 fit.missing_bytes / GIGA);
}

static int refuse_layers(const struct candidate_frame *f, int held, int first, const int *as_other,
			 int sequences, struct error *err)
{
	const struct model_shape *m = f->shape;
	double layer = stage_cost_bytes(m, 2, false, sequences, SHAPE_BLOCK, 1) -
		       stage_cost_bytes(m, 1, false, sequences, SHAPE_BLOCK, 1);
	char name[FLEET_NAME], small[FLEET_NAME] = "";
	int n = 0;

	fleet_node_name(f->fleet, first, name);
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		if (i == first || as_other[i] > 0)
			continue;
		if (n++ == 0)
			fleet_node_name(f->fleet, i, small);
	}
	error_set(err, PLAN_INFEASIBLE,
		  "the fleet holds %d of the %d layers, with stage 0 on %s and a stage on each "
		  "other card, even if every block is recomputed: %.1f GB are missing (%.2f GB a "
		  "layer)",
		  held, m->n_layers, name, (m->n_layers - held) * layer / GIGA, layer / GIGA);
	if (n > 0) {
		struct error why = *err;

		error_set(err, PLAN_INFEASIBLE, "%s; %d cards, %s first, hold no layer", why.text,
			  n, small);
	}
	return PLAN_INFEASIBLE;
}

int holds_model(const struct candidate_frame *f, int sequences, int most_stages, struct error *err)
{
	size_t n = (size_t)f->fleet->n_nodes;
	int *as_first = alloc_array(n, sizeof(int)), *as_other = alloc_array(n, sizeof(int));
	int *room = alloc_array(n, sizeof(int));
	int best = -1, first = -1, rc = 0;

	for (int i = 0; i < f->fleet->n_nodes; i++) {
		as_first[i] = layers_held(f, i, true, sequences);
		as_other[i] = layers_held(f, i, false, sequences);
	}
	for (int i = 0; i < f->fleet->n_nodes && best < f->shape->n_layers; i++) {
		int held = as_first[i] < 0 ? -1
					   : held_with(f, as_first, as_other, i, most_stages, room);

		if (held > best) {
			best = held;
			first = i;
		}
	}
	if (best < 0)
		rc = refuse_first(f, sequences, err);
	else if (best < f->shape->n_layers)
		rc = refuse_layers(f, best, first, as_other, sequences, err);
	free(as_first);
	free(as_other);
	free(room);
	return rc;
}
