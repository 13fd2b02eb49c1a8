#include "verify/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct listing {
	struct kinds *kinds;
	struct error *err;
};

const struct kind *kinds_find(const struct kinds *k, const char *device)
{
	for (uint32_t i = 0; device && i < k->n; i++)
		if (stage_devices_alike(k->list[i].device, device))
			return &k->list[i];
	return &k->list[0];
}

static int see_device(void *context, const char *device, uint32_t nodes)
{
	struct listing *l = context;
	struct kinds *k = l->kinds;

	for (uint32_t i = 0; i < k->n; i++)
		if (stage_devices_alike(k->list[i].device, device)) {
			k->list[i].nodes += nodes;
			return 0;
		}
	if (k->n == KINDS_MOST)
		return error_set(l->err, -E2BIG, "the run's nodes computed in more than %d ways",
				 KINDS_MOST);
	snprintf(k->list[k->n].device, sizeof(k->list[k->n].device), "%s", device);
	k->list[k->n++].nodes = nodes;
	return 0;
}

/* The name of a device here that could be the kind: any GPU of this machine, the CPU by its set. */
static void name_here(const struct kind *k, char name[DEVICE_NAME_SIZE])
{
	struct device_name n;

	snprintf(name, DEVICE_NAME_SIZE, "%.*s", (int)strcspn(k->device, " "), k->device);
	if (!name[0] || device_name_parse(&n, name, NULL) != 0)
		n = (struct device_name){ .cuda = false };
	n.number = 0;
	device_name_print(&n, name);
}

/* What this machine is not able to be is no error: something else stands in. */
static bool cannot_be(int rc)
{
	return rc == -ENODEV || rc == -ENOTSUP || rc == -EINVAL || rc == -EBUSY;
}

static bool is_exact(const struct kind *k)
{
	return !k->device[0] || stage_devices_alike(executor_text(k->executor), k->device);
}

/* The others first, while this process has neither computed anything nor threads. */
static int make_each(struct kinds *k, const struct executor_setup *setup, struct error *err)
{
	char name[DEVICE_NAME_SIZE];
	int rc = 0;

	for (uint32_t i = 1; rc == 0 && i < k->n; i++) {
		name_here(&k->list[i], name);
		rc = executor_new_process(&k->list[i].executor, setup, name, err);
		rc = cannot_be(rc) ? 0 : rc;
	}
	if (rc != 0)
		return rc;
	name_here(&k->list[0], name);
	rc = executor_new(&k->list[0].executor, setup, name, err);
	return cannot_be(rc) ? executor_new(&k->list[0].executor, setup, "cpu", err) : rc;
}

int kinds_new(struct kinds *out, struct store *s, const struct executor_setup *setup,
	      const char *device, struct error *err)
{
	struct kinds k = { .n = 0, .exact = true };
	struct listing l = { &k, err };
	int rc = store_each_device(s, see_device, &l, err);

	if (rc == 0 && k.n == 0)
		k.n = 1;
	if (rc == 0)
		rc = device ? executor_new(&k.list[0].executor, setup, device, err)
			    : make_each(&k, setup, err);
	for (uint32_t i = 0; rc == 0 && i < k.n; i++) {
		if (!k.list[i].executor)
			k.list[i].executor = k.list[0].executor;
		k.list[i].exact = is_exact(&k.list[i]);
		k.exact = k.exact && k.list[i].exact;
	}
	if (rc != 0) {
		kinds_free(&k);
		return rc;
	}
	*out = k;
	return 0;
}

void kinds_free(struct kinds *k)
{
	for (uint32_t i = k->n; i-- > 0;)
		if (i == 0 || k->list[i].executor != k->list[0].executor)
			executor_free(k->list[i].executor);
	k->n = 0;
}
