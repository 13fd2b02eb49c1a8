/* link_record.c - writes links to the record: cuts, measured delays, and the emulated network. */
#include "controller/network/link_record.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#include "controller/members/members.h"
#include "controller/network/failed_links.h"
#include "controller/network/formats.h"
#include "controller/network/link_table.h"
#include "controller/run/record.h"

void record_cut(struct run *run, const struct link_failure *k)
{
	record_event(run, json_pack("{s:s, s:i, s:i, s:s, s:f, s:f, s:I}", "event", "link", "from",
				    (int)k->from, "to", (int)k->to, "state",
				    k->active ? "cut" : "back", "quiet_s", k->quiet_s, "expected_s",
				    k->expected_s, "iteration", (json_int_t)run->committed));
}

/* The record gives the bytes in the formats with which the run began. */
int record_cluster(struct members *members, struct error *err)
{
	struct link_table table = *members->links;
	char *text;
	int rc;

	formats_set_bytes(&table, &members->run->training, &members->run->options.training.formats);
	text = link_table_json(&table, members->run->cluster);
	rc = text ? store_cluster(members->run->record.store, text, err)
		  : error_set(err, -ENOMEM, "out of memory");

	free(text);
	return rc ? rc : record_folder(members->run, err);
}

static const char emulated_links[] = "emulated_links"; /* key of the emulated links in the record */

int record_emulated_links(struct members *members, struct error *err)
{
	char *text;
	int rc;

	if (!members->emulated)
		return 0;
	text = link_table_json(members->emulated, members->run->cluster);
	rc = text ? store_set(members->run->record.store, emulated_links, text, err)
		  : error_set(err, -ENOMEM, "out of memory");
	free(text);
	return rc;
}

struct link_table *record_emulated_links_again(const struct members *members)
{
	struct link_table *t;
	struct error ignored;
	char *text;

	if (store_get(members->run->record.store, emulated_links, &text, &ignored) != 0)
		return NULL;
	t = link_table_parse(text);
	free(text);
	if (!t || t->n == members->n)
		return t;
	link_table_free(t);
	return NULL;
}
