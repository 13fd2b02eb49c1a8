/* link_record.c - writes links to the record: cuts, measured delays, and the emulated network. */
#include "controller/network/link_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/members/members.h"
#include "controller/network/failed_links.h"
#include "controller/network/formats.h"
#include "controller/network/link_table.h"
#include "controller/run/disk.h"
#include "controller/run/record.h"

void record_cut(struct run *run, const struct link_failure *k)
{
	record_event(run, json_pack("{s:s, s:i, s:i, s:s, s:f, s:f, s:I}", "event", "link", "from",
				    (int)k->from, "to", (int)k->to, "state",
				    k->active ? "cut" : "back", "quiet_s", k->quiet_s, "expected_s",
				    k->expected_s, "iteration", (json_int_t)run->committed));
}

/* Returns the measured links as the record gives them. Their numbers of bytes are those of the
 * formats with which the run began. */
static struct link_table table_for_record(const struct members *members)
{
	struct link_table table = *members->links;

	formats_set_bytes(&table, &members->run->training, &members->run->options.training.formats);
	return table;
}

static int write_cluster(struct run *run, const struct link_table *table, const struct cluster *c,
			 struct error *err)
{
	char *text = link_table_json(table, c);
	int rc = 0;

	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	if (strcmp(text, store_run_of(run->record.store)->cluster) != 0)
		rc = store_cluster(run->record.store, text, err);
	free(text);
	return rc ? rc : record_folder(run, err);
}

int record_cluster(struct members *members, struct error *err)
{
	struct link_table table = table_for_record(members);

	return write_cluster(members->run, &table, members->run->cluster, err);
}

/* Writes the links and slots of all nodes into the recorded cluster. The task times in the record
 * stay those of the first measurement, because replays and corrections begin with them. */
static int write_late_nodes(struct members *members, struct error *err)
{
	struct link_table table = table_for_record(members);
	const char *text = store_run_of(members->run->record.store)->cluster;
	struct cluster *c;
	int rc = cluster_parse(text, strlen(text), &c, err);

	if (rc != 0)
		return rc;
	for (int i = 0; i < c->n_nodes; i++)
		c->nodes[i].memory = members->run->cluster->nodes[i].memory;
	link_table_apply_all(&table, c);
	rc = write_cluster(members->run, &table, c, err);
	cluster_free(c);
	return rc;
}

void record_late_nodes(struct members *members)
{
	struct run *run = members->run;
	struct error err = { "" };
	int rc;

	if (!members->links || !members->has_unrecorded_nodes || disk_waits(run) ||
	    store_is_locked(run->record.store))
		return;
	rc = write_late_nodes(members, &err);
	members->has_unrecorded_nodes = rc == -EBUSY;
	if (rc != 0)
		log_line(&run->log, LOG_ERROR, "%s", err.text);
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
