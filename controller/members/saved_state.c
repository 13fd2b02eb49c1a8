/* saved_state.c - saves and loads the state, other than commits, that a restarted controller needs.
 *
 * A controller may die at any moment. The next controller finds the commits in the store. It also
 * needs some options (run/settings.c), the stage of each node, the nodes marked as failed, the
 * spares and the agents' keys, and it must know whether an operator has paused the run. This
 * state is saved whenever it changes, as JSON in the store's setting "controller".
 */
#include "controller/members/saved_state.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/rates.h"
#include "controller/run/settings.h"

static json_t *pack_formats(const struct tensor_formats *f)
{
	return json_pack("[s, s]", tensor_format_name(f->wire), tensor_format_name(f->sum_wire));
}

static int load_formats(struct tensor_formats *to, const json_t *from)
{
	const char *wire, *sum_wire;

	return json_unpack((json_t *)(uintptr_t)from, "[s, s]", &wire, &sum_wire) == 0 &&
			       tensor_format_parse(wire, &to->wire) == 0 &&
			       tensor_format_suits_activations(to->wire) &&
			       tensor_format_parse(sum_wire, &to->sum_wire) == 0 &&
			       tensor_format_suits_sums(to->sum_wire)
		       ? 0
		       : -EINVAL;
}

/* The numbers of each node in the saved state. If a saved state lacks LEFT_OUT or SPARE, these
 * numbers are 0 for all nodes. */
enum { STAGE, SHARD, HOME, MARKED, LEFT_OUT, SPARE, NUMBERS };
static const char *const names[NUMBERS] = { "stages", "shards",   "homes",
					    "marked", "left_out", "spares" };

static int number_of(const struct members *members, uint32_t node, int which)
{
	const struct member *m = &members->list[node];

	switch (which) {
	case STAGE:
		return members->run->cluster->nodes[node].stage;
	case SHARD:
		return members->run->training.shard_of[node];
	case HOME:
		return m->move.home;
	case MARKED:
		return m->is_marked && m->move.drain != DRAIN_EXCLUDED;
	case LEFT_OUT:
		return m->assigned.is_left_out;
	default:
		return m->move.use == USE_SPARE;
	}
}

static void pack_numbers(json_t *o, const struct members *members)
{
	for (int k = 0; k < NUMBERS; k++) {
		json_t *numbers = json_array();

		for (uint32_t i = 0; i < members->n; i++)
			json_array_append_new(numbers, json_integer(number_of(members, i, k)));
		json_object_set_new(o, names[k], numbers);
	}
}

/* The saved state has the options, and an array for each property of the nodes. */
int resume_save(struct members *members)
{
	const struct wanted *wanted = &members->run->wanted;
	json_t *o, *keys = json_array();
	struct error err = { "" };
	char *text, key[KEYS_TEXT_SIZE];
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < members->n; i++) {
		keys_text(&members->list[i].key, key);
		json_array_append_new(keys,
				      json_string(member_has_key(&members->list[i]) ? key : ""));
	}
	o = json_pack("{s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:o}", "path_length",
		      (int)wanted->path_length, "skip_share", (int)wanted->skip_share, "skip_phase",
		      (int)wanted->phase, "paused", (int)wanted->pause, "formats",
		      pack_formats(&members->run->cluster->formats), "wanted_formats",
		      pack_formats(&wanted->formats), "keys", keys, "rates",
		      rates_save(members->run));
	pack_numbers(o, members);
	text = settings_print(&members->run->options, RECORD_CONTROLLER, o);
	if (text)
		rc = store_set(members->run->record.store, "controller", text, &err);
	if (rc != 0)
		log_line(&members->run->log, LOG_ERROR, "%s", text ? err.text : "out of memory");
	free(text);
	return rc;
}

bool resume_is_early(const struct members *members)
{
	return members->run->phase == PHASE_GATHERING && !members->run->resumed &&
	       members->gathering < GATHER_BUILD;
}

void resume_save_change(struct members *members)
{
	if (!resume_is_early(members))
		resume_save(members);
}

static int load_numbers(int to[NUMBERS][MSG_NODES], uint32_t n, const json_t *o)
{
	for (int k = 0; k < NUMBERS; k++) {
		const json_t *from = json_object_get(o, names[k]);

		if (!from && k >= LEFT_OUT)
			continue;
		if (json_array_size(from) != n)
			return -EINVAL;
		for (uint32_t i = 0; i < n; i++)
			to[k][i] = (int)json_integer_value(json_array_get(from, i));
	}
	return 0;
}

static void take_numbers(struct members *members, int from[NUMBERS][MSG_NODES])
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		bool is_marked = from[MARKED][i] != 0, is_left_out = from[LEFT_OUT][i] != 0;

		members->run->cluster->nodes[i].stage = from[STAGE][i];
		members->run->training.shard_of[i] = from[SHARD][i];
		m->move.home = from[HOME][i];
		m->is_marked = is_marked;
		m->assigned.is_left_out = is_marked && is_left_out;
		m->peers.is_excluded = is_marked && !is_left_out;
		m->move.use = from[SPARE][i] ? USE_SPARE : USE_ALWAYS;
	}
}

/* Loads the key of each node, so that a returning agent gets its own node number again. */
static int load_keys(struct members *members, const json_t *from)
{
	struct error ignored;

	if (json_array_size(from) != members->n)
		return -EINVAL;
	for (uint32_t i = 0; i < members->n; i++) {
		const char *text = json_string_value(json_array_get(from, i));

		if (!text || (*text && keys_parse(text, &members->list[i].key, &ignored) != 0))
			return -EINVAL;
	}
	return 0;
}

int resume_load(struct members *members, struct tensor_formats *formats, struct error *err)
{
	struct wanted *wanted = &members->run->wanted;
	char *text = NULL;
	int numbers[NUMBERS][MSG_NODES] = { { 0 } };
	int rc = store_get(members->run->record.store, "controller", &text, err);
	struct tensor_formats recorded = { 0 }, wished = { 0 };
	const int n_stages = members->run->cluster->n_stages;
	json_t *o, *fo, *wa, *ke, *ra = NULL;
	int path_length, share = 0, phase, paused = 0;

	if (rc != 0)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && settings_fit(o, RECORD_CONTROLLER) &&
			     json_unpack(o, "{s:i, s?i, s:i, s?b, s:o, s:o, s:o, s?o}",
					 "path_length", &path_length, "skip_share", &share,
					 "skip_phase", &phase, "paused", &paused, "formats", &fo,
					 "wanted_formats", &wa, "keys", &ke, "rates", &ra) == 0
		     ? 0
		     : -EINVAL;
	if (rc == 0)
		rc = load_formats(&recorded, fo);
	if (rc == 0)
		rc = load_formats(&wished, wa);
	if (rc == 0)
		rc = load_numbers(numbers, members->n, o);
	if (rc == 0)
		rc = load_keys(members, ke);
	if (rc == 0)
		rc = rates_load(members->run, ra);
	if (rc == 0 && (phase < 0 || phase >= SKIP_SCHEDULE_MOST))
		rc = -EINVAL;
	if (rc == 0 && (path_length < 1 || path_length > n_stages || share < 0 || share > 99))
		rc = -EINVAL;
	for (uint32_t i = 0; rc == 0 && i < members->n; i++)
		if (numbers[STAGE][i] >= n_stages || numbers[HOME][i] >= n_stages)
			rc = -EINVAL;
	if (rc == 0) {
		take_numbers(members, numbers);
		settings_take(&members->run->options, o, RECORD_CONTROLLER);
		members->run->unit_s = members->run->options.cluster.time_scale > 0
					       ? members->run->options.cluster.time_scale
					       : 1;
		wanted->path_length = (uint32_t)path_length;
		wanted->skip_share = (uint32_t)share;
		wanted->phase = (uint32_t)phase;
		wanted->pause = paused;
		wanted->formats = wished;
		*formats = recorded;
	}
	json_decref(o);
	return rc ? error_set(err, rc, "%s: the controller's saved state is damaged",
			      members->run->options.run_dir)
		  : 0;
}
