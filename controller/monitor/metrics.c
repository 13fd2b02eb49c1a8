/* metrics.c - the names and values of all metrics.
 *
 * Names follow the conventions of Prometheus: base units, counters that end with _total, and only
 * labels with a limited number of values. Times of the plan are converted to real seconds. Values
 * of a node that has left are omitted, so that nobody mistakes old values for present ones. */
#include "controller/monitor/metrics.h"

#include <stdio.h>

#include "controller/monitor/exposition.h"
#include "controller/monitor/view.h"

static void add_one(struct exposition *e, enum metric_type type, const char *name, const char *help,
		    double value)
{
	exposition_family(e, type, name, help);
	exposition_add(e, value, NULL);
}

static void add_gauge(struct exposition *e, const char *name, const char *help, double value)
{
	add_one(e, METRIC_GAUGE, name, help, value);
}

static void add_counter(struct exposition *e, const char *name, const char *help, double value)
{
	add_one(e, METRIC_COUNTER, name, help, value);
}

/* ---- the run ---- */

static void add_run(struct exposition *e, const struct view *v)
{
	const struct msg_see_status *s = &v->status;
	char id[24];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)v->run.run);
	exposition_family(e, METRIC_INFO, "skippipe_build_info", "Version of the controller.");
	exposition_add(e, 1, "version", SKIPPIPE_VERSION, NULL);
	exposition_family(e, METRIC_INFO, "skippipe_run_info", "The run and its model.");
	exposition_add(e, 1, "run", v->run.name, "model", v->run.model, "id", id, NULL);
	exposition_family(e, METRIC_GAUGE, "skippipe_phase", "1 for the run's present phase.");
	for (unsigned p = 0; p <= PHASE_LAST; p++)
		exposition_add(e, p == s->phase, "phase", phase_name(p), NULL);
	add_gauge(e, "skippipe_healthy", "1 if the run trains with all of its nodes.",
		  view_health(v, NULL, NULL) == VIEW_HEALTHY);
	add_gauge(e, "skippipe_start_timestamp_seconds", "When this controller started.",
		  (double)v->run.started_wall_us * 1e-6);
	add_gauge(e, "skippipe_view_timestamp_seconds", "When these values were copied.",
		  (double)v->wall_us * 1e-6);
	add_gauge(e, "skippipe_stages", "Stages of the model.", s->n_stages);
	add_gauge(e, "skippipe_path_stages", "Stages that a skipping microbatch visits.",
		  s->path_length);
	add_gauge(e, "skippipe_faults_active", "Injected faults that are active.", s->faults);
}

/* ---- training ---- */

static void add_last(struct exposition *e, const struct view *v)
{
	const struct msg_see_iteration *i = &v->last;

	if (!v->has_last)
		return;
	if (!v->run.rehearsal)
		add_gauge(e, "skippipe_loss", "Training loss of the newest iteration.",
			  (double)i->loss);
	add_gauge(e, "skippipe_gradient_norm", "Norm of the gradient in the newest iteration.",
		  (double)i->gradient_norm);
	add_gauge(e, "skippipe_learning_rate", "Learning rate of the newest iteration.",
		  (double)i->lr);
	add_gauge(e, "skippipe_commit_timestamp_seconds",
		  "When the newest iteration was committed.", (double)i->wall_us * 1e-6);
	add_gauge(e, "skippipe_tokens_per_second", "Tokens trained in a second, newest iteration.",
		  (double)i->tokens_per_s);
	add_gauge(e, "skippipe_commit_interval_seconds", "Time between the two newest commits.",
		  (double)i->real_s);
}

/* Plan seconds are real seconds divided by the time scale of an emulated network. */
static void add_prediction(struct exposition *e, const struct view *v)
{
	const struct msg_see_iteration *i = &v->last;
	double unit_s = v->run.time_scale > 0 ? v->run.time_scale : 1;

	if (v->has_plan) {
		add_gauge(e, "skippipe_plan_epoch", "Number of the plan in force.",
			  (double)v->plan.epoch);
		add_gauge(e, "skippipe_plan_iteration_seconds",
			  "Time of an iteration by the plan in force, to its last backward pass.",
			  (double)v->plan.iteration_s * unit_s);
		add_gauge(e, "skippipe_plan_bound_seconds",
			  "Lower bound of the time of an iteration, from the plan's search.",
			  (double)v->plan.lower_bound_s * unit_s);
	}
	if (!v->has_last)
		return;
	add_gauge(e, "skippipe_iteration_seconds",
		  "Time of the newest iteration, to its last backward pass.",
		  (double)i->iteration_s * unit_s);
	add_gauge(e, "skippipe_iteration_predicted_seconds",
		  "Predicted time of the newest iteration, to its last backward pass.",
		  (double)i->predicted_s * unit_s);
	add_gauge(e, "skippipe_sum_seconds",
		  "Time of the sums after the last backward pass, newest iteration.",
		  (double)i->sync_s * unit_s);
	add_gauge(e, "skippipe_sum_predicted_seconds",
		  "Predicted time of the sums after the last backward pass, newest iteration.",
		  (double)i->predicted_sync_s * unit_s);
	add_gauge(e, "skippipe_idle_ratio",
		  "Share of the nodes' time without a task, newest iteration.",
		  (double)i->idle_fraction);
	add_gauge(e, "skippipe_goodput_ratio",
		  "Share of the nodes' time that ends in commits, newest 32 iterations.",
		  v->goodput);
}

static void add_totals(struct exposition *e, const struct view *v)
{
	const struct curve_totals *t = &v->totals;
	double unit_s = v->run.time_scale > 0 ? v->run.time_scale : 1;

	add_gauge(e, "skippipe_iteration", "Committed iterations of the run.",
		  (double)v->status.committed);
	add_gauge(e, "skippipe_iterations_wanted", "Iterations that the run should do; 0: no end.",
		  (double)v->run.iterations);
	if (v->has_validation)
		add_gauge(e, "skippipe_validation_loss", "Newest validation loss.",
			  (double)v->validation.loss);
	add_counter(e, "skippipe_iterations_total", "Iterations committed by this controller.",
		    (double)t->iterations);
	add_counter(e, "skippipe_tokens_total", "Tokens in the iterations of this controller.",
		    (double)t->iterations * (double)v->run.tokens_per_iteration);
	add_counter(e, "skippipe_collisions_total",
		    "Tasks that waited because another microbatch used their node.",
		    (double)t->collisions);
	add_counter(e, "skippipe_collision_wait_seconds_total", "Time that these tasks waited.",
		    t->wait_s * unit_s);
	add_counter(e, "skippipe_rerun_microbatches_total", "Microbatches that ran again.",
		    (double)t->rerun);
}

static void add_checkpoint(struct exposition *e, const struct msg_see_status *s)
{
	const struct checkpoint_failure *f = &s->checkpoint_failure;
	char name[16] = "";

	add_gauge(e, "skippipe_checkpoint_iteration",
		  "Iteration of the newest complete checkpoint; 0: none.", (double)s->checkpoint);
	if (f->iteration > 0 && f->node >= 0)
		snprintf(name, sizeof(name), "n%02d", f->node);
	exposition_family(e, METRIC_GAUGE, "skippipe_checkpoint_failed",
			  "1 if the newest checkpoint failed. node: who could not write.");
	exposition_add(e, f->iteration > 0, "node", name, NULL);
}

/* ---- the controller ---- */

static void add_controller(struct exposition *e, const struct view *v)
{
	add_gauge(e, "skippipe_controller_resident_memory_bytes", "Memory of the controller.",
		  (double)v->process.resident_bytes);
	add_counter(e, "skippipe_controller_cpu_seconds_total", "Processor time of the controller.",
		    v->process.cpu_s);
	add_counter(e, "skippipe_controller_resent_frames_total",
		    "Messages that the controller sent again.", (double)v->process.resent);
	add_counter(e, "skippipe_refused_messages_total",
		    "Connections and messages that the controller and its agents refused.",
		    (double)v->status.refused);
	exposition_family(e, METRIC_COUNTER, "skippipe_journal_lines_total",
			  "Lines of the journal since this controller started.");
	for (unsigned k = 0; k <= NOTE_LAST; k++)
		exposition_add(e, (double)v->notes[k], "kind", note_name(k), NULL);
	exposition_family(e, METRIC_COUNTER, "skippipe_alert_deliveries_total",
			  "Calls of --on-alert and --alert-url. dropped: beyond the limits.");
	exposition_add(e, (double)v->alerts.delivered, "result", "delivered", NULL);
	exposition_add(e, (double)v->alerts.failed, "result", "failed", NULL);
	exposition_add(e, (double)v->alerts.dropped, "result", "dropped", NULL);
}

/* ---- nodes ---- */

enum { NODE_NAME = 8 };

static const char *name_of(const struct msg_see_node *n, char name[NODE_NAME])
{
	snprintf(name, NODE_NAME, "n%02u", n->node);
	return name;
}

static bool has_process(const struct msg_see_node *n)
{
	enum node_presence p = node_presence(n->state);

	return p == NODE_COMES || p == NODE_TAKES_PART;
}

static double real_unit_s(const struct view *v)
{
	return v->run.time_scale > 0 ? v->run.time_scale : 1;
}

/* A metric with one value for each node whose process runs. */
struct node_metric {
	enum metric_type type;
	const char *name, *help;
	double (*value)(const struct view *v, const struct msg_see_node *n);
};

#define VALUE(function, expression) \
	static double function(const struct view *v, const struct msg_see_node *n) \
	{ \
		(void)v; \
		return (double)(expression); \
	}
VALUE(heard_s, (double)(v->wall_us - (v->status.now_us - n->heard_us)) * 1e-6)
VALUE(resident_bytes, n->rss_bytes)
VALUE(sent_bytes, n->sent_bytes)
VALUE(received_bytes, n->received_bytes)
VALUE(resent_frames, n->resent)
VALUE(is_running, n->running)
VALUE(queued_tasks, n->queued)
VALUE(slots, n->slots)
VALUE(processor_wait, n->waits_percent / 100.0)
VALUE(planned_forward_s, (double)n->forward_s *real_unit_s(v))
VALUE(planned_backward_s, (double)n->backward_s *real_unit_s(v))
VALUE(measured_forward_s, n->measured_forward_s)
VALUE(measured_backward_s, n->measured_backward_s)
#undef VALUE

static const struct node_metric node_metrics[] = {
	{ METRIC_GAUGE, "skippipe_node_heard_timestamp_seconds",
	  "When the node's newest message was sent.", heard_s },
	{ METRIC_GAUGE, "skippipe_node_resident_memory_bytes", "Memory of the node's process.",
	  resident_bytes },
	{ METRIC_COUNTER, "skippipe_node_sent_bytes_total", "Bytes that the node has sent.",
	  sent_bytes },
	{ METRIC_COUNTER, "skippipe_node_received_bytes_total", "Bytes that the node has received.",
	  received_bytes },
	{ METRIC_COUNTER, "skippipe_node_resent_frames_total", "Messages that the node sent again.",
	  resent_frames },
	{ METRIC_GAUGE, "skippipe_node_running", "1 if the node runs a task.", is_running },
	{ METRIC_GAUGE, "skippipe_node_queued_tasks", "Tasks that wait at the node.",
	  queued_tasks },
	{ METRIC_GAUGE, "skippipe_node_slots", "Microbatches that fit into the node at once.",
	  slots },
	{ METRIC_GAUGE, "skippipe_node_processor_wait_ratio",
	  "Share of the time in which the node waits for a processor that other programs use.",
	  processor_wait },
	{ METRIC_GAUGE, "skippipe_node_planned_forward_seconds",
	  "Time of a forward pass that the plan assumes.", planned_forward_s },
	{ METRIC_GAUGE, "skippipe_node_planned_backward_seconds",
	  "Time of a backward pass that the plan assumes.", planned_backward_s },
	{ METRIC_GAUGE, "skippipe_node_measured_forward_seconds",
	  "Time of a forward pass, measured on the device.", measured_forward_s },
	{ METRIC_GAUGE, "skippipe_node_measured_backward_seconds",
	  "Time of a backward pass, measured on the device.", measured_backward_s },
};

static void add_node_states(struct exposition *e, const struct view *v)
{
	uint32_t counts[NODE_LAST + 1];
	char name[NODE_NAME], stage[8];

	view_count_states(v, counts);
	exposition_family(e, METRIC_GAUGE, "skippipe_nodes", "Nodes by state.");
	for (unsigned s = 0; s <= NODE_LAST; s++)
		exposition_add(e, counts[s], "state", node_state_name(s), NULL);
	exposition_family(e, METRIC_GAUGE, "skippipe_node_up",
			  "1 if the node takes part in the run.");
	for (uint32_t i = 0; i < v->n_nodes; i++)
		exposition_add(e, node_presence(v->nodes[i].state) == NODE_TAKES_PART, "node",
			       name_of(&v->nodes[i], name), NULL);
	exposition_family(e, METRIC_INFO, "skippipe_node_info",
			  "Stage, device and machine of the node.");
	for (uint32_t i = 0; i < v->n_nodes; i++) {
		snprintf(stage, sizeof(stage), "%u", v->nodes[i].stage);
		exposition_add(e, 1, "node", name_of(&v->nodes[i], name), "stage", stage, "state",
			       node_state_name(v->nodes[i].state), "device", v->nodes[i].device,
			       "host", v->nodes[i].host, "place", v->nodes[i].location, NULL);
	}
}

static void add_device_times(struct exposition *e, const struct view *v)
{
	char name[NODE_NAME];

	exposition_family(e, METRIC_GAUGE, "skippipe_node_device_ratio",
			  "Share of the newest iteration in which the node's device was busy or "
			  "waited for this.");
	for (uint32_t i = 0; i < v->n_nodes; i++) {
		const struct msg_see_node *n = &v->nodes[i];
		uint64_t total = device_time_total_us(&n->spent);

		for (int s = 0; total > 0 && has_process(n) && s < DEVICE_STATES; s++)
			exposition_add(e, (double)n->spent.us[s] / (double)total, "node",
				       name_of(n, name), "state",
				       device_state_name((enum device_state)s), NULL);
	}
}

static void add_nodes(struct exposition *e, const struct view *v)
{
	char name[NODE_NAME];

	add_node_states(e, v);
	for (size_t k = 0; k < sizeof(node_metrics) / sizeof(node_metrics[0]); k++) {
		const struct node_metric *m = &node_metrics[k];

		exposition_family(e, m->type, m->name, m->help);
		for (uint32_t i = 0; i < v->n_nodes; i++)
			if (has_process(&v->nodes[i]))
				exposition_add(e, m->value(v, &v->nodes[i]), "node",
					       name_of(&v->nodes[i], name), NULL);
	}
	add_device_times(e, v);
}

/* ---- GPUs ---- */

/* A figure that a GPU reports, with its bit in `known`. */
static const struct gpu_metric {
	uint8_t known;
	const char *name, *help;
	double scale;
	size_t at, size;
} gpu_metrics[] = {
#define FIGURE(field) offsetof(struct gpu_figures, field), sizeof(((struct gpu_figures *)0)->field)
	{ GPU_UTILISATION, "skippipe_gpu_utilization_ratio",
	  "Share of the last moments in which the GPU ran a kernel.", 0.01, FIGURE(utilisation) },
	{ GPU_MEMORY, "skippipe_gpu_memory_used_bytes", "Memory of the GPU in use.", 1048576,
	  FIGURE(memory_used_mib) },
	{ GPU_MEMORY, "skippipe_gpu_memory_bytes", "Memory of the GPU.", 1048576,
	  FIGURE(memory_mib) },
	{ GPU_POWER, "skippipe_gpu_power_watts", "Power of the GPU.", 0.001, FIGURE(power_mw) },
	{ GPU_POWER_LIMIT, "skippipe_gpu_power_limit_watts", "Limit of the GPU's power.", 0.001,
	  FIGURE(power_limit_mw) },
	{ GPU_TEMPERATURE, "skippipe_gpu_temperature_celsius", "Temperature of the GPU.", 1,
	  FIGURE(temperature_c) },
#undef FIGURE
};

static double figure_of(const struct gpu_figures *g, const struct gpu_metric *m)
{
	const char *at = (const char *)g + m->at;

	return m->scale * (m->size == 1 ? (double)*(const uint8_t *)at
					: (double)*(const uint32_t *)(const void *)at);
}

static bool has_figure(const struct msg_see_node *n, uint8_t known)
{
	return has_process(n) && (n->gpu.known & known) == known;
}

static void add_gpus(struct exposition *e, const struct view *v)
{
	char name[NODE_NAME], reason[GPU_THROTTLING_TEXT];

	for (size_t k = 0; k < sizeof(gpu_metrics) / sizeof(gpu_metrics[0]); k++) {
		const struct gpu_metric *m = &gpu_metrics[k];

		exposition_family(e, METRIC_GAUGE, m->name, m->help);
		for (uint32_t i = 0; i < v->n_nodes; i++)
			if (has_figure(&v->nodes[i], m->known))
				exposition_add(e, figure_of(&v->nodes[i].gpu, m), "node",
					       name_of(&v->nodes[i], name), NULL);
	}
	exposition_family(e, METRIC_GAUGE, "skippipe_gpu_throttled",
			  "1 if the GPU lowers its clocks for this reason.");
	for (uint32_t i = 0; i < v->n_nodes; i++)
		for (unsigned bit = 1;
		     bit < GPU_THROTTLING_ALL && has_figure(&v->nodes[i], GPU_THROTTLING);
		     bit <<= 1)
			exposition_add(e, (v->nodes[i].gpu.throttling & bit) != 0, "node",
				       name_of(&v->nodes[i], name), "reason",
				       gpu_throttling_text(bit, reason), NULL);
}

char *metrics_text(const struct view *v, bool open_metrics, size_t *size)
{
	struct exposition e;

	exposition_begin(&e, open_metrics);
	add_run(&e, v);
	add_last(&e, v);
	add_prediction(&e, v);
	add_totals(&e, v);
	add_checkpoint(&e, &v->status);
	add_controller(&e, v);
	add_nodes(&e, v);
	add_gpus(&e, v);
	return exposition_end(&e, size);
}
