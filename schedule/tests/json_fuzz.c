/* Fuzzes the readers of clusters and plans. Text that is accepted must be written and read again
 * without a change. The first byte of the input chooses between the two formats. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cluster_round(const char *text, size_t size)
{
	struct cluster *c = NULL, *again = NULL;
	struct error err;
	char *out;

	if (cluster_parse(text, size, &c, &err) != 0)
		return;
	out = cluster_format(c);
	if (!out || cluster_parse(out, strlen(out), &again, &err) != 0 ||
	    again->n_nodes != c->n_nodes)
		abort();
	free(out);
	cluster_free(c);
	cluster_free(again);
}

static void plan_round(const char *text, size_t size)
{
	struct plan *p = NULL, *again = NULL;
	struct error err;
	char *out;

	if (plan_parse(text, size, &p, &err) != 0)
		return;
	out = plan_format(p);
	if (!out || plan_parse(out, strlen(out), &again, &err) != 0 ||
	    again->n_microbatches != p->n_microbatches)
		abort();
	free(out);
	plan_free(p);
	plan_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] == 'P')
		plan_round((const char *)data + 1, size - 1);
	else
		cluster_round((const char *)data + 1, size - 1);
	return 0;
}
