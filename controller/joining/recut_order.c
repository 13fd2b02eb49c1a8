/* recut_order.c - the operator's order to continue with other stages, as an entry of the record
 * (recut_order.h). */
#include "controller/joining/recut_order.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "controller/options.h"
#include "controller/planning/stage_question.h"

bool recut_order_of_options(struct recut_order *out, const struct options *o)
{
	*out = (struct recut_order){ .layers = o->training.cut,
				     .n_nodes = (uint32_t)o->cluster.n_stages };
	memcpy(out->nodes, o->cluster.stages, sizeof(out->nodes));
	return out->layers.n > 0 || out->n_nodes > 0;
}

void recut_order_of_candidate(struct recut_order *out, const struct candidate *x,
			      const struct stage_question *q, uint32_t n_nodes)
{
	*out = (struct recut_order){ .layers.n = (uint32_t)x->n_stages, .n_places = n_nodes };
	for (int s = 0; s < x->n_stages; s++)
		out->layers.of[s] = (uint16_t)x->layers[s];
	for (uint32_t i = 0; i < n_nodes; i++) {
		out->stage_of[i] = RECUT_AWAY;
		out->slots[i] = 1;
	}
	for (int k = 0; k < q->fleet->n_nodes; k++) {
		bool is_used = x->stage_of[k] >= 0;
		int slots = is_used ? candidate_fit(x, k, &q->frame).slots : 1;

		out->stage_of[q->node_of[k]] = is_used ? x->stage_of[k] : RECUT_LEFT_OUT;
		out->slots[q->node_of[k]] = slots > 1 ? slots : 1;
	}
}

static json_t *pack_numbers(const int *numbers, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(numbers[i]));
	return list;
}

char *recut_order_print(const struct recut_order *o)
{
	int layers[ROUTE_HOPS];
	json_t *root;
	char *text;

	for (uint32_t s = 0; s < o->layers.n; s++)
		layers[s] = o->layers.of[s];
	root = json_pack("{s:o, s:o, s:o, s:o, s:o}", "layers", pack_numbers(layers, o->layers.n),
			 "nodes", pack_numbers(o->nodes, o->n_nodes), "stage_of",
			 pack_numbers(o->stage_of, o->n_places), "slots",
			 pack_numbers(o->slots, o->n_places), "here",
			 pack_numbers(o->here, o->n_here));
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

/* Reads a list of at most `most` numbers. Each number must be from `low` to `high`. */
static bool read_numbers(int *to, uint32_t *n, size_t most, int low, int high, const json_t *list)
{
	*n = (uint32_t)json_array_size(list);
	if (!json_is_array(list) || json_array_size(list) > most)
		return false;
	for (uint32_t i = 0; i < *n; i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_integer(v) || json_integer_value(v) < low ||
		    json_integer_value(v) > high)
			return false;
		to[i] = (int)json_integer_value(v);
	}
	return true;
}

int recut_order_parse(struct recut_order *out, const char *text, struct error *err)
{
	json_t *root = json_loads(text, 0, NULL);
	struct recut_order o = { .n_nodes = 0 };
	int layers[ROUTE_HOPS];
	uint32_t n_slots = 0;
	bool good =
		read_numbers(layers, &o.layers.n, ROUTE_HOPS, 0, UINT16_MAX,
			     json_object_get(root, "layers")) &&
		read_numbers(o.nodes, &o.n_nodes, MSG_STAGES, 1, MSG_NODES,
			     json_object_get(root, "nodes")) &&
		read_numbers(o.stage_of, &o.n_places, MSG_NODES, RECUT_LEFT_OUT,
			     MSG_STAGES - 1, json_object_get(root, "stage_of")) &&
		read_numbers(o.slots, &n_slots, MSG_NODES, 1, 255,
			     json_object_get(root, "slots")) &&
		read_numbers(o.here, &o.n_here, MSG_NODES, 0, 1, json_object_get(root, "here"));

	for (uint32_t s = 0; good && s < o.layers.n; s++)
		o.layers.of[s] = (uint16_t)layers[s];
	good = good && n_slots == o.n_places && o.layers.n + o.n_nodes > 0;
	if (good)
		*out = o;
	json_decref(root);
	return good ? 0 : error_set(err, -EINVAL, "the record of the ordered stages is damaged");
}
