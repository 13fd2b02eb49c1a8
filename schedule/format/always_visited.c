/* Reads and writes the stages that no microbatch skips. */
#include "schedule/format/always_visited.h"

#include <errno.h>

#include "base/json.h"

int always_visited_read(const json_t *root, int n_stages, stage_set *out, struct error *err)
{
	const json_t *list = NULL;
	stage_set set = 1;
	int rc;

	*out = set;
	if (!json_object_get(root, "always_visited"))
		return 0;
	rc = json_list(root, "", "always_visited", -1, &list, err);
	for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) >= n_stages || json_integer_value(v) >= 64)
			return error_set(err, -EINVAL,
					 "always_visited[%zu]: expected a stage below %d", i,
					 n_stages);
		set |= (stage_set)1 << json_integer_value(v);
	}
	if (rc == 0)
		*out = set;
	return rc;
}

void always_visited_write(json_t *root, stage_set set)
{
	json_t *list = set > 1 ? json_array() : NULL;

	for (int s = 0; list && s < 64; s++)
		if (stage_set_has(set, s))
			json_array_append_new(list, json_integer(s));
	if (list)
		json_object_set_new(root, "always_visited", list);
}
