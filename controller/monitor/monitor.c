/* monitor.c - the loop's part in monitoring a run: once a second the loop copies its state into a
 * view. */
#include "controller/monitor/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/process/memory.h"
#include "controller/monitor/alerts.h"
#include "controller/monitor/server.h"
#include "controller/monitor/view.h"
#include "controller/iteration/plan_message.h"
#include "controller/members/announce.h"
#include "controller/members/members.h"
#include "controller/operator/command.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/consoles.h"
#include "controller/run/journal.h"
#include "controller/run/run.h"
#include "wire/goodput.h"

enum {
	COPY_EVERY_US = 1000000,
	CALL_US = 30000000, /* time limit of a call of --on-alert or --alert-url */
	LAST_US = 5000000   /* at the end of the run, time limit for reporting the last alerts */
};

struct monitor {
	const struct operators *operators; /* the run whose state is copied */
	struct server *server;             /* NULL: the run has no --metrics */
	int64_t copy_us;                   /* time of the next copy of the state */
	bool is_copied;                    /* a view is filled, but not published yet */
	struct alerts *alerts; /* NULL: the run has neither --on-alert nor --alert-url */
};

/* ---- the view ---- */

static void copy_process(struct view *v, const struct run *run)
{
	struct post_counters counters;
	struct timespec cpu = { 0 };

	post_count(run->post, &counters);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	v->process = (struct view_process){ memory_resident(), counters.resent_frames,
					    (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9 };
}

/* Replaces control characters in texts that come from agents (journal_make_plain). */
static void make_node_plain(struct msg_see_node *n)
{
	journal_make_plain(n->device);
	journal_make_plain(n->host);
	journal_make_plain(n->location);
	journal_make_plain(n->why);
}

static void copy_nodes(struct view *v, const struct members *members)
{
	struct msg m;

	array_reserve(&v->nodes, &v->room_nodes, members->n, sizeof(*v->nodes));
	v->n_nodes = members->n;
	for (uint32_t i = 0; i < members->n; i++) {
		node_message(&m, &members->list[i], &members->run->cluster->nodes[i],
			     member_work(members->run, &members->list[i]),
			     member_layers(members->run, &members->list[i]), 0);
		v->nodes[i] = m.u.see_node;
		make_node_plain(&v->nodes[i]);
	}
}

static void copy_history(struct view *v, const struct run *run)
{
	const struct curves *curves = &run->record.curves;

	v->totals = curves->totals;
	v->has_last = curves->n_iterations > 0;
	if (v->has_last)
		v->last = curves->iterations[curves->n_iterations - 1];
	v->has_validation = curves->n_validations > 0;
	if (v->has_validation)
		v->validation = curves->validations[curves->n_validations - 1];
	v->goodput = goodput_of(curves->iterations, curves->n_iterations,
				run->training.n_shards * run->training.per_shard, run->unit_s);
}

static void copy_journal(struct view *v, const struct journal *j, struct alerts *alerts)
{
	memcpy(v->notes, j->counts, sizeof(v->notes));
	v->alert = j->newest_alert;
	if (alerts)
		alerts_count(alerts, &v->alerts);
}

static void copy_view(struct view *v, const struct monitor *monitor)
{
	const struct operators *ops = monitor->operators;
	struct msg m;

	v->wall_us = clock_wall_us();
	announce_fill_run(ops->members, &m);
	v->run = m.u.see_run;
	journal_make_plain(v->run.name);
	journal_make_plain(v->run.model);
	consoles_fill_status(ops, &m);
	v->status = m.u.see_status;
	v->has_plan = ops->run->plan != NULL;
	if (v->has_plan)
		describe_plan(&v->plan, ops->run->plan, NULL);
	v->disk_waits = disk_waits(ops->run);
	copy_process(v, ops->run);
	copy_nodes(v, ops->members);
	copy_history(v, ops->run);
	copy_journal(v, &ops->run->journal, monitor->alerts);
}

/* ---- turns ---- */

static void turn_server(struct monitor *m)
{
	const int64_t now_us = m->operators->run->now_us;

	server_turn(m->server, now_us);
	if (now_us >= m->copy_us) {
		copy_view(server_next_view(m->server), m);
		m->is_copied = true;
		m->copy_us = now_us + COPY_EVERY_US;
	}
	if (m->is_copied && server_publish(m->server))
		m->is_copied = false;
}

static void report_failures(struct run *run, struct alerts *alerts)
{
	struct error why = { "" };
	uint64_t n = 0;

	if (!alerts || !alerts_failed(alerts, run->now_us, &n, &why))
		return;
	note(run, NOTE_WARNING, -1, 0, "%llu call%s about alerts failed: %.120s",
	     (unsigned long long)n, n == 1 ? "" : "s", why.text);
}

void monitor_turn(struct monitor *m)
{
	if (!m)
		return;
	report_failures(m->operators->run, m->alerts);
	if (m->server)
		turn_server(m);
}

/* ---- starting and stopping ---- */

static void hear_alert(void *alerts, const struct msg_see_note *alert, int64_t now_us)
{
	alerts_raise(alerts, alert, now_us);
}

static int start_alerts(struct monitor *m, struct run *run, struct error *err)
{
	const struct options_monitor *o = &run->options.mode.monitor;
	const struct alerts_options a = { .command = o->on_alert,
					  .url = o->alert_url,
					  .run = run->options.name,
					  .run_dir = run->options.run_dir,
					  .limit_us = CALL_US };
	int rc;

	if (!o->on_alert && !o->alert_url)
		return 0;
	rc = alerts_start(&m->alerts, &a, err);
	if (rc != 0)
		return rc;
	run->journal.on_alert = hear_alert;
	run->journal.listener = m->alerts;
	return 0;
}

int monitor_start(struct monitor **out, const struct operators *ops, struct error *err)
{
	const struct options_monitor *o = &ops->run->options.mode.monitor;
	struct monitor *m;
	int rc;

	if (!o->metrics && !o->on_alert && !o->alert_url)
		return 0;
	m = *out = alloc_new(sizeof(*m));
	m->operators = ops;
	rc = start_alerts(m, ops->run, err);
	if (rc != 0 || !o->metrics)
		return rc;
	rc = server_open(&m->server, o->metrics, err);
	if (rc != 0)
		return error_prefix(err, rc, "--metrics");
	log_line(&ops->run->log, LOG_INFO, "metrics: http://%s/metrics", server_address(m->server));
	return 0;
}

void monitor_stop(struct monitor *m)
{
	if (!m)
		return;
	m->operators->run->journal.on_alert = NULL;
	alerts_stop(m->alerts, LAST_US);
	server_close(m->server);
	free(m);
}
