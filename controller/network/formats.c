/* formats.c - changes the times of links when activations or sums are sent in another format.
 *
 * A link's transfer time has two parts: one for the bytes, which depends on the format, and one
 * that does not. For a measured link, the bandwidth gives the part for the bytes. For a link that a
 * cluster file describes, the cluster has that part (bytes_s). If measured transfers have corrected
 * the whole time by a factor, the factor is kept. */
#include "controller/network/formats.h"

#include <math.h>

#include "controller/members/members.h"
#include "controller/network/link_table.h"

bool formats_equal(const struct tensor_formats *a, const struct tensor_formats *b)
{
	return a->wire == b->wire && a->sum_wire == b->sum_wire;
}

void formats_set_bytes(struct link_table *t, const struct training *training,
		       const struct tensor_formats *formats)
{
	const struct hyperparameters *r = &training->hyper;

	t->activation_bytes = (double)tensor_format_activation_bytes(
		formats->wire, (size_t)r->batch * r->sequence * training->model.dim,
		training->model.dim);
	t->sum_bytes = 0;
	for (uint32_t s = 0; s < training->model.n_stages; s++)
		t->sum_bytes = fmax(t->sum_bytes,
				    (double)tensor_format_sum_bytes(formats->sum_wire,
								    training->stage_parameters[s]));
}

/* Returns how many seconds longer a transfer takes with the bytes in `is` than with the bytes in
 * `was`. */
static double longer_s(const struct link_table *was, const struct link_table *is, uint32_t from,
		       uint32_t to)
{
	return link_table_transfer_s(is, from, to, is->activation_bytes) -
	       link_table_transfer_s(was, from, to, was->activation_bytes);
}

static void reformat_measured(const struct link_table *was, const struct link_table *is,
			      struct cluster *c)
{
	for (uint32_t i = 0; i < was->n; i++) {
		for (uint32_t j = 0; j < was->n; j++) {
			double *delay_s = &c->delay_s[(size_t)i * was->n + j];

			if (i == j || *delay_s < 0)
				continue;
			*delay_s = fmax(0, *delay_s + longer_s(was, is, i, j));
			if (c->sync_pair_s && c->sync_pair_s[(size_t)i * was->n + j] >= 0)
				c->sync_pair_s[(size_t)i * was->n + j] =
					link_table_sync_pair_s(is, i, j);
		}
	}
}

static void reformat(const struct members *members, const struct tensor_formats *formats,
		     struct cluster *c)
{
	const struct cluster *given = members->run->cluster_as_given;
	struct cluster *changed;
	struct link_table table;

	c->formats = *formats;
	if (members->links) {
		table = *members->links;
		formats_set_bytes(&table, &members->run->training, formats);
		reformat_measured(members->links, &table, c);
		return;
	}
	changed = cluster_copy(given);
	cluster_reformat(changed, formats);
	for (size_t i = 0; i < (size_t)c->n_nodes * (size_t)c->n_nodes; i++) {
		if (c->delay_s[i] > 0 && given->delay_s[i] > 0)
			c->delay_s[i] *= changed->delay_s[i] / given->delay_s[i];
		if (c->sync_pair_s && c->sync_pair_s[i] > 0 && given->sync_pair_s[i] > 0)
			c->sync_pair_s[i] *= changed->sync_pair_s[i] / given->sync_pair_s[i];
	}
	cluster_free(changed);
}

struct cluster *formats_cluster(const struct members *members, const struct tensor_formats *formats)
{
	struct cluster *c;

	if (formats_equal(formats, &members->run->cluster->formats))
		return NULL;
	c = cluster_copy(members->run->cluster);
	reformat(members, formats, c);
	return c;
}

/* Adjusts the running averages of transfer times to the new formats. Adds, or subtracts, the time
 * that the difference in bytes takes. */
static void change_averages(struct link_table *was, const struct tensor_formats *formats,
			    const struct training *training)
{
	struct link_table is = *was;

	formats_set_bytes(&is, training, formats);
	for (uint32_t i = 0; i < was->n; i++) {
		for (uint32_t j = 0; j < was->n; j++) {
			struct link_seen *l = link_table_at(was, i, j);

			if (l->transfer_s > 0)
				l->transfer_s = fmax(0, l->transfer_s + longer_s(was, &is, i, j));
		}
	}
	*was = is;
}

void formats_apply(struct members *members, const struct tensor_formats *formats)
{
	struct run *run = members->run;

	if (formats_equal(formats, &run->cluster->formats))
		return;
	reformat(members, formats, run->cluster);
	cluster_reformat(run->cluster_as_given, formats);
	if (members->links)
		change_averages(members->links, formats, &run->training);
}
