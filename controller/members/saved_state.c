/* saved_state.c - saves and loads the state, other than commits, that a restarted controller needs.
 *
 * A controller may die at any moment. The next controller finds the commits in the store, but also
 * needs some options (run/settings.c), the stage of each node, the nodes marked as failed, and the
 * agents' keys. This controller saves them whenever they change, as JSON in the store's setting
 * "controller". */
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

/* The saved state contains the options, and one array for each property of the nodes. */
int resume_save(struct members *members)
{
	json_t *stages = json_array(), *shards = json_array(), *homes = json_array();
	json_t *marked = json_array(), *left_out = json_array(), *keys = json_array();
	struct error err = { "" };
	char *text, key[KEYS_TEXT_SIZE];
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < members->n; i++) {
		json_array_append_new(stages, json_integer(members->run->cluster->nodes[i].stage));
		json_array_append_new(shards, json_integer(members->run->training.shard_of[i]));
		json_array_append_new(homes, json_integer(members->list[i].move.home));
		json_array_append_new(marked, json_integer(members->list[i].is_marked &&
							   members->list[i].move.drain !=
								   DRAIN_EXCLUDED));
		json_array_append_new(left_out,
				      json_integer(members->list[i].assigned.is_left_out));
		keys_text(&members->list[i].key, key);
		json_array_append_new(keys,
				      json_string(member_has_key(&members->list[i]) ? key : ""));
	}
	text = settings_print(&members->run->options, RECORD_CONTROLLER,
			      json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
					" s:o, s:o}",
					"path_length", (int)members->run->wanted.path_length,
					"skip_share", (int)members->run->wanted.skip_share,
					"skip_phase", (int)members->run->wanted.phase, "formats",
					pack_formats(&members->run->cluster->formats),
					"wanted_formats",
					pack_formats(&members->run->wanted.formats), "stages",
					stages, "shards", shards, "homes", homes, "marked", marked,
					"left_out", left_out, "keys", keys, "rates",
					rates_save(members->run)));
	if (text)
		rc = store_set(members->run->record.store, "controller", text, &err);
	if (rc != 0)
		log_line(&members->run->log, LOG_ERROR, "%s", text ? err.text : "out of memory");
	free(text);
	return rc;
}

static int load_numbers(int *to, uint32_t n, const json_t *from)
{
	if (json_array_size(from) != n)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		to[i] = (int)json_integer_value(json_array_get(from, i));
	return 0;
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
	char *text = NULL;
	int stages[MSG_NODES], homes[MSG_NODES], marked[MSG_NODES], left_out[MSG_NODES] = { 0 },
		rc = store_get(members->run->record.store, "controller", &text, err);
	struct tensor_formats recorded = { 0 }, wanted = { 0 };
	json_t *o, *fo, *wa, *st, *sh, *ho, *ma, *lo = NULL, *ke, *ra = NULL;
	int path_length, share = 0, phase;

	if (rc != 0)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && settings_fit(o, RECORD_CONTROLLER) &&
			     json_unpack(o,
					 "{s:i, s?i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s?o,"
					 " s:o, s?o}",
					 "path_length", &path_length, "skip_share", &share,
					 "skip_phase", &phase, "formats", &fo, "wanted_formats",
					 &wa, "stages", &st, "shards", &sh, "homes", &ho, "marked",
					 &ma, "left_out", &lo, "keys", &ke, "rates", &ra) == 0
		     ? 0
		     : -EINVAL;
	if (rc == 0)
		rc = load_formats(&recorded, fo);
	if (rc == 0)
		rc = load_formats(&wanted, wa);
	if (rc == 0)
		rc = load_numbers(stages, members->n, st);
	if (rc == 0)
		rc = load_numbers(members->run->training.shard_of, members->n, sh);
	if (rc == 0)
		rc = load_numbers(homes, members->n, ho);
	if (rc == 0)
		rc = load_numbers(marked, members->n, ma);
	if (rc == 0 && lo)
		rc = load_numbers(left_out, members->n, lo);
	if (rc == 0)
		rc = load_keys(members, ke);
	if (rc == 0)
		rc = rates_load(members->run, ra);
	if (rc == 0 && (phase < 0 || phase >= SKIP_SCHEDULE_MOST))
		rc = -EINVAL;
	if (rc == 0 && (path_length < 1 || path_length > members->run->cluster->n_stages ||
			share < 0 || share > 99))
		rc = -EINVAL;
	for (uint32_t i = 0; rc == 0 && i < members->n; i++)
		if (stages[i] >= members->run->cluster->n_stages ||
		    homes[i] >= members->run->cluster->n_stages)
			rc = -EINVAL;
	if (rc == 0) {
		for (uint32_t i = 0; i < members->n; i++) {
			members->run->cluster->nodes[i].stage = stages[i];
			members->list[i].move.home = homes[i];
			members->list[i].is_marked = marked[i] != 0;
			members->list[i].assigned.is_left_out = marked[i] && left_out[i];
			members->list[i].peers.is_excluded = marked[i] && !left_out[i];
		}
		settings_take(&members->run->options, o, RECORD_CONTROLLER);
		members->run->unit_s = members->run->options.cluster.time_scale > 0
					       ? members->run->options.cluster.time_scale
					       : 1;
		members->run->wanted.path_length = (uint32_t)path_length;
		members->run->wanted.skip_share = (uint32_t)share;
		members->run->wanted.phase = (uint32_t)phase;
		members->run->wanted.formats = wanted;
		*formats = recorded;
	}
	json_decref(o);
	return rc ? error_set(err, rc, "%s: the controller's saved state is damaged",
			      members->run->options.run_dir)
		  : 0;
}
