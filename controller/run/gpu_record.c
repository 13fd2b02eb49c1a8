/* gpu_record.c - writes and reads the figures of a GPU. Writing and reading use one table of the
 * figures' names. */
#include "controller/run/gpu_record.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "wire/names.h"

#define ROW(field, bit, most) \
	{ #field, bit, offsetof(struct gpu_figures, field), \
	  sizeof(((struct gpu_figures *)0)->field) == 1, most }

static const struct {
	const char *key;
	uint8_t known; /* bit in enum gpu_known that is set if the figure is known */
	size_t offset;
	bool is_byte; /* the figure is a uint8_t; otherwise a uint32_t */
	uint32_t most;
} rows[] = {
	ROW(utilisation, GPU_UTILISATION, 100),
	ROW(memory_used_mib, GPU_MEMORY, GPU_MEMORY_MOST_MIB),
	ROW(memory_mib, GPU_MEMORY, GPU_MEMORY_MOST_MIB),
	ROW(power_mw, GPU_POWER, GPU_POWER_MOST_MW),
	ROW(power_limit_mw, GPU_POWER_LIMIT, GPU_POWER_MOST_MW),
	ROW(temperature_c, GPU_TEMPERATURE, GPU_TEMPERATURE_MOST_C),
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static uint32_t get(const struct gpu_figures *g, int row)
{
	const unsigned char *at = (const unsigned char *)g + rows[row].offset;
	uint32_t value;

	if (rows[row].is_byte)
		return *at;
	memcpy(&value, at, sizeof(value));
	return value;
}

static void set(struct gpu_figures *g, int row, uint32_t value)
{
	unsigned char *at = (unsigned char *)g + rows[row].offset;

	if (rows[row].is_byte)
		*at = (unsigned char)value;
	else
		memcpy(at, &value, sizeof(value));
	g->known |= rows[row].known;
}

json_t *gpu_record_pack(const struct gpu_figures *g)
{
	json_t *o = json_object();
	char text[GPU_THROTTLING_TEXT];

	for (int i = 0; i < ROWS; i++)
		if (g->known & rows[i].known)
			json_object_set_new(o, rows[i].key, json_integer(get(g, i)));
	if (g->known & GPU_THROTTLING)
		json_object_set_new(o, "throttling",
				    json_string(gpu_throttling_text(g->throttling, text)));
	return o;
}

static int read_figures(struct gpu_figures *g, const json_t *o)
{
	const json_t *v = json_object_get(o, "throttling");
	int throttling = v ? gpu_throttling_named(json_string_value(v)) : 0;

	if (!json_is_object(o) || throttling < 0)
		return -EINVAL;
	for (int i = 0; i < ROWS; i++) {
		const json_t *n = json_object_get(o, rows[i].key);
		json_int_t value = json_integer_value(n);

		if (!n)
			continue;
		if (!json_is_integer(n) || value < 0 || value > (json_int_t)rows[i].most)
			return -EINVAL;
		set(g, i, (uint32_t)value);
	}
	g->throttling = (uint8_t)throttling;
	if (v)
		g->known |= GPU_THROTTLING;
	return 0;
}

int gpu_record_read(struct gpu_figures *out, const char *text, struct error *err)
{
	json_t *o = json_loads(text, 0, NULL);
	struct gpu_figures g = { 0 };
	int rc = read_figures(&g, o);

	json_decref(o);
	if (rc)
		return error_set(err, rc, "no figures of a GPU: %.60s", text);
	*out = g;
	return 0;
}
