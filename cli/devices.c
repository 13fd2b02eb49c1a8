/* Expands the value of --device to a list of devices. */
#include "cli/devices.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/children.h"
#include "cli/verbs.h"

enum { LIST_BYTES = 16384 };

static int add_device(struct devices *d, const char *name, size_t n, const char *suffix,
	       struct error *err)
{
	if (n == 0 || n + strlen(suffix) >= DEVICES_NAME)
		return error_set(err, -EINVAL, "--device: \"%.*s\" is not a device", (int)n, name);
	if (d->n == DEVICES_MOST)
		return error_set(err, -EINVAL, "--device: more than %d devices", DEVICES_MOST);
	snprintf(d->names[d->n++], DEVICES_NAME, "%.*s%s", (int)n, name, suffix);
	return 0;
}

/* Adds every usable GPU. `skippipe-agent --devices` prints a line for each device. The line of a
 * usable device begins with its name, as in "cuda:1 sm_89 ..."; the line of an unusable one begins
 * with the reason. */
static int add_gpus(struct devices *d, const char *suffix, struct error *err)
{
	char path[PATH_MAX], output[LIST_BYTES] = "", *line, *rest = output;
	char *why = "none is listed";
	struct args args = { 0 };
	size_t before = d->n;
	int rc = verbs_program("skippipe-agent", path, sizeof(path), err);

	if (rc != 0)
		return rc;
	args_add(&args, path);
	args_add(&args, "--devices");
	rc = child_output(&args, output, sizeof(output), CHILD_WAIT_US, err);
	args_free(&args);
	while (rc == 0 && (line = strsep(&rest, "\n"))) {
		if (strncmp(line, "cuda:", 5) == 0)
			rc = add_device(d, line, strcspn(line, " "), suffix, err);
		else if (strncmp(line, "cpu:", 4) != 0)
			why = line;
	}
	if (rc == 0 && d->n == before)
		rc = error_set(err, -ENODEV, "--device cuda:all: no GPU can be used: %s", why);
	return rc;
}

bool devices_several(const char *text)
{
	return strchr(text, ',') || strncmp(text, "cuda:all", 8) == 0;
}

int devices_parse(struct devices *out, const char *text, struct error *err)
{
	struct devices d = { .n = 0 };
	int rc = 0;

	for (const char *at = text; rc == 0;) {
		size_t n = strcspn(at, ",");

		if ((n == 8 && strncmp(at, "cuda:all", n) == 0) ||
		    (n == 13 && strncmp(at, "cuda:all:bf16", n) == 0))
			rc = add_gpus(&d, n == 13 ? ":bf16" : "", err);
		else
			rc = add_device(&d, at, n, "", err);
		if (!at[n])
			break;
		at += n + 1;
	}
	if (rc == 0)
		*out = d;
	return rc;
}
