/* Chooses the device that recomputes a run. A process computes with a single instruction set.
 * Therefore a single device recomputes the gradients of all nodes. This module picks the device
 * that matches the largest number of nodes, because only results of matching nodes can be equal
 * bit for bit. */
#include "verify/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listing {
	struct devices *devices;
	struct error *err;
};

bool devices_match(const struct devices *d, const char *recorded)
{
	return !recorded || !*recorded || device_texts_alike(d->text, recorded);
}

/* Adds a device to the list. GPUs that differ only in their device number share one entry. */
static int list_device(void *context, const char *text, uint32_t nodes)
{
	struct listing *l = context;
	struct devices *d = l->devices;

	for (uint32_t i = 0; i < d->n; i++)
		if (device_texts_alike(d->list[i].text, text)) {
			d->list[i].nodes += nodes;
			return 0;
		}
	if (d->n == DEVICES_MAX)
		return error_set(l->err, -E2BIG, "the run had more than %d kinds of device",
				 DEVICES_MAX);
	snprintf(d->list[d->n].text, sizeof(d->list[d->n].text), "%s", text);
	d->list[d->n++].nodes = nodes;
	return 0;
}

/* Orders the devices by their number of nodes, the largest first. Devices with the same number of
 * nodes are in reverse order of their names. This puts GPUs and wider instruction sets first,
 * which recompute faster. */
static int compare_entries(const void *a, const void *b)
{
	const struct recorded_device *x = a, *y = b;

	if (x->nodes != y->nodes)
		return x->nodes > y->nodes ? -1 : 1;
	return -strcmp(x->text, y->text);
}

/* Sets `name` to the device of this machine that may match the recorded device. A recorded GPU of
 * any number becomes GPU 0. */
static void name_candidate(const char *recorded, char name[DEVICE_NAME_SIZE])
{
	struct device_name n;

	snprintf(name, DEVICE_NAME_SIZE, "%.*s", (int)strcspn(recorded, " "), recorded);
	if (!name[0] || device_name_parse(&n, name, NULL) != 0)
		n = (struct device_name){ .cuda = false };
	n.number = 0;
	device_name_print(&n, name);
}

static int use_device(struct devices *d, const char *name, struct error *err)
{
	struct stage_device found;
	int rc = stage_device(&found, name, err);

	if (rc != 0)
		return rc;
	memcpy(d->name, found.name, sizeof(d->name));
	memcpy(d->text, found.text, sizeof(d->text));
	return 0;
}

/* Returns true if the error means that this machine lacks the device. Other errors, such as -EIO
 * from a broken GPU, are reported to the operator. */
static bool is_missing(int rc)
{
	return rc == -ENODEV || rc == -ENOTSUP || rc == -EINVAL || rc == -EBUSY;
}

/* Tries the recorded devices in the order of the list. If no device matches exactly, chooses the
 * first recorded device that has the same name as a device of this machine. In this case the matrix
 * library may have another version. */
static int find_best_match(struct devices *d, struct error *err)
{
	char name[DEVICE_NAME_SIZE], nearest[DEVICE_NAME_SIZE] = "cpu";
	bool have_nearest = false;

	for (uint32_t i = 0; i < d->n; i++) {
		int rc;

		name_candidate(d->list[i].text, name);
		rc = use_device(d, name, err);
		if (rc != 0 && !is_missing(rc))
			return rc;
		if (rc != 0)
			continue;
		if (devices_match(d, d->list[i].text))
			return 0;
		if (!have_nearest)
			memcpy(nearest, name, sizeof(nearest));
		have_nearest = true;
	}
	return use_device(d, nearest, err);
}

int devices_choose(struct devices *out, struct store *s, const char *device, struct error *err)
{
	struct devices d = { .n = 0 };
	struct listing l = { &d, err };
	int rc = store_each_device(s, list_device, &l, err);

	if (rc != 0)
		return rc;
	if (d.n == 0)
		d.n = 1;
	qsort(d.list, d.n, sizeof(d.list[0]), compare_entries);
	rc = device ? use_device(&d, device, err) : find_best_match(&d, err);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < d.n; i++)
		d.list[i].matches = devices_match(&d, d.list[i].text);
	*out = d;
	return 0;
}
