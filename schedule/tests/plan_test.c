/* Tests the reader and writer of plans, and the checker, which must name each broken rule. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

static const char *const small =
	"{\"format\":\"skippipe.plan/"
	"1\",\"assignment\":[[0],[1]],\"path_length\":2,\"skip_share\":30,\"overlap_sync\":true,"
	"\"always_visited\":[1,0],"
	"\"microbatches\":[{\"id\":4,\"data_node\":0,\"path\":[0,1]},"
	"{\"id\":2,\"data_node\":0,\"path\":[0,1],\"release_s\":1.5}],"
	"\"order\":{\"1\":[[2,\"F\"],[4,\"B\"]]},"
	"\"predicted\":{\"iteration_s\":3,\"sync_s\":1,\"collisions\":2,\"collision_wait_s\":1,"
	"\"lower_bound_s\":2,\"idle_fraction\":0.5,\"exposure\":[2,2],"
	"\"total_s\":6},"
	"\"search\":{\"algorithm\":\"best\",\"seed\":9,\"evaluations\":7,\"elapsed_s\":0.25,"
	"\"history\":[[0.1,4],[0.2,3]]}}";

static int parse(const char *text, struct plan **p, struct error *err)
{
	err->text[0] = '\0';
	return plan_parse(text, strlen(text), p, err);
}

TEST(reads_all_keys_and_writes_them_back)
{
	struct plan *p, *again;
	struct error err;
	char *text;

	assert_int_equal(parse(small, &p, &err), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(p->n_microbatches, 2);
		assert_int_equal(p->microbatches[0].id, 2); /* microbatches are sorted by id */
		assert_true(p->microbatches[0].release_s == 1.5);
		assert_int_equal(p->always, 3);
		assert_int_equal(p->skip_share, 30);
		assert_true(p->overlap_sync && p->predicted.total_s == 6);
		assert_int_equal(p->orders[0].n_tasks, 2);
		assert_int_equal(p->orders[0].tasks[1].kind, TASK_BACKWARD);
		assert_int_equal(p->predicted.exposure[1], 2);
		assert_int_equal(p->search.seed, 9);
		assert_true(p->search.history[1][0] == 0.2);
		if (round == 0) {
			text = plan_format(p);
			assert_non_null(text);
			assert_int_equal(parse(text, &again, &err), 0);
			free(text);
		} else {
			again = plan_copy(p);
			assert_non_null(again);
		}
		plan_free(p);
		p = again;
	}
	plan_free(p);
}

static void refuse(const char *from, const char *to, const char *word)
{
	char text[2048];
	const char *at = strstr(small, from);
	struct plan *p = NULL;
	struct error err;

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
	assert_int_equal(parse(text, &p, &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not name %s", err.text, word);
}

TEST(refuses_by_name)
{
	refuse("plan/1", "plan/2", "format");
	refuse("\"path_length\":2", "\"path_length\":0", "path_length");
	refuse("\"path_length\":2", "\"path\":2", "path");
	refuse("\"overlap_sync\":true", "\"overlap_sync\":1", "overlap_sync");
	refuse("\"skip_share\":30", "\"skip_share\":0", "skip_share");
	refuse("\"skip_share\":30", "\"skip_share\":100", "skip_share");
	refuse("\"always_visited\":[1,0]", "\"always_visited\":[0,2]", "always_visited[1]");
	refuse("\"always_visited\":[1,0]", "\"always_visited\":1", "always_visited");
	refuse("[[0],[1]]", "[[0],1]", "assignment[1]");
	refuse("[[0],[1]]", "[[0],[\"a\"]]", "assignment[1]");
	refuse("\"id\":4", "\"id\":2", "twice");
	refuse("\"path\":[0,1]", "\"path\":[]", "microbatches[0].path");
	refuse("\"release_s\":1.5", "\"release_s\":-1", "microbatches[1].release_s");
	refuse("[2,\"F\"]", "[2,\"X\"]", "order.1[0]");
	refuse("{\"1\":", "{\"one\":", "order");
	refuse("\"sync_s\"", "\"sink_s\"", "predicted.sink_s");
	refuse("[0.2,3]", "[0.2]", "search.history[1]");
}

/* Checks a plan that breaks a rule on purpose, and expects the rule's name. */
static void breaches(const struct cluster *c, const struct plan *p, const char *name)
{
	struct simulation *s = NULL;
	struct check_report report;
	bool found = false;
	int rc = simulate(c, p, &s, NULL);

	check_plan(c, p, rc == 0 ? s : NULL, NULL, &report);
	for (int i = 0; i < report.n_breaches; i++)
		found = found || strncmp(report.breaches[i], name, strlen(name)) == 0;
	if (!found)
		fail_msg("%s is not among the %d breaches", name, report.n_breaches);
	check_report_fini(&report);
	simulation_free(s);
}

static int count_breaches(const struct cluster *c, const struct plan *p)
{
	struct simulation *s = NULL;
	struct check_report report;
	int n;

	assert_int_equal(simulate(c, p, &s, NULL), 0);
	check_plan(c, p, s, NULL, &report);
	n = report.n_breaches;
	check_report_fini(&report);
	simulation_free(s);
	return n;
}

/* In the published plan the first microbatch visits nodes 0, 14, 6, 12 of stages 0, 1, 2, 3. */
TEST(each_broken_rule_is_named)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct plan *p = fixture_plan("published_ca.json");
	int *path = p->microbatches[0].path, was[4], memory = c->nodes[14].memory;

	memcpy(was, path, sizeof(was));
	assert_int_equal(count_breaches(c, p), 0);
	memcpy(path, (int[]){ 0, 6, 14, 12 }, sizeof(was)); /* an exchange is legal */
	assert_int_equal(count_breaches(c, p), 0);
	/* Two overlapping exchanges are illegal. */
	memcpy(path, (int[]){ 0, 12, 6, 14 }, sizeof(was));
	breaches(c, p, "CC2");
	memcpy(path, (int[]){ 0, 12, 14, 6 }, sizeof(was)); /* stage 3 before stage 1 is illegal */
	breaches(c, p, "CC2");
	memcpy(path, (int[]){ 3, 14, 6, 12 }, sizeof(was)); /* another microbatch's data node */
	breaches(c, p, "CC1");
	memcpy(path, (int[]){ 14, 0, 6, 12 }, sizeof(was));
	breaches(c, p, "CC1");
	memcpy(path, (int[]){ 0, 14, 6, 5 }, sizeof(was)); /* stage 4 instead of stage 3 */
	breaches(c, p, "CC3");
	memcpy(path, (int[]){ 0, 14, 15, 12 }, sizeof(was)); /* visits stage 1 twice */
	breaches(c, p, "shape");
	memcpy(path, was, sizeof(was));
	/* The plan is refused even if only the link for the return is missing */
	c->delay_s[6 * 20 + 14] = -1;
	breaches(c, p, "shape: microbatch 0: no return link from node 6 to 14");
	c->delay_s[6 * 20 + 14] = 1;
	p->microbatches[0].length = 3;
	breaches(c, p, "shape");
	p->microbatches[0].length = 4;
	p->n_microbatches--;
	breaches(c, p, "batch");
	p->n_microbatches++;
	p->assigned[0] = 3;
	breaches(c, p, "shape: node 3 is assigned twice");
	p->assigned[0] = 0;
	assert_int_equal(count_breaches(c, p), 0);
	/* The trace was made with more memory than the node now has. */
	struct simulation *s;
	struct check_report report;

	assert_int_equal(simulate(c, p, &s, NULL), 0);
	c->nodes[14].memory = 1;
	check_plan(c, p, s, NULL, &report);
	assert_int_equal(report.n_breaches, 1);
	assert_non_null(strstr(report.breaches[0], "TC1: node 14"));
	check_report_fini(&report);
	c->nodes[14].memory = memory;
	/* A trace in which a microbatch never gives its slot of node 0 back. */
	for (int i = s->n_tasks - 1; i >= 0; i--) {
		if (s->tasks[i].node == 0 && s->tasks[i].kind == TASK_BACKWARD) {
			s->tasks[i].kind = TASK_LOSS;
			break;
		}
	}
	check_plan(c, p, s, NULL, &report);
	assert_int_equal(report.n_breaches, 1);
	assert_string_equal(report.breaches[0], "TC1: some microbatch never leaves node 0");
	check_report_fini(&report);
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
}
