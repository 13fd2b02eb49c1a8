/* metrics_test.c - checks the metrics with a parser that knows the grammar of both text formats and
 * Prometheus's conventions for names. tests/metrics_test.sh checks them with parsers of other
 * projects. */
#include "controller/monitor/metrics.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tests/test.h"
#include "controller/monitor/report.h"
#include "controller/tests/views.h"

enum { SERIES = 4096, NAME = 128 };

/* A text that is being parsed. */
struct reader {
	bool open_metrics;
	char family[NAME], type[16];
	char *families[SERIES], *series[SERIES];
	size_t n_families, n_series;
	bool has_end;
};

static bool is_new(char **list, size_t *n, const char *text, size_t length)
{
	for (size_t i = 0; i < *n; i++)
		if (strlen(list[i]) == length && memcmp(list[i], text, length) == 0)
			return false;
	assert_true(*n < SERIES);
	list[(*n)++] = alloc_format("%.*s", (int)length, text);
	return true;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);

	return n > m && strcmp(text + n - m, ending) == 0;
}

static void read_comment(struct reader *r, const char *line)
{
	char name[NAME], rest[256];

	if (strcmp(line, "# EOF") == 0) {
		assert_true(r->open_metrics);
		r->has_end = true;
	} else if (sscanf(line, "# HELP %127s %255[^\n]", name, rest) == 2) {
		assert_true(is_new(r->families, &r->n_families, name, strlen(name)));
		assert_int_equal(strncmp(name, "skippipe_", 9), 0);
		assert_true(ends_with(rest, "."));
		snprintf(r->family, sizeof(r->family), "%s", name);
	} else if (sscanf(line, "# TYPE %127s %15s", name, r->type) == 2) {
		assert_string_equal(name, r->family);
		assert_true(strcmp(r->type, "gauge") == 0 || strcmp(r->type, "counter") == 0 ||
			    (r->open_metrics && strcmp(r->type, "info") == 0));
	} else {
		assert_int_equal(sscanf(line, "# UNIT %127s %255s", name, rest), 2);
		assert_true(r->open_metrics && ends_with(name, rest));
	}
}

/* Parses {name="value",...} and returns the position after it. */
static const char *read_labels(const char *at)
{
	do {
		at++; /* skips the brace or a comma */
		assert_true(isalpha((unsigned char)*at));
		at += strspn(at, "abcdefghijklmnopqrstuvwxyz_");
		assert_int_equal(strncmp(at, "=\"", 2), 0);
		for (at += 2; *at != '"'; at++) {
			assert_true(*at != '\0' && *at != '\n');
			if (*at == '\\') {
				at++;
				assert_true(*at == '\\' || *at == '"' || *at == 'n');
			}
		}
		at++;
	} while (*at == ',');
	assert_int_equal(*at, '}');
	return at + 1;
}

/* Checks that a sample's name is the name of its family, with the ending for its type. */
static void check_name(const struct reader *r, const char *name)
{
	bool is_counter = strcmp(r->type, "counter") == 0;
	const char *ending = !r->open_metrics               ? ""
			     : is_counter                   ? "_total"
			     : strcmp(r->type, "info") == 0 ? "_info"
							    : "";
	char expected[2 * NAME];

	snprintf(expected, sizeof(expected), "%s%s", r->family, ending);
	assert_string_equal(name, expected);
	assert_int_equal(ends_with(name, "_total"), is_counter);
}

static void read_sample(struct reader *r, const char *line)
{
	const char *at = line + strspn(line, "abcdefghijklmnopqrstuvwxyz_");
	char name[NAME], *end;

	snprintf(name, sizeof(name), "%.*s", (int)(at - line), line);
	check_name(r, name);
	if (*at == '{')
		at = read_labels(at);
	assert_int_equal(*at, ' ');
	assert_true(is_new(r->series, &r->n_series, line, (size_t)(at - line)));
	strtod(at + 1, &end);
	assert_true(end > at + 1 && *end == '\0');
}

static size_t read_all(const char *text, size_t size, bool open_metrics)
{
	struct reader *r = alloc_new(sizeof(*r));
	char *copy = alloc_string(text), *line, *rest = copy;
	size_t n;

	assert_int_equal(strlen(text), size);
	assert_int_equal(text[size - 1], '\n');
	r->open_metrics = open_metrics;
	while ((line = strsep(&rest, "\n")) != NULL && *line) {
		assert_false(r->has_end);
		if (*line == '#')
			read_comment(r, line);
		else
			read_sample(r, line);
	}
	assert_int_equal(r->has_end, open_metrics);
	n = r->n_series;
	for (size_t i = 0; i < r->n_families; i++)
		free(r->families[i]);
	for (size_t i = 0; i < r->n_series; i++)
		free(r->series[i]);
	free(copy);
	free(r);
	return n;
}

/* Writes the text to the file that METRICS_TEXT names, for tests/prometheus_test.sh. */
static void give_text(const char *text, size_t size)
{
	const char *path = getenv("METRICS_TEXT");

	if (path)
		assert_int_equal(file_write(path, text, size, FILE_RESULT, NULL), 0);
}

TEST(both_formats_obey_their_grammar_and_have_the_same_series)
{
	struct view v;
	size_t n[2];

	views_fill(&v);
	for (int open = 0; open < 2; open++) {
		size_t size;
		char *text = metrics_text(&v, open, &size);

		n[open] = read_all(text, size, open);
		if (!open)
			give_text(text, size);
		free(text);
	}
	assert_int_equal(n[0], n[1]);
	view_fini(&v);
}

static void expect_line(const char *text, const char *line)
{
	const char *found = strstr(text, line);

	if (!found || (found > text && found[-1] != '\n') || found[strlen(line)] != '\n')
		fail_msg("no line: %s", line);
}

TEST(values_have_base_units_and_texts_are_escaped)
{
	struct view v;
	size_t size;
	char *text;

	views_fill(&v);
	text = metrics_text(&v, false, &size);
	expect_line(text, "skippipe_run_info{run=\"a \\\"quoted\\\\ name\\n\xc3\xa9\",model=\"\","
			  "id=\"0000000000000000\"} 1");
	expect_line(text, "skippipe_phase{phase=\"computing\"} 1");
	expect_line(text, "skippipe_iteration 41");
	expect_line(text, "skippipe_loss 3.25");
	expect_line(text, "skippipe_iteration_seconds 2");
	expect_line(text, "skippipe_collision_wait_seconds_total 0.75");
	expect_line(text, "skippipe_tokens_total 41000");
	expect_line(text, "skippipe_node_heard_timestamp_seconds{node=\"n00\"} 999.5");
	expect_line(text, "skippipe_node_resident_memory_bytes{node=\"n00\"} 4000000000");
	expect_line(text, "skippipe_node_device_ratio{node=\"n01\",state=\"busy\"} 0.25");
	expect_line(text, "skippipe_node_device_ratio{node=\"n01\",state=\"network\"} 0.375");
	assert_null(strstr(text, "device_ratio{node=\"n00\"")); /* not measured */
	assert_null(strstr(text, "device_ratio{node=\"n02\"")); /* node n02 is dead */
	expect_line(text, "skippipe_gpu_utilization_ratio{node=\"n03\"} 0.87");
	expect_line(text, "skippipe_gpu_memory_used_bytes{node=\"n03\"} 1073741824");
	expect_line(text, "skippipe_gpu_power_watts{node=\"n03\"} 350.5");
	expect_line(text, "skippipe_gpu_throttled{node=\"n03\",reason=\"heat\"} 1");
	free(text);
	view_fini(&v);
}

/* Training continues without checkpoints, so only these figures show that writing fails. */
TEST(a_failed_checkpoint_is_shown)
{
	struct view v;
	size_t size;
	char *text;

	views_fill(&v);
	v.nodes[2].state = NODE_LIVE;
	v.status.checkpoint = 20;
	assert_int_equal(view_health(&v, NULL, NULL), VIEW_HEALTHY);
	text = metrics_text(&v, false, &size);
	expect_line(text, "skippipe_checkpoint_iteration 20");
	expect_line(text, "skippipe_checkpoint_failed{node=\"\"} 0");
	free(text);
	v.status.checkpoint_failure = (struct checkpoint_failure){ 40, 3, "n03: no space" };
	assert_int_equal(view_health(&v, NULL, NULL), VIEW_DEGRADED);
	text = metrics_text(&v, false, &size);
	expect_line(text, "skippipe_checkpoint_failed{node=\"n03\"} 1");
	expect_line(text, "skippipe_healthy 0");
	free(text);
	text = report_text(&v, &size);
	assert_non_null(
		strstr(text, "checkpoint of it40 failed: n03: no space; the newest is of it20"));
	assert_non_null(strstr(text, "\"failure\":{\"iteration\":40,\"node\":3,"));
	free(text);
	v.status.phase = PHASE_FINISHED;
	assert_int_equal(view_health(&v, NULL, NULL), VIEW_STOPPED);
	view_fini(&v);
}

TEST(a_dead_node_is_counted_and_has_no_figures)
{
	struct view v;
	size_t size;
	char *text;

	views_fill(&v);
	text = metrics_text(&v, true, &size);
	expect_line(text, "skippipe_nodes{state=\"dead\"} 1");
	expect_line(text, "skippipe_nodes{state=\"live\"} 3");
	expect_line(text, "skippipe_node_up{node=\"n02\"} 0");
	expect_line(text, "skippipe_node_up{node=\"n01\"} 1");
	expect_line(text, "skippipe_healthy 0");
	assert_null(strstr(text, "resident_memory_bytes{node=\"n02\"}"));
	free(text);
	view_fini(&v);
}
