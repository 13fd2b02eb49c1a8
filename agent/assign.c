/* A stage of the model: built from the seed, or with a replica's weights. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

bool assign_under_way(const struct agent *a)
{
	return a->standing != STAND_UNASSIGNED && a->standing != STAND_READY;
}

void assign_begin(struct agent *a, const struct msg_assign *m)
{
	if (m->assignment < a->assign.assignment) {
		a->dropped++;
		return;
	}
	if (m->stage >= a->limits.n_stages || (m->fetch && m->source >= a->run.n_nodes)) {
		agent_trouble(a, false, "assignment %" PRIu64 ": stage %u from node %u: there is "
			      "no such stage or node", m->assignment, m->stage, m->source);
		return;
	}
	log_line(a->options.log, LOG_INFO, "assigned stage %u, %s", m->stage,
		 m->fetch ? "weights of a replica" : "weights of the seed");
	a->assign = *m;
	a->standing = STAND_WAITING;
}

static void prepare(struct agent *a, int64_t now_us)
{
	report_flush(a, now_us);
	iteration_forget(a);
	queue_clear_evaluations(a->queue);
	tasks_drop_running(a);
	tensors_forget_early(a);
	post_release(&a->state);
	a->state_body = NULL;
	memset(a->fetchers, 0, a->run.n_nodes * sizeof(a->fetchers[0]));
	a->zero_wanted = false; /* measuring leaves it zero */
	a->job = (struct job) { .kind = JOB_PREPARE, .stage = a->assign.stage,
				.from_seed = !a->assign.fetch };
	a->standing = STAND_PREPARING;
}

/* The first node that waits for my weights; false none. */
static bool next_fetcher(const struct agent *a, uint16_t *node)
{
	for (uint16_t i = 0; i < a->run.n_nodes; i++)
		if (a->fetchers[i]) {
			*node = i;
			return true;
		}
	return false;
}

bool assign_next_job(struct agent *a, int64_t now_us)
{
	uint16_t node;

	switch (a->standing) {
	case STAND_WAITING:
		prepare(a, now_us);
		return true;
	case STAND_FETCHING:
		if (!a->state_body)
			return false;
		a->job = (struct job) { .kind = JOB_LOAD, .bytes = a->state_body };
		a->standing = STAND_LOADING;
		return true;
	case STAND_MEASURING:
		a->job = (struct job) { .kind = JOB_MEASURE };
		return true;
	case STAND_READY:
		if (!next_fetcher(a, &node))
			return false;
		a->job = (struct job) { .kind = JOB_STATE };
		return true;
	default:
		return false;
	}
}

static void prepared(struct agent *a, int64_t now_us)
{
	if (a->job.err.text[0])
		log_line(a->options.log, LOG_WARN, "%s: on the CPU instead", a->job.err.text);
	a->parameters = a->job.parameters;
	a->activation = a->job.activation;
	if (a->job.from_seed || a->stage != a->job.stage)
		a->committed = 0;
	a->stage = a->job.stage;
	if (a->standing == STAND_WAITING) /* assigned anew meanwhile */
		return;
	/* From oneself: keep what is held. */
	if (!a->assign.fetch || a->assign.source == a->run.node) {
		a->standing = STAND_MEASURING;
		return;
	}
	if (3 * a->parameters * sizeof(float) + 4096 > TENSOR_MOST_BYTES) {
		agent_trouble(a, true, "stage %u is too large to be fetched", a->stage);
		return;
	}
	a->standing = STAND_FETCHING;
	a->fetch_by_us = now_us + FETCH_WAIT_US +
			 (int64_t)(3 * a->parameters * sizeof(float)) * 1000000 /
				 FETCH_BYTES_PER_S;
	links_fetch(a, now_us);
}

static void ready(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_READY };

	a->hash = a->job.hash;
	if (a->standing == STAND_WAITING)
		return;
	a->standing = STAND_READY;
	a->busy_until_us = now_us;
	m.u.ready.assignment = a->assign.assignment;
	m.u.ready.stage = a->stage;
	m.u.ready.iteration = a->committed;
	m.u.ready.hash = a->hash;
	m.u.ready.forward_s = a->job.forward_s;
	m.u.ready.backward_s = a->job.backward_s;
	m.u.ready.loss_s = a->job.loss_s;
	m.u.ready.corpus_hash = a->job.corpus_hash;
	log_line(a->options.log, LOG_INFO, "ready: stage %u, %zu parameters, %" PRIu64
		 " committed, forward %.4f s, backward %.4f s", a->stage, a->parameters,
		 a->committed, a->job.forward_s, a->job.backward_s);
	agent_tell(a, &m, POST_RELIABLE, now_us);
	tensors_look_again(a, now_us);
}

/* One copy of the weights serves one fetcher: they are rare. */
static void send_state(struct agent *a, int64_t now_us)
{
	struct msg_tensor head = { .kind = TENSOR_STATE, .from = a->run.node,
				   .iteration = a->committed, .index = a->stage };
	uint16_t node;

	if (a->standing != STAND_READY || !next_fetcher(a, &node))
		return;
	a->fetchers[node] = false;
	log_line(a->options.log, LOG_INFO, "weights of stage %u for node %u", a->stage, node);
	links_send(a, node, &head, a->job.out, 3 * a->parameters, now_us, now_us);
	a->job.out = NULL;
}

void assign_job_done(struct agent *a, int64_t now_us)
{
	switch (a->job.kind) {
	case JOB_PREPARE:
		prepared(a, now_us);
		break;
	case JOB_LOAD:
		post_release(&a->state);
		a->state_body = NULL;
		a->committed = a->state_iteration;
		if (a->standing == STAND_LOADING)
			a->standing = STAND_MEASURING;
		break;
	case JOB_MEASURE:
		ready(a, now_us);
		break;
	default:
		send_state(a, now_us);
	}
}

/* Takes the message over when it is the state that was asked for. */
void assign_state_arrived(struct agent *a, struct post_message *m, const struct msg *t)
{
	const struct msg_tensor *head = &t->u.tensor;

	if (a->standing != STAND_FETCHING || a->state_body || head->from != a->assign.source ||
	    head->index != a->stage || t->body_size != 3 * a->parameters * sizeof(float)) {
		a->refused++;
		return;
	}
	post_keep(a->tensors, m);
	a->state = *m;
	a->state_body = t->body;
	a->state_iteration = head->iteration;
}

void assign_check_time(struct agent *a, int64_t now_us)
{
	if (a->standing != STAND_FETCHING || a->state_body || now_us < a->fetch_by_us)
		return;
	agent_trouble(a, false, "node %u did not send the weights of stage %u",
		      a->assign.source, a->stage);
	a->standing = STAND_UNASSIGNED;
}
