/* status.c - finds the state of a run, prints it, and ends with a status that scripts can use.
 *
 * The argument is a run's folder, an address or a token, and `sources` has a row for each of
 * these. For a folder, this module replays the run's record to its end, so that a run can be
 * examined after its controller has died. For an address, it asks a controller's HTTP server.
 * With a token, it connects as a console does. */
#include "controller/monitor/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/process/options.h"
#include "controller/run/journal.h"
#include "controller/monitor/fetch.h"
#include "controller/monitor/report.h"
#include "controller/monitor/server.h"
#include "controller/monitor/view.h"
#include "controller/operator/console_messages.h"
#include "controller/replay/replay.h"
#include "schedule/format/cluster.h"
#include "wire/goodput.h"
#include "wire/invite/snapshot.h"

enum {
	EXIT_UNREACHABLE = 3,
	EXIT_USAGE = 4,
	/* Limit of an answer in bytes; the answer for 1,000 nodes has half a megabyte */
	STATUS_MOST = 16 << 20,
	WAIT_US = 10000000
};

struct status_options {
	const char *place; /* a run's folder, an address or a token; NULL: not given */
	bool json;
};

static const struct options_row rows[] = {
	{ "json", OPTIONS_FLAG, .at = offsetof(struct status_options, json),
	  .help = "print skippipe.status/1 (docs/monitoring.md)" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};

static const struct options_table table_of_status = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.only_word_expected = "the folder of one run, one address or one token",
	.only_word = offsetof(struct status_options, place),
	.intro = "usage: skippipe status RUN-DIR|ADDRESS|TOKEN [--json]\n"
		 "\n"
		 "Prints the state of a run on one screen.\n"
		 "\n"
		 "  RUN-DIR               the folder that records the run, on this machine; its "
		 "controller\n"
		 "                        may be dead\n"
		 "  ADDRESS               PORT or HOST:PORT of the controller's --metrics\n"
		 "  TOKEN                 of skippipe invite --role watcher or console, or @FILE "
		 "with "
		 "one\n",
	.end = "\n"
	       "Exit status:\n"
	       "  0 healthy             the run trains with all of its nodes\n"
	       "  1 degraded            the run has not begun, is paused or stalled, waits for the "
	       "disk,\n"
	       "                        lacks a node, has an injected fault, or its newest "
	       "checkpoint\n"
	       "                        failed\n"
	       "  2 stopped             the run has ended, or no controller runs\n"
	       "  3 unreachable         nothing is known\n"
	       "  4                     wrong usage\n",
};

/* ---- messages that consoles receive ---- */

/* A view that is filled from the messages of a replay or of a controller. */
struct recalled {
	struct view view;
	LIST(struct msg_see_iteration) iterations;
};

/* Forgets the values from an incomplete snapshot. */
static void begin_view(struct recalled *r)
{
	view_fini(&r->view);
	r->iterations.n = 0;
}

/* Stores the state of a node, and overwrites an earlier state of this node. */
static void take_node(struct view *v, const struct msg_see_node *m)
{
	struct msg_see_node *n;
	uint32_t i = 0;

	while (i < v->n_nodes && v->nodes[i].node != m->node)
		i++;
	array_reserve(&v->nodes, &v->room_nodes, i + 1, sizeof(*v->nodes));
	if (i == v->n_nodes)
		v->n_nodes++;
	n = &v->nodes[i];
	*n = *m;
	journal_make_plain(n->name);
	journal_make_plain(n->device);
	journal_make_plain(n->host);
	journal_make_plain(n->location);
	journal_make_plain(n->why);
}

static void take_message(void *context, struct msg *m)
{
	struct recalled *r = context;
	struct view *v = &r->view;

	switch (m->type) {
	case MSG_SEE_RUN: /* a snapshot begins; after a reconnection it begins again */
		begin_view(r);
		v->run = m->u.see_run;
		break;
	case MSG_SEE_NODE:
		take_node(v, &m->u.see_node);
		break;
	case MSG_SEE_ITERATION:
		*LIST_ADD(&r->iterations) = m->u.see_iteration;
		v->last = m->u.see_iteration;
		v->has_last = true;
		break;
	case MSG_SEE_VALIDATION:
		v->validation = m->u.see_validation;
		v->has_validation = true;
		break;
	case MSG_SEE_NOTE:
		if (m->u.see_note.kind != NOTE_ALERT)
			break;
		v->alert = m->u.see_note;
		journal_make_plain(v->alert.text);
		break;
	case MSG_SEE_STATUS:
		v->status = m->u.see_status;
		journal_make_plain(v->status.doing);
		break;
	default:
		break;
	}
}

static void count_goodput(struct recalled *r)
{
	struct view *v = &r->view;

	v->goodput = goodput_of(r->iterations.list, r->iterations.n, v->run.microbatches,
				v->run.time_scale > 0 ? v->run.time_scale : 1);
}

/* ---- a run's folder ---- */

/* Completes the view of a replay that has reached the end of the record. Ages are counted up to
 * the present, because the run may not have ended. The progress of the iteration under way is
 * unknown, because the record does not have it. */
static void finish_view(struct recalled *r)
{
	struct view *v = &r->view;

	v->wall_us = clock_wall_us();
	if (v->has_last)
		v->status.now_us = v->last.at_us + v->wall_us - v->last.wall_us;
	v->status.paused = v->status.phase == PHASE_PAUSED;
	snprintf(v->status.doing, sizeof(v->status.doing), "it%llu: %s",
		 (unsigned long long)v->status.iteration, phase_in_words(v->status.phase));
	count_goodput(r);
}

/* Describes a run that has a record but has not begun. */
static int recall_beginning(const struct store_run *run, struct view *v, struct error *err)
{
	struct cluster *cluster = NULL;
	int rc = cluster_parse(run->cluster, strlen(run->cluster), &cluster, err);

	if (rc != 0)
		return rc;
	snprintf(v->run.name, sizeof(v->run.name), "%s", run->name);
	v->run.n_stages = (uint32_t)cluster->n_stages;
	v->run.started_wall_us = run->started_wall_us;
	v->status.phase = PHASE_GATHERING;
	cluster_free(cluster);
	return 0;
}

static int recall(struct store *store, struct recalled *r, struct error *err)
{
	struct recorded_run *recorded = NULL;
	struct replay *replay = NULL;
	int rc = recorded_run_read(&recorded, store, err);

	if (rc == -ENODATA)
		return recall_beginning(store_run_of(store), &r->view, err);
	if (rc == 0)
		rc = replay_new(&replay, recorded, err);
	if (rc == 0)
		rc = replay_seek(replay, recorded->last_us, err);
	if (rc == 0)
		rc = replay_snapshot(replay, take_message, r, err);
	replay_free(replay);
	recorded_run_free(recorded);
	return rc;
}

static bool is_folder(const char *text)
{
	struct stat st;

	return stat(text, &st) == 0 && S_ISDIR(st.st_mode);
}

static int read_folder(char *folder, json_t **out, struct error *err)
{
	struct recalled r = { .view.n_nodes = 0 };
	struct store *store = NULL;
	/* The lock is tested before the record is read. In the other order, a controller that
	 * ends its run in between would look like a controller that has died. */
	bool has_writer = store_has_writer(folder);
	int rc = store_open(&store, folder, err);

	if (rc == 0)
		rc = recall(store, &r, err);
	if (rc == 0) {
		r.view.is_left = !has_writer;
		finish_view(&r);
		*out = report_pack(&r.view);
	}
	store_close(store);
	view_fini(&r.view);
	free(r.iterations.list);
	return rc;
}

/* ---- an address ---- */

/* Removes http:// and the path of a URL. */
static void strip_url(const char *text, char address[SERVER_ADDRESS])
{
	static const char prefix[] = "http://";

	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0)
		text += sizeof(prefix) - 1;
	snprintf(address, SERVER_ADDRESS, "%.*s", (int)strcspn(text, "/"), text);
}

static bool is_address(const char *text)
{
	char address[SERVER_ADDRESS], host[LINK_ADDRESS_SIZE], port[8];

	strip_url(text, address);
	return server_split(address, host, port);
}

static int read_address(char *text, json_t **out, struct error *err)
{
	char address[SERVER_ADDRESS], *page = NULL;
	size_t size = 0;
	int rc;

	strip_url(text, address);
	rc = fetch_page(address, "/status", STATUS_MOST, WAIT_US, &page, &size, err);
	if (rc == 0) {
		rc = report_read(out, page, size, err);
		if (rc != 0)
			error_prefix(err, rc, "%s", address);
	}
	free(page);
	return rc;
}

/* ---- a token ---- */

static int read_token(char *text, json_t **out, struct error *err)
{
	const struct log log = { .to = stderr, .least = LOG_ERROR, .who = "status" };
	struct recalled r = { .view.n_nodes = 0 };
	int rc = snapshot_read(&(struct snapshot_options){ .token = text,
							   .who = log.who,
							   .log = &log,
							   .take = take_message,
							   .context = &r },
			       err);

	if (rc == 0) {
		r.view.wall_us = clock_wall_us();
		journal_make_plain(r.view.run.name);
		journal_make_plain(r.view.run.model);
		count_goodput(&r);
		*out = report_pack(&r.view);
	}
	view_fini(&r.view);
	free(r.iterations.list);
	return rc;
}

/* ---- the verb `status` ---- */

/* The kinds of arguments that can name a run. The first kind that fits the argument is used. */
static const struct source {
	bool (*suits)(const char *text);
	int (*read)(char *text, json_t **out, struct error *err);
} sources[] = {
	{ is_folder, read_folder },
	{ snapshot_suits, read_token },
	{ is_address, read_address },
};

/* Reads the status from the source that the text names. Overwrites a token in the text, so that
 * no list of processes shows the token. */
static int read_status(char *text, json_t **out, struct error *err)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (sources[i].suits(text))
			return sources[i].read(text, out, err);
	return error_set(err, -ENOENT,
			 "%s: neither a run's folder, a token nor an address HOST:PORT", text);
}

static int print_status(json_t *status, bool json)
{
	int health = (int)report_health(status);

	if (json) {
		json_dumpf(status, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		report_print(stdout, status);
	}
	json_decref(status);
	return health;
}

int status_main(int argc, char **argv)
{
	struct status_options o = { .json = false };
	struct error err = { "" };
	json_t *status = NULL;
	int rc = options_read(&table_of_status, &o, argc, argv, NULL, &err);

	if (rc > 0) {
		options_help(&table_of_status, stdout);
		return 0;
	}
	if (rc == 0 && !o.place)
		rc = error_set(&err, -EINVAL,
			       "expected the folder of a run, an address or a token (see --help)");
	if (rc < 0) {
		fprintf(stderr, "skippipe status: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (read_status((char *)(uintptr_t)o.place, &status, &err) != 0) {
		fprintf(stderr, "skippipe status: %s\n", err.text);
		return EXIT_UNREACHABLE;
	}
	return print_status(status, o.json);
}
