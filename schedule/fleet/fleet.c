/* Fleets as plain data, and the conversion of a measured cluster to a fleet. */
#include "schedule/fleet/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/fleet/fleet_parts.h"
#include "schedule/fleet/stage_cost.h"

#define NANOSECOND 1e-9

int fleet_allocate_nodes(struct fleet *f, struct error *err)
{
	size_t n = 0, at = 0;
	int machines = 0;

	for (int e = 0; e < f->n_entries; e++)
		n += (size_t)f->entries[e].count * (size_t)f->entries[e].cards;
	if (n < 1 || n > FLEET_MOST_NODES)
		return error_set(err, -EINVAL, "machines: expected 1 to %d cards in all, found %zu",
				 FLEET_MOST_NODES, n);
	f->nodes = alloc_array(n, sizeof(*f->nodes));
	for (int e = 0; e < f->n_entries; e++) {
		for (int m = 0; m < f->entries[e].count; m++, machines++) {
			for (int k = 0; k < f->entries[e].cards; k++)
				f->nodes[at++] = (struct fleet_node){ e, machines, k };
		}
	}
	f->n_nodes = (int)n;
	f->n_machines = machines;
	f->latency_s = alloc_array(n * n, sizeof(*f->latency_s));
	f->bandwidth = alloc_array(n * n, sizeof(*f->bandwidth));
	return 0;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	for (int e = 0; e < f->n_entries; e++) {
		free(f->entries[e].name);
		free(f->entries[e].place);
		free(f->entries[e].device);
	}
	free(f->name);
	free(f->entries);
	free(f->nodes);
	free(f->latency_s);
	free(f->bandwidth);
	free(f);
}

/* Returns how many of the text's bytes to keep so that at most `most` are kept and no UTF-8
 * character is cut. */
static int whole_characters(const char *text, int most)
{
	int n = (int)strlen(text);

	if (n <= most)
		return n;
	for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

void fleet_node_name(const struct fleet *f, int node, char out[FLEET_NAME])
{
	const struct fleet_machines *e = fleet_machines_of(f, node);
	int first = node, used;

	while (first > 0 && f->nodes[first - 1].entry == f->nodes[node].entry)
		first--;
	used = snprintf(out, FLEET_NAME, "%.*s", whole_characters(e->name, 48), e->name);
	if (e->count > 1)
		used += snprintf(out + used, (size_t)(FLEET_NAME - used), "-%d",
				 f->nodes[node].machine - f->nodes[first].machine + 1);
	if (e->cards > 1)
		snprintf(out + used, (size_t)(FLEET_NAME - used), ".%d", f->nodes[node].card + 1);
}

int fleet_check_prices(const struct fleet *f, struct error *err)
{
	for (int e = 0; e < f->n_entries; e++)
		if (isnan(f->entries[e].price_per_hour))
			return error_set(err, -EINVAL,
					 "machines[%d] (\"%.40s\").price_per_hour: missing, and "
					 "costs cannot be compared without it",
					 e, f->entries[e].name);
	return 0;
}

/* Fills in the links of a measured cluster. The latency of a link is its delay minus the transfer
 * time of the bytes. */
static int measured_links(const struct cluster *c, const struct model_shape *shape, struct fleet *f,
			  struct error *err)
{
	size_t pairs = (size_t)c->n_nodes * (size_t)c->n_nodes;
	double bytes = shape->activation_bytes * shape->batch;
	double share = tensor_format_activation_share(c->formats.wire);

	if (!c->bytes_s)
		return error_set(err, -EINVAL,
				 "bytes_s: missing, so the bandwidths of the links are unknown");
	for (size_t i = 0; i < pairs; i++) {
		double transfer_s = fmax(c->bytes_s[i], NANOSECOND);

		f->latency_s[i] =
			c->delay_s[i] < 0 ? -1 : fmax(0, c->delay_s[i] - share * c->bytes_s[i]);
		f->bandwidth[i] = bytes / transfer_s;
	}
	return 0;
}

/* Fills in the machines of a measured cluster. A node's measured memory is a number of
 * microbatches of an equal cut; it is converted to the bytes of a stage with that many
 * microbatches. */
static void measured_machines(const struct cluster *c, const struct model_shape *shape,
			      struct fleet *f)
{
	int layers = (shape->n_layers + c->n_stages - 1) / c->n_stages;
	double flop = shape->layer_flop * shape->n_layers / c->n_stages * shape->batch;

	for (int i = 0; i < c->n_nodes; i++) {
		const struct cluster_node *n = &c->nodes[i];

		struct fleet_machines *e = &f->entries[i];

		e->name = n->address ? alloc_string(n->address) : alloc_format("n%02d", i);
		e->place = alloc_string(n->location);
		e->device = n->device ? alloc_string(n->device) : NULL;
		e->flop_per_s = flop / fmax(n->forward_s, NANOSECOND);
		e->memory_bytes = stage_cost_bytes(shape, layers, n->stage <= 0, shape->batch,
						   SHAPE_NORMS, n->memory);
	}
}

int fleet_of_single_cards(const char *name, int n, struct fleet **out, struct error *err)
{
	struct fleet *f = alloc_new(sizeof(*f));
	int rc;

	f->name = alloc_string(name);
	f->n_entries = n;
	f->entries = alloc_array((size_t)n, sizeof(*f->entries));
	for (int i = 0; i < n; i++)
		f->entries[i] = (struct fleet_machines){
			.count = 1,
			.cards = 1,
			.bytes_per_s = INFINITY,
			.up = INFINITY,
			.down = INFINITY,
			.price_per_hour = NAN,
			.speed = FLEET_SPEED_MEASURED,
		};
	rc = fleet_allocate_nodes(f, err);
	if (rc != 0) {
		fleet_free(f);
		return rc;
	}
	for (int i = 0; i < n * n; i++)
		f->latency_s[i] = -1;
	*out = f;
	return 0;
}

int fleet_of_cluster(const struct cluster *c, const struct model_shape *shape, struct fleet **out,
		     struct error *err)
{
	struct fleet *f;
	int rc = fleet_of_single_cards(c->name, c->n_nodes, &f, err);

	if (rc != 0)
		return rc;
	f->dispatch_overhead_s = c->dispatch_overhead_s;
	measured_machines(c, shape, f);
	rc = measured_links(c, shape, f, err);
	if (rc != 0) {
		fleet_free(f);
		return rc;
	}
	*out = f;
	return 0;
}
