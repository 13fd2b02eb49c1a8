/* orders.c - parses and executes the commands that change a running test bed. A command is checked
 * completely before it is executed, so a wrong command changes nothing. */
#include "tests/wan/orders.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_WORDS 64
#define MAX_LINE 4096

static const char help[] =
	"link FROM TO SETTING...   changes links: latency_ms X, bandwidth_mbs X, latency_times X,\n"
	"                          bandwidth_times X, loss SHARE, jitter SHARE, cut, restore\n"
	"all SETTING...            changes every link in the same way\n"
	"node NODES STATE...       changes nodes: away, back, up_mbs X, down_mbs X\n"
	"region PLACE STATE...     changes all nodes in a place in the same way\n"
	"reset                     restores everything to its state at the start\n"
	"stats [FROM TO]           prints the traffic of the links\n"
	"nodes                     prints number, address and place of each node\n"
	"cluster                   prints the current links as skippipe.cluster/1\n"
	"FROM, TO, NODES: a number, controller, all, or a place\n";

enum field {
	LATENCY, BANDWIDTH, LATENCY_TIMES, BANDWIDTH_TIMES, LOSS, JITTER, CUT, RESTORE,
	AWAY, BACK, UP, DOWN
};

static const struct word {
	const char *name;
	bool of_nodes, valued;
	double min, max, unit;
} words_of[] = {
	[LATENCY] = { "latency_ms", false, true, 0, 60000, 1e-3 },
	[BANDWIDTH] = { "bandwidth_mbs", false, true, 1e-6, 1e6, 1e6 },
	[LATENCY_TIMES] = { "latency_times", false, true, 0, 1e3, 1 },
	[BANDWIDTH_TIMES] = { "bandwidth_times", false, true, 1e-6, 1e3, 1 },
	[LOSS] = { "loss", false, true, 0, 1, 1 },
	[JITTER] = { "jitter", false, true, 0, 1, 1 },
	[CUT] = { "cut", false, false, 0, 0, 0 },
	[RESTORE] = { "restore", false, false, 0, 0, 0 },
	[AWAY] = { "away", true, false, 0, 0, 0 },
	[BACK] = { "back", true, false, 0, 0, 0 },
	[UP] = { "up_mbs", true, true, 0, 1e6, 1e6 },
	[DOWN] = { "down_mbs", true, true, 0, 1e6, 1e6 },
};
enum { N_FIELDS = sizeof(words_of) / sizeof(words_of[0]) };

struct change {
	enum field field;
	double value;
};

/* A command under way. */
struct order {
	const struct map *map;
	struct traffic *traffic;
	const struct orders_start *start;
	const struct orders_counts *counts;
	FILE *reply;
	char text[MAX_LINE];
	char *words[MAX_WORDS];
	int n_words;
	struct change changes[MAX_WORDS];
	int n_changes;
	bool from[MAP_MAX_NODES + 1], to[MAP_MAX_NODES + 1];
};

static int split_words(struct order *o, const char *line, struct error *err)
{
	char *save = NULL;

	if (snprintf(o->text, sizeof(o->text), "%s", line) >= MAX_LINE)
		return error_set(err, -EINVAL, "a line of at most %d letters is expected",
				 MAX_LINE - 1);
	for (char *w = strtok_r(o->text, " \t\r\n", &save); w;
	     w = strtok_r(NULL, " \t\r\n", &save)) {
		if (o->n_words == MAX_WORDS)
			return error_set(err, -EINVAL, "at most %d words are expected", MAX_WORDS);
		o->words[o->n_words++] = w;
	}
	return 0;
}

static int read_value(const struct word *w, const char *text, double *out, struct error *err)
{
	char *end = NULL;
	double v = text ? strtod(text, &end) : 0;

	if (!text || end == text || *end || !isfinite(v) || v < w->min || v > w->max)
		return error_set(err, -EINVAL, "%s: expected a number from %g to %g, got \"%s\"",
				 w->name, w->min, w->max, text ? text : "");
	*out = v * w->unit;
	return 0;
}

/* Parses the words from number `at` on as changes, of nodes or of links. At least one change is
 * required. */
static int read_changes(struct order *o, int at, bool of_nodes, struct error *err)
{
	char known[200] = "";

	for (int f = 0; f < N_FIELDS; f++)
		if (words_of[f].of_nodes == of_nodes)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
				 *known ? ", " : "", words_of[f].name);
	if (at >= o->n_words)
		return error_set(err, -EINVAL, "%s: expected one of %s", o->words[0], known);
	while (at < o->n_words) {
		struct change *c = &o->changes[o->n_changes++];
		const char *name = o->words[at++];
		int f = 0, rc;

		while (f < N_FIELDS && (words_of[f].of_nodes != of_nodes ||
					strcmp(name, words_of[f].name) != 0))
			f++;
		if (f == N_FIELDS)
			return error_set(err, -EINVAL, "\"%s\": expected one of %s", name, known);
		*c = (struct change){ .field = (enum field)f };
		if (!words_of[f].valued)
			continue;
		rc = read_value(&words_of[f], at < o->n_words ? o->words[at] : NULL, &c->value,
				err);
		if (rc != 0)
			return rc;
		at++;
	}
	return 0;
}

/* ---- links ---- */

static void change_link(struct traffic_link *l, const struct traffic_link *initial,
			const struct change *c)
{
	switch (c->field) {
	case LATENCY: l->latency_s = c->value; break;
	case BANDWIDTH: l->bandwidth_bytes_per_s = c->value; break;
	case LATENCY_TIMES: l->latency_s = initial->latency_s * c->value; break;
	case BANDWIDTH_TIMES:
		l->bandwidth_bytes_per_s = initial->bandwidth_bytes_per_s * c->value;
		break;
	case LOSS: l->loss = c->value; break;
	case JITTER: l->jitter = c->value; break;
	case CUT: l->cut = true; break;
	default: l->cut = false; break;
	}
}

/* Changes the selected links. A link that the map does not have stays absent. */
static int change_links(const struct order *o, struct error *err)
{
	uint32_t n = map_nodes(o->map);
	int changed = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			struct traffic_link initial = map_link(o->map, i, j);

			if (i == j || !o->from[i] || !o->to[j] || initial.latency_s < 0 ||
			    initial.bandwidth_bytes_per_s <= 0)
				continue;
			for (int k = 0; k < o->n_changes; k++)
				change_link(traffic_link(o->traffic, i, j), &initial,
					    &o->changes[k]);
			changed++;
		}
	}
	return changed ? 0 : error_set(err, -EINVAL, "there is no such link");
}

static int find_pairs(struct order *o, const char *from, const char *to, struct error *err)
{
	int rc = map_find(o->map, from, o->from, err);

	return rc == 0 ? map_find(o->map, to, o->to, err) : rc;
}

static int do_links(struct order *o, struct error *err)
{
	bool all = strcmp(o->words[0], "all") == 0;
	int rc;

	if (!all && o->n_words < 3)
		return error_set(err, -EINVAL, "link: expected FROM, TO and a setting");
	rc = all ? find_pairs(o, "all", "all", err) : find_pairs(o, o->words[1], o->words[2], err);
	if (rc == 0)
		rc = read_changes(o, all ? 1 : 3, false, err);
	return rc == 0 ? change_links(o, err) : rc;
}

/* ---- nodes ---- */

static void change_node(struct traffic_node *node, const struct change *c)
{
	switch (c->field) {
	case AWAY: node->away = true; break;
	case BACK: node->away = false; break;
	case UP: node->up_bytes_per_s = c->value; break;
	default: node->down_bytes_per_s = c->value; break;
	}
}

static bool is_place(const struct map *m, const char *word)
{
	uint32_t i = 0;

	while (i < map_nodes(m) && strcmp(word, map_place(m, i)) != 0)
		i++;
	return i < map_nodes(m);
}

static int do_nodes(struct order *o, struct error *err)
{
	int rc;

	if (o->n_words < 2)
		return error_set(err, -EINVAL, "%s: expected nodes and a state", o->words[0]);
	if (strcmp(o->words[0], "region") == 0 && !is_place(o->map, o->words[1]))
		return error_set(err, -EINVAL, "\"%s\": expected a place such as %s", o->words[1],
				 map_place(o->map, 0));
	rc = map_find(o->map, o->words[1], o->from, err);
	if (rc == 0)
		rc = read_changes(o, 2, true, err);
	for (uint32_t i = 0; rc == 0 && i < map_nodes(o->map); i++)
		for (int k = 0; o->from[i] && k < o->n_changes; k++)
			change_node(traffic_node(o->traffic, i), &o->changes[k]);
	return rc;
}

void orders_reset(const struct map *m, struct traffic *t, const struct orders_start *start)
{
	for (uint32_t i = 0; i < map_nodes(m); i++) {
		*traffic_node(t, i) =
			(struct traffic_node){ .up_bytes_per_s = start->up_bytes_per_s,
					       .down_bytes_per_s = start->down_bytes_per_s };
		for (uint32_t j = 0; j < map_nodes(m); j++) {
			struct traffic_link *l = traffic_link(t, i, j), initial = map_link(m, i, j);

			l->latency_s = initial.latency_s;
			l->bandwidth_bytes_per_s = initial.bandwidth_bytes_per_s;
			l->loss = start->loss;
			l->jitter = start->jitter;
			l->cut = false;
		}
	}
}

/* ---- queries and the table of commands ---- */

void orders_nodes(const struct map *m, FILE *reply)
{
	for (uint32_t i = 0; i < map_nodes(m); i++) {
		uint32_t a = map_address(i);

		fprintf(reply, "%u %u.%u.%u.%u %s\n", i, a >> 24, a >> 16 & 255, a >> 8 & 255,
			a & 255, map_place(m, i));
	}
}

static int do_stats(struct order *o, struct error *err)
{
	const struct orders_counts *counts = o->counts;
	uint32_t n = map_nodes(o->map);
	bool named = o->n_words == 3;
	int rc;

	if (o->n_words == 2)
		return error_set(err, -EINVAL, "stats: expected FROM and TO, or nothing");
	rc = named ? find_pairs(o, o->words[1], o->words[2], err) :
		     find_pairs(o, "all", "all", err);
	if (rc != 0)
		return rc;
	fprintf(o->reply,
		"router delivered %llu late_mean_ms %.3f late_most_ms %.3f held %zu strays %llu "
		"refused %llu\n", (unsigned long long)counts->delivered,
		counts->delivered ? 1e3 * counts->late_sum_s / (double)counts->delivered : 0,
		1e3 * counts->late_max_s, traffic_held(o->traffic),
		(unsigned long long)counts->strays, (unsigned long long)counts->refused);
	fprintf(o->reply, "from to sent_packets sent_bytes arrived_packets arrived_bytes lost "
			  "overflowed cut_off\n");
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			const struct traffic_link *l = traffic_link(o->traffic, i, j);

			if (i == j || !o->from[i] || !o->to[j] ||
			    (!named && !l->sent_packets))
				continue;
			fprintf(o->reply, "%u %u %llu %llu %llu %llu %llu %llu %llu\n", i, j,
				(unsigned long long)l->sent_packets,
				(unsigned long long)l->sent_bytes,
				(unsigned long long)l->arrived_packets,
				(unsigned long long)l->arrived_bytes, (unsigned long long)l->lost,
				(unsigned long long)l->overflowed,
				(unsigned long long)l->cut_off);
		}
	}
	return 0;
}

static int do_cluster(struct order *o, struct error *err)
{
	char *text = map_format(o->map, o->traffic);

	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	fprintf(o->reply, "%s\n", text);
	free(text);
	return 0;
}

static int do_names(struct order *o, struct error *err)
{
	(void)err;
	orders_nodes(o->map, o->reply);
	return 0;
}

static int do_reset(struct order *o, struct error *err)
{
	(void)err;
	orders_reset(o->map, o->traffic, o->start);
	return 0;
}

static int do_help(struct order *o, struct error *err)
{
	(void)err;
	fputs(help, o->reply);
	return 0;
}

static const struct verb {
	const char *name;
	int max_words;
	int (*run)(struct order *o, struct error *err);
} verbs[] = {
	{ "link", MAX_WORDS, do_links }, { "all", MAX_WORDS, do_links },
	{ "node", MAX_WORDS, do_nodes }, { "region", MAX_WORDS, do_nodes },
	{ "reset", 1, do_reset }, { "stats", 3, do_stats },
	{ "nodes", 1, do_names }, { "cluster", 1, do_cluster },
	{ "help", 1, do_help },
};

static int do_order(struct order *o, struct error *err)
{
	const char *name = o->n_words ? o->words[0] : "";

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(name, verbs[i].name) != 0)
			continue;
		if (o->n_words > verbs[i].max_words)
			return error_set(err, -EINVAL, "\"%s\": unexpected (see help)",
					 o->words[verbs[i].max_words]);
		return verbs[i].run(o, err);
	}
	return error_set(err, -EINVAL,
			 "\"%s\": expected link, all, node, region, reset, stats, nodes, cluster "
			 "or help", name);
}

int orders_do(const struct map *m, struct traffic *t, const struct orders_start *start,
	      const struct orders_counts *counts, const char *line, FILE *reply, struct error *err)
{
	struct order *o = alloc_new(sizeof(*o));
	int rc;

	o->map = m;
	o->traffic = t;
	o->start = start;
	o->counts = counts;
	o->reply = reply;
	rc = split_words(o, line, err);
	if (rc == 0)
		rc = do_order(o, err);
	free(o);
	return rc;
}
