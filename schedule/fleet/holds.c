/* Adds up the layers that the cards of a fleet can hold. */
#include "schedule/fleet/holds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/format/request.h"

#define GIGA 1e9
#define MEGA 1e6

enum { BYTES_TEXT = 24 };

/* Writes a number of bytes as "1.5 GB", or as "1.50 MB" if it is small. */
static const char *bytes_text(double bytes, char out[BYTES_TEXT])
{
	if (bytes >= GIGA / 10)
		snprintf(out, BYTES_TEXT, "%.1f GB", bytes / GIGA);
	else
		snprintf(out, BYTES_TEXT, "%.2f MB", bytes / MEGA);
	return out;
}

/* Returns the largest number of layers in a stage that the node can hold with one slot and
 * recomputed blocks. -1: the node cannot even hold a stage without layers. */
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

/* Returns the number of layers that the fleet can hold if each stage has one node: node `first` in
 * stage 0, and in the other stages the nodes that hold the most layers. */
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

/* The numbers of layers that the nodes can hold */
struct room {
	/* Arrays of n_nodes: most layers that each node holds as stage 0, or as another stage. -1:
	 * the node cannot hold the stage even without layers. */
	int *as_first, *as_other;
	int *sorted; /* array of n_nodes, used by held_with */
	/* Largest number of layers that the fleet can hold with one node in each stage, or a
	 * smaller number that is enough for the model. -1: no node can hold stage 0. */
	int held;
	int first; /* the node in stage 0 with which the fleet holds `held` layers */
};

static struct room room_new(const struct candidate_frame *f)
{
	size_t n = (size_t)f->fleet->n_nodes;

	return (struct room){ .as_first = alloc_array(n, sizeof(int)),
			      .as_other = alloc_array(n, sizeof(int)),
			      .sorted = alloc_array(n, sizeof(int)) };
}

static void room_free(struct room *r)
{
	free(r->as_first);
	free(r->as_other);
	free(r->sorted);
}

static void measure_room(const struct candidate_frame *f, int sequences, int most_stages,
			 struct room *r)
{
	r->held = r->first = -1;
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		r->as_first[i] = layers_held(f, i, true, sequences);
		r->as_other[i] = layers_held(f, i, false, sequences);
	}
	for (int i = 0; i < f->fleet->n_nodes && r->held < f->shape->n_layers; i++) {
		int held = r->as_first[i] < 0 ? -1
					      : held_with(f, r->as_first, r->as_other, i,
							  most_stages, r->sorted);

		if (held > r->held) {
			r->held = held;
			r->first = i;
		}
	}
}

static int refuse_first(const struct candidate_frame *f, int sequences, struct error *err)
{
	int largest = 0;
	struct stage_fit fit;
	char name[FLEET_NAME], needed[BYTES_TEXT], has[BYTES_TEXT], missing[BYTES_TEXT];
	double memory;

	for (int i = 1; i < f->fleet->n_nodes; i++)
		if (fleet_machines_of(f->fleet, i)->memory_bytes >
		    fleet_machines_of(f->fleet, largest)->memory_bytes)
			largest = i;
	fit = stage_cost_fit(f->shape, fleet_machines_of(f->fleet, largest), 0, true, sequences, 1);
	fleet_node_name(f->fleet, largest, name);
	memory = fleet_machines_of(f->fleet, largest)->memory_bytes;
	return error_set(err, PLAN_INFEASIBLE,
			 "no card holds stage 0: embedding and head need %s even without layers, "
			 "and the largest card (%s) has %s: %s are missing",
			 bytes_text(memory + fit.missing_bytes, needed), name,
			 bytes_text(memory, has), bytes_text(fit.missing_bytes, missing));
}

/* Returns the largest number of sequences of a microbatch with which the model fits; 0: none. */
static int fitting_sequences(const struct candidate_frame *f, int sequences, int most_stages)
{
	struct room r = room_new(f);
	int n = sequences / 2;

	for (; n > 0; n /= 2) {
		measure_room(f, n, most_stages, &r);
		if (r.held >= f->shape->n_layers)
			break;
	}
	room_free(&r);
	return n;
}

/* Writes what would make the model fit: smaller microbatches, or more cards like the card with
 * the most room for layers. */
static void write_remedies(const struct candidate_frame *f, const struct room *r, int sequences,
			   int most_stages, char *out, size_t room)
{
	int best = 0, less = fitting_sequences(f, sequences, most_stages), used = 0;
	char name[FLEET_NAME];

	out[0] = '\0';
	for (int i = 1; i < f->fleet->n_nodes; i++)
		best = r->as_other[i] > r->as_other[best] ? i : best;
	fleet_node_name(f->fleet, best, name);
	if (r->as_other[best] > 0)
		used = snprintf(out, room, ". It would fit with %d more like %s",
				(f->shape->n_layers - r->held + r->as_other[best] - 1) /
					r->as_other[best],
				name);
	if (less > 0)
		snprintf(out + used, room - (size_t)used, "%s microbatches of %d sequences",
			 used > 0 ? ", or with" : ". It would fit with", less);
}

static int refuse_layers(const struct candidate_frame *f, const struct room *r, int sequences,
			 int most_stages, struct error *err)
{
	const struct model_shape *m = f->shape;
	double layer = stage_cost_bytes(m, 2, false, sequences, SHAPE_BLOCK, 1) -
		       stage_cost_bytes(m, 1, false, sequences, SHAPE_BLOCK, 1);
	char name[FLEET_NAME], small[FLEET_NAME] = "", missing[BYTES_TEXT], each[BYTES_TEXT];
	char remedies[3 * FLEET_NAME], without[2 * FLEET_NAME] = "";
	int n = 0;

	fleet_node_name(f->fleet, r->first, name);
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		if (i == r->first || r->as_other[i] > 0)
			continue;
		if (n++ == 0)
			fleet_node_name(f->fleet, i, small);
	}
	if (n > 0)
		snprintf(without, sizeof(without), "; %d cards, %s first, hold no layer", n, small);
	write_remedies(f, r, sequences, most_stages, remedies, sizeof(remedies));
	return error_set(err, PLAN_INFEASIBLE,
			 "the fleet holds %d of the %d layers, with stage 0 on %s and a stage on "
			 "each other card%s: %s are missing (%s a layer)%s%s",
			 r->held, m->n_layers, name,
			 m->kept_bytes[SHAPE_BLOCK] < m->kept_bytes[SHAPE_NORMS]
				 ? ", even if every block is recomputed"
				 : "",
			 bytes_text((m->n_layers - r->held) * layer, missing),
			 bytes_text(layer, each), without, remedies);
}

int holds_model(const struct candidate_frame *f, int sequences, int most_stages, struct error *err)
{
	struct room r = room_new(f);
	int rc = 0;

	measure_room(f, sequences, most_stages, &r);
	if (r.held < 0)
		rc = refuse_first(f, sequences, err);
	else if (r.held < f->shape->n_layers)
		rc = refuse_layers(f, &r, sequences, most_stages, err);
	room_free(&r);
	return rc;
}
