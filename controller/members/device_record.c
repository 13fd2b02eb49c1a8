/* device_record.c - writes and reads the times of a device. */
#include "controller/members/device_record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { KEY = 16 };

static void key_of(int state, char key[KEY])
{
	snprintf(key, KEY, "%s_s", device_state_name((enum device_state)state));
}

json_t *device_record_pack(const struct device_time *t)
{
	json_t *o = json_object();
	char key[KEY];

	for (int i = 0; i < DEVICE_STATES; i++) {
		key_of(i, key);
		json_object_set_new(o, key, json_real((double)t->us[i] * 1e-6));
	}
	return o;
}

static int read_times(struct device_time *t, const json_t *o)
{
	char key[KEY];

	for (int i = 0; i < DEVICE_STATES; i++) {
		const json_t *n;
		double s;

		key_of(i, key);
		n = json_object_get(o, key);
		s = json_number_value(n);
		if (!json_is_number(n) || !(s >= 0 && s < 1e9))
			return -EINVAL;
		t->us[i] = (uint64_t)llround(s * 1e6);
	}
	return device_time_is_sane(t) ? 0 : -EINVAL;
}

int device_record_read(struct device_time *out, const char *text, struct error *err)
{
	json_t *o = json_loads(text, 0, NULL);
	struct device_time t;
	int rc = read_times(&t, o);

	json_decref(o);
	if (rc)
		return error_set(err, rc, "no times of a device: %.60s", text);
	*out = t;
	return 0;
}
