/* recorded.c - reads the nodes, the links and the journal from the record of a run: the measured
 * cluster, the newest state of each node, and the warnings and alerts of the journal. */
#include "doctor/run/recorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/names.h"

static void copy_text(char *to, size_t room, const char *from)
{
	if (from && from[0])
		snprintf(to, room, "%s", from);
}

static double cell(const json_t *matrix, uint32_t i, uint32_t j)
{
	return json_number_value(json_array_get(json_array_get(matrix, i), j));
}

/* Reads the links. If the cluster was not measured, the object has no member "links". */
static void read_links(struct picture *p, const json_t *cluster)
{
	const json_t *links = json_object_get(cluster, "links");
	const json_t *latencies = json_object_get(links, "latency_s");
	const json_t *speeds = json_object_get(links, "bandwidth_bytes_per_s");

	for (uint32_t i = 0; links && i < p->n; i++)
		for (uint32_t j = 0; j < p->n; j++) {
			const double latency_s = cell(latencies, i, j);

			if (i != j)
				p->links[i * p->n + j] =
					(struct picture_link){ latency_s < 0    ? LINK_BROKEN
							       : latency_s == 0 ? LINK_UNKNOWN
										: LINK_WORKS,
							       latency_s, cell(speeds, i, j) };
		}
}

static int read_cluster(struct picture *p, const char *text, struct error *err)
{
	struct cluster *c = NULL;
	json_t *o;
	int rc = cluster_parse(text, strlen(text), &c, err);

	if (rc != 0)
		return error_set(err, -EBADMSG, "the recorded cluster is damaged");
	picture_size(p, (uint32_t)c->n_nodes);
	for (uint32_t i = 0; i < p->n; i++) {
		copy_text(p->nodes[i].name, sizeof(p->nodes[i].name), c->nodes[i].name);
		copy_text(p->nodes[i].place, sizeof(p->nodes[i].place), c->nodes[i].location);
		copy_text(p->nodes[i].device, sizeof(p->nodes[i].device), c->nodes[i].device);
		copy_text(p->nodes[i].address, sizeof(p->nodes[i].address), c->nodes[i].address);
	}
	cluster_free(c);
	o = json_loads(text, 0, NULL);
	read_links(p, o);
	json_decref(o);
	return 0;
}

static int take_moment(void *context, const struct store_moment *m)
{
	struct picture *p = context;
	struct picture_node *n;
	int state;

	if (strcmp(m->kind, "node") != 0 || m->node < 0 || (uint32_t)m->node >= p->n)
		return 0;
	n = &p->nodes[m->node];
	state = m->word ? node_state_named(m->word) : -1;
	if (state >= 0) {
		n->state = (unsigned)state;
		n->has_state = true;
	}
	n->why[0] = 0;
	copy_text(n->why, sizeof(n->why), m->text);
	copy_text(n->name, sizeof(n->name), m->name);
	copy_text(n->place, sizeof(n->place), m->place);
	copy_text(n->host, sizeof(n->host), m->host);
	copy_text(n->device, sizeof(n->device), m->device);
	return 0;
}

static int take_note(void *context, const struct store_note *n)
{
	const int kind = note_named(n->kind);
	struct picture_note note = { n->node, kind == NOTE_ALERT, n->iteration, "" };

	if (kind != NOTE_WARNING && kind != NOTE_ALERT && kind != NOTE_AGENT)
		return 0;
	copy_text(note.text, sizeof(note.text), n->text);
	picture_add_note(context, &note);
	return 0;
}

int recorded_read(struct picture *out, const char *folder, struct error *err)
{
	const bool is_running = store_has_writer(folder);
	struct picture p = { .is_running = is_running };
	struct store *s = NULL;
	const struct store_run *run;
	char *emulated = NULL;
	int rc = store_open(&s, folder, err);

	if (rc != 0)
		return rc;
	run = store_run_of(s);
	copy_text(p.version, sizeof(p.version), run->version);
	p.corpus_hash = run->corpus_hash;
	p.is_emulated = store_get(s, "emulated_links", &emulated, NULL) == 0;
	free(emulated);
	rc = read_cluster(&p, run->cluster, err);
	if (rc == 0)
		rc = store_each_moment(s, 0, take_moment, &p, err);
	if (rc == 0)
		rc = store_each_note(s, take_note, &p, err);
	store_close(s);
	if (rc != 0)
		picture_free(&p);
	else
		*out = p;
	return rc;
}
