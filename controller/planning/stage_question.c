/* stage_question.c - describes the connected members as a fleet (stage_question.h).
 *
 * The code in schedule/ that chooses stages needs the speed and the memory of each card, and the
 * links between the cards. Members report their memory. Their speeds and links were measured or, in
 * an emulated cluster, are given. */
#include "controller/planning/stage_question.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/members/capacity.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/measuring.h"
#include "model/shape.h"
#include "schedule/fleet/holds.h"

enum {
	/* Work of a forward and a backward pass together, as a multiple of a forward pass: a
	 * backward pass does twice the work */
	PASSES = 3,
	/* Number of activations that an agent may hold outside its stage, for each microbatch of
	 * an iteration. Such activations are outputs and gradients that may have to be sent
	 * again, and tensors that wait or arrived early */
	HELD = 4,
	/* Largest microbatch that may be chosen, as a multiple of the configured size */
	LARGER = 8
};

/* Shares of the free memory that a stage may take. The share of a CPU's memory is smaller, because
 * other programs use it too. */
static const double cpu_share = 0.7, gpu_share = 0.95;
/* Bandwidth, in bytes/s, that is assumed for a link if its cluster only gives a delay */
static const double unknown_bandwidth = 1e9;
static const double least_s = 1e-9, enough_bytes = 1e15;

static bool is_gpu(const struct member *m)
{
	return strncmp(m->hello.device, "cuda", 4) == 0;
}

/* Returns true if all members that take part compute on GPUs in bf16. */
static bool all_in_bf16(const struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) &&
		    !(is_gpu(&members->list[i]) && strstr(members->list[i].hello.device, "bf16")))
			return false;
	return true;
}

/* Returns true if the choice may give the member a stage. Members that an earlier choice has left
 * out may get a stage again. */
static bool may_take_part(const struct members *members, const struct member *m)
{
	const struct cluster_node *n = &members->run->cluster->nodes[m->id];
	bool is_known = members->run->options.cluster.time_scale != 0
				? n->forward_s > 0
				: m->compute.alone_forward_s > 0;

	return member_alive(m) && is_known && !measuring_isolates(members, m) &&
	       (!m->is_marked || m->assigned.is_left_out);
}

/* Returns the factor by which tasks take longer because agents share the cores of their machine
 * or a GPU. Returns 1 if the member's pace was measured while the other agents computed, because
 * the pace then includes this slowdown. */
static double crowding(const struct members *members, const struct member *m)
{
	double threads = 0, agents = 0;

	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) &&
		    members_share_processors(m, &members->list[i])) {
			threads += members->run->options.training.threads;
			agents++;
		}
	if (m->compute.pace > 1)
		return 1;
	if (is_gpu(m))
		return m->hello.card[0] ? agents : 1;
	return m->hello.cores > 0 ? fmax(1, threads / m->hello.cores) : 1;
}

/* Returns the member's speed in operations per second. */
static double speed_of(const struct members *members, const struct member *m,
		       const struct model_shape *shape)
{
	const struct cluster_node *n = &members->run->cluster->nodes[m->id];
	double layers = capacity_unit_layers(&members->run->training.model), seconds;

	if (members->run->options.cluster.time_scale != 0)
		seconds = n->forward_s + n->backward_s;
	else
		seconds = (m->compute.alone_forward_s + m->compute.alone_backward_s) *
			  m->compute.pace * crowding(members, m);
	return PASSES * shape->layer_flop * shape->batch * layers / fmax(seconds, least_s);
}

/* Returns how many bytes a stage on the member may take. Members that did not report their memory
 * count as having enough. */
static double memory_of(const struct members *members, const struct member *m)
{
	return m->hello.memory_bytes == 0
		       ? enough_bytes
		       : (is_gpu(m) ? gpu_share : cpu_share) * members_memory(members, m);
}

static void fill_machine(const struct members *members, const struct member *m,
			 const struct model_shape *shape, struct fleet_machines *e)
{
	e->name = alloc_format("n%02u", m->id);
	e->place = alloc_string(m->hello.place);
	e->device = alloc_string(m->hello.device);
	e->flop_per_s = speed_of(members, m, shape);
	e->memory_bytes = memory_of(members, m);
	e->most_slots = members->run->options.cluster.time_scale != 0
				? members->run->cluster->nodes[m->id].memory
				: CAPACITY_SLOTS_MOST;
}

/* Fills in the fleet's links. A link's latency is its delay minus the time in which the bytes are
 * sent. */
static void fill_links(const struct cluster *c, struct stage_question *q)
{
	double bytes = q->shape.activation_bytes * q->shape.batch;
	double share = tensor_format_activation_share(c->formats.wire);
	int n = q->fleet->n_nodes;

	for (int i = 0; i < n * n; i++) {
		size_t at = (size_t)q->node_of[i / n] * (size_t)c->n_nodes +
			    (size_t)q->node_of[i % n];
		double bytes_s = c->bytes_s ? c->bytes_s[at] : bytes / unknown_bandwidth;

		if (c->delay_s[at] < 0 && i / n != i % n)
			continue;
		q->fleet->latency_s[i] = fmax(0, c->delay_s[at] - share * bytes_s);
		q->fleet->bandwidth[i] = bytes / fmax(bytes_s, least_s);
	}
	q->fleet->dispatch_overhead_s = c->dispatch_overhead_s;
}

static void fill_present(const struct members *members, struct stage_question *q)
{
	const struct run *run = members->run;

	candidate_init(&q->present, &q->frame);
	q->has_present = run->plan != NULL;
	q->present.n_stages = run->cluster->n_stages;
	q->present.sequences = q->shape.batch;
	for (int s = 0; s < run->cluster->n_stages; s++)
		q->present.layers[s] =
			(int)model_layer_count(&run->training.model, (uint32_t)s);
	for (int i = 0; i < q->fleet->n_nodes; i++) {
		const struct member *m = &members->list[q->node_of[i]];

		q->present.stage_of[i] =
			member_is_replica(m) && !m->is_marked ? member_stage(run, m) : -1;
	}
}

/* If microbatches of the run skip stages, the choice assumes that microbatches skip the same
 * share of the chosen stages. */
static void fill_frame(const struct members *members, int n_microbatches, struct stage_question *q)
{
	const struct run *run = members->run;
	int skipped = run->cluster->n_stages - (int)run->wanted.path_length;

	q->frame = (struct candidate_frame){
		.fleet = q->fleet,
		.shape = &q->shape,
		.batch = n_microbatches * q->shape.batch,
		.skip = run->plan ? skipped : 0,
		.of_stages = run->plan ? run->cluster->n_stages : 1,
		.formats = run->wanted.formats,
		.least_sequences = q->shape.batch,
		.most_sequences = q->shape.batch,
		.keeps_formats = true,
		.seed = run->options.seed,
	};
}

/* Agents decide themselves whether they recompute activations, so the choice does not consider
 * this. Agents hold the tensors outside their stage in the machine's memory. A stage on a CPU uses
 * the same memory, so its bytes include these tensors. */
static void fill_shape(const struct members *members, int n_microbatches,
		       struct model_shape *shape)
{
	const struct training *t = &members->run->training;

	if (all_in_bf16(members)) {
		model_shape_of(&t->model, &t->hyper, shape);
	} else {
		model_shape_in_fp32(&t->model, &t->hyper, shape);
		shape->fixed_bytes += (double)HELD * n_microbatches * shape->batch *
				      shape->activation_bytes;
	}
	shape->kept_bytes[SHAPE_BLOCK] = shape->kept_bytes[SHAPE_NORMS];
}

int stage_question_new(const struct members *members, int n_microbatches,
		       struct stage_question **out, struct error *err)
{
	struct stage_question *q = alloc_new(sizeof(*q));
	int n = 0, rc;

	q->node_of = alloc_array(members->n, sizeof(int));
	for (uint32_t i = 0; i < members->n; i++)
		if (may_take_part(members, &members->list[i]))
			q->node_of[n++] = (int)i;
	rc = n == 0 ? error_set(err, -EINVAL, "no agent is here whose speed is known")
		    : fleet_of_single_cards(members->run->cluster->name, n, &q->fleet, err);
	if (rc != 0) {
		stage_question_free(q);
		return rc;
	}
	fill_shape(members, n_microbatches, &q->shape);
	for (int i = 0; i < n; i++)
		fill_machine(members, &members->list[q->node_of[i]], &q->shape,
			     &q->fleet->entries[i]);
	fill_links(members->run->cluster, q);
	fill_frame(members, n_microbatches, q);
	fill_present(members, q);
	*out = q;
	return 0;
}

/* Sets the smallest and the largest microbatch that may be chosen, by halving or doubling the
 * configured size. Smaller microbatches take longer for each sequence than measured, and nobody
 * knows by how much. Therefore a smaller size is only allowed if the members cannot hold the
 * model otherwise. Larger microbatches take no longer for each sequence. */
void stage_question_resize(struct stage_question *q)
{
	struct candidate_frame *f = &q->frame;
	struct error ignored;
	int fits = q->shape.batch;

	int most = LARGER * fits;

	while (holds_model(f, fits, CLUSTER_MOST_STAGES, &ignored) != 0 && fits % 2 == 0 &&
	       f->batch / fits * 2 <= MSG_MICROBATCHES)
		fits /= 2;
	if (holds_model(f, fits, CLUSTER_MOST_STAGES, &ignored) != 0)
		return;
	while (most > q->shape.batch &&
	       (most > HYPER_BATCH_MOST ||
		most * q->shape.activation_bytes > (double)MSG_TENSOR_MOST))
		most /= 2;
	f->least_sequences = fits;
	f->most_sequences = fits < q->shape.batch ? fits : most;
}

void stage_question_compare(struct stage_question *q, const struct model_config *model,
			    const int *stage_of)
{
	candidate_init(&q->wanted, &q->frame);
	q->has_wanted = true;
	q->wanted.n_stages = (int)model->n_stages;
	q->wanted.sequences = q->shape.batch;
	for (uint32_t s = 0; s < model->n_stages; s++)
		q->wanted.layers[s] = (int)model_layer_count(model, s);
	for (int i = 0; i < q->fleet->n_nodes; i++)
		q->wanted.stage_of[i] = stage_of[q->node_of[i]] < 0 ? -1 : stage_of[q->node_of[i]];
}

void stage_question_free(struct stage_question *q)
{
	if (!q)
		return;
	candidate_fini(&q->wanted);
	candidate_fini(&q->present);
	fleet_free(q->fleet);
	free(q->node_of);
	free(q);
}
