/* arrivals.c - checks the tensors of peers against the agent's state and passes them on.
 *
 * The checks cover the sender, the destination, the size and the numbers, because a peer may be
 * faulty or late. A tensor that fails a check is counted and dropped. A tensor that arrives early
 * is stored.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/arrivals.h"
#include "agent/execution/tasks.h"
#include "agent/network/measure.h"
#include "agent/network/packet_trains.h"
#include "agent/shared/route.h"
#include "agent/state.h"
#include "agent/sums/reduction.h"
#include "agent/sums/slices.h"
#include "agent/tensors/early.h"
#include "agent/weights/restore.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "base/alloc.h"

/* Limit of the number of iterations by which a correct peer's tensor is ahead of the newest commit
 * that this node knows. The present iteration is one ahead. If a peer has already received the
 * next commit, the peer's iteration is two ahead. */
enum { AHEAD_MOST = 2 };

/* The result of the checks of a tensor. */
enum fate {
	FATE_TAKEN,   /* the tensor was passed on */
	FATE_DROPPED, /* the tensor was too late, and was counted as dropped */
	FATE_EARLY,
	FATE_REFUSED
};

static enum fate drop_tensor(struct tell *tell)
{
	tell->tally.dropped++;
	return FATE_DROPPED;
}

/* Returns true if the tensor's route, position and size are valid, and the position belongs to
 * this node. */
static bool chain_fits(const struct agent *a, const struct msg *m, struct route *r)
{
	const struct msg_tensor *t = &m->u.tensor;

	if (t->n_routes != 1 || route_read(r, &t->routes[0], &a->run.limits) || t->index == 0 ||
	    t->index > route_last(r, t->evaluate))
		return false;
	return (t->kind == TENSOR_ACTIVATION) == (t->index <= r->n_hops) &&
	       route_node(r, t->index) == a->run.welcome.node &&
	       route_node(r, t->index - 1) == t->from &&
	       m->body_size ==
		       links_chain_bytes(&a->modules.links, (enum tensor_kind)t->kind, t->evaluate);
}

/* Returns true if this node knows the format of the tensor. START, EVALUATE or REDUCE announces
 * the format. A tensor that arrives before the announcement is early. */
static bool format_is_known(const struct agent *a, const struct msg_tensor *t)
{
	const struct slices *sum = reduction_slices(a->modules.reduction);

	if (t->kind == TENSOR_PART || t->kind == TENSOR_SUM)
		return sum && slices_iteration(sum) == t->iteration &&
		       slices_attempt(sum) == t->attempt;
	if (t->evaluate)
		return a->iteration.evaluation.n > 0 &&
		       t->iteration == a->iteration.evaluation.iteration;
	return t->iteration == a->progress.iteration;
}

static enum fate report_implausible(struct misuse *misuse, const struct msg_tensor *t,
				    int64_t now_us)
{
	misuse_report_numbers(misuse, t->from,
			      t->kind == TENSOR_ACTIVATION
				      ? "an activation that no computation gives"
				      : "a gradient that no computation gives",
			      now_us);
	return FATE_REFUSED;
}

static bool is_chained(const struct msg_tensor *t)
{
	return t->kind == TENSOR_ACTIVATION || t->kind == TENSOR_GRADIENT;
}

static void drop_decoding(struct codec_job *job)
{
	free(job->room);
	decoding_end(job->owner, false);
}

/* Makes the job that checks an input, and also decodes it unless the stage takes encoded inputs.
 * In the returned job `floats` is NULL if there is no memory. */
static struct codec_job decoding_of(const struct agent *a, const struct msg *m,
				    const struct pieces *pieces)
{
	const struct msg_tensor *t = &m->u.tensor;
	struct codec_job job = { .node = t->from,
				 .codec = links_codec(&a->modules.links, (enum tensor_kind)t->kind,
						      t->evaluate),
				 .n = a->held.activation,
				 .stays_encoded = a->held.takes_encoded,
				 .bytes = (void *)(uintptr_t)m->body,
				 .pieces = *pieces,
				 .drop = drop_decoding };

	job.floats =
		malloc(job.stays_encoded ? codec_bytes(&job.codec, job.n) : job.n * sizeof(float));
	if (pieces->n == 0)
		return job;
	job.skip_bytes = (size_t)((const uint8_t *)m->body - pieces->list[0].data);
	if (job.codec.format == FORMAT_FP32 || job.stays_encoded || !job.floats)
		return job;
	job.room = malloc(m->body_size);
	if (!job.room) {
		free(job.floats);
		job.floats = NULL;
	}
	return job;
}

/* Returns the input that the job has checked, in the format that the stage takes. */
static struct tensor_bytes input_of(const struct codec_job *job)
{
	struct tensor_bytes input = { .at = job->floats };

	if (job->stays_encoded)
		input.codec = job->codec;
	return input;
}

/* Sets *input to the checked input, in the format that the stage takes. FATE_EARLY: a thread must
 * check and decode the tensor first. */
static enum fate find_input(struct agent *a, const struct msg *m, struct early_tensor *e,
			    struct tensor_bytes *input, int64_t now_us)
{
	struct codec_job job;

	e->is_due = true;
	if (!e->due_us)
		e->due_us = now_us;
	if (e->decoding && !e->decoding->has_ended)
		return FATE_EARLY;
	if (e->decoding) {
		if (!e->decoding->is_plausible)
			return report_implausible(&a->modules.misuse, &m->u.tensor, now_us);
		*input = e->decoding->input;
		e->decoding->input.at = NULL;
		device_clock_add(a->modules.device_clock, DEVICE_HOST, e->due_us, now_us);
		link_times_add(&a->modules.link_times.decode, now_us - e->due_us);
		return FATE_TAKEN;
	}
	if (links_use_threads(&a->modules.links) && !e->looked_at)
		return FATE_EARLY;
	job = decoding_of(a, m, &e->message.pieces);
	*input = input_of(&job);
	if (!job.floats) {
		tell_trouble(&a->tell, true, "no memory for an activation");
		return FATE_TAKEN;
	}
	codec_job_run(NULL, &job);
	if (job.plausible)
		return FATE_TAKEN;
	free(job.floats);
	return report_implausible(&a->modules.misuse, &m->u.tensor, now_us);
}

/* Lets a thread check and decode a stored tensor, if it is due. */
static void begin_decoding(struct agent *a, const struct msg *m, struct early_tensor *e)
{
	struct codec_job job;

	if (!e->is_due || e->decoding)
		return;
	job = decoding_of(a, m, &e->message.pieces);
	if (!job.floats) {
		tell_trouble(&a->tell, true, "no memory for an activation");
		return;
	}
	e->decoding = alloc_new(sizeof(*e->decoding));
	e->decoding->input = input_of(&job);
	job.owner = e->decoding;
	codec_threads_add(a->modules.links.codec_threads, &job);
}

void arrivals_decoded(struct agent *a, const struct codec_job *job)
{
	decoding_end(job->owner, job->plausible);
	a->requests.look_again = true;
}

/* Decodes a message. If the message has an activation or gradient, its numbers stay in pieces:
 * m->body begins in the first piece, and m->body_size counts all pieces. Any other message is
 * joined to one piece. The errors are those of msg_decode. After -ENOMEM the message is
 * unchanged. */
static int read_message(const struct agent *a, struct post_message *p, struct msg *m)
{
	const struct piece *first = p->pieces.list;
	int rc = first ? msg_decode(m, first->data, first->size) : -EBADMSG;

	if (rc == -ENOMEM)
		return rc;
	if (rc == 0) {
		if (m->type == MSG_TENSOR && is_chained(&m->u.tensor)) {
			m->body_size += p->size - first->size;
			return 0;
		}
		msg_clear(m);
	}
	if (post_join(a->peers.post, p) < 0)
		return -ENOMEM;
	return msg_decode(m, p->data, p->size);
}

/* Compares a tensor's route with the route that the controller has announced. The controller
 * announces every attempt to all nodes, and the tensor waits for the announcement. If the
 * announced route continues the tensor's route, sets *r to the announced route. Returns true if
 * the tensor is to be used. Otherwise sets *fate to what becomes of the tensor. */
static bool is_of_attempt(struct agent *a, const struct msg_tensor *t, struct route *r,
			  enum fate *fate)
{
	const struct route *known = &a->iteration.routes[r->microbatch];

	*fate = FATE_EARLY;
	if (!known->n_hops || known->attempt < r->attempt)
		return false;
	if (r->attempt < known->attempt && route_continues(r, known) &&
	    route_node(known, t->index - 1) == t->from &&
	    route_node(known, t->index) == a->run.welcome.node)
		*r = *known;
	/* Drops tensors of replaced attempts without a check of their numbers. A faulty sender
	 * may have been repaired in the meantime, and must not be reported for old tensors. */
	if (r->attempt < known->attempt) {
		*fate = drop_tensor(&a->tell);
		return false;
	}
	/* If the routes differ, this node has not yet received the plan of the iteration. */
	return route_equal(known, r);
}

static enum fate take_chain(struct agent *a, const struct msg *m, struct early_tensor *e,
			    int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	uint64_t current = t->evaluate ? a->held.committed : a->held.committed + 1;
	enum fate fate;
	struct route r;
	struct tensor_bytes input;

	if (t->iteration < current)
		return drop_tensor(&a->tell);
	/* Before the controller orders the evaluation, this node knows neither the tensor's
	 * format nor its correct size. */
	if (t->iteration > current || !format_is_known(a, t))
		return FATE_EARLY;
	if (!chain_fits(a, m, &r))
		return FATE_REFUSED;
	/* The tensor is for the stage that this node held earlier. */
	if (route_stage(&r, t->index) != a->held.stage)
		return drop_tensor(&a->tell);
	/* The controller has not ordered this evaluation yet, or must order it again because the
	 * weights have changed. */
	if (t->evaluate && !iteration_needs_input(&a->iteration, &r, t->index))
		return FATE_EARLY;
	if (!t->evaluate && !is_of_attempt(a, t, &r, &fate))
		return fate;
	fate = find_input(a, m, e, &input, now_us);
	if (fate != FATE_TAKEN || !input.at)
		return fate;
	if (t->evaluate)
		iteration_takes_input(&a->iteration, &r, t->index);
	tasks_arrive(a->modules.tasks, &r, t->index, t->evaluate, input, now_us);
	return FATE_TAKEN;
}

/* Returns true if the decoding job of the tensor will check the numbers. */
static bool is_checked_by_job(const struct links *links, const struct msg *m,
			      const struct early_tensor *e)
{
	return is_chained(&m->u.tensor) &&
	       (links_use_threads(links) || e->message.pieces.n > 0);
}

/* Returns true if a correct computation can give these numbers. Gradients of activations are
 * checked too. A faulty sender is thus reported before its gradients affect a sum. format_is_known
 * must hold. */
static bool is_plausible(const struct agent *a, const struct msg *m)
{
	enum tensor_kind kind = (enum tensor_kind)m->u.tensor.kind;
	bool chained = is_chained(&m->u.tensor);
	struct codec codec = { .format = FORMAT_FP32 };
	size_t n = m->body_size / sizeof(float);

	if (!chained && slices_format(reduction_slices(a->modules.reduction)) != FORMAT_FP32)
		return true; /* slices.h checks encoded numbers when the slice is complete */
	if (chained) {
		if (m->body_size !=
		    links_chain_bytes(&a->modules.links, kind, m->u.tensor.evaluate))
			return true; /* chain_fits will refuse the length */
		codec = links_codec(&a->modules.links, kind, m->u.tensor.evaluate);
		n = a->held.activation;
	}
	return codec_is_plausible(&codec, m->body, n);
}

/* Returns true if no correct node can have reached the tensor's iteration yet. The reason is that
 * the controller waits for this node's sum before each commit. Returns false for the sums of a
 * standby copy that is still being fetched, because such a copy learns of commits late. */
static bool beyond_all(const struct agent *a, const struct msg_tensor *t)
{
	uint64_t known =
		a->held.announced > a->held.committed ? a->held.announced : a->held.committed;

	return known > 0 && t->iteration > known && t->iteration - known > AHEAD_MOST &&
	       !(standby_wants(a->modules.standby, t) &&
		 standby_standing(a->modules.standby) != STANDBY_WHOLE);
}

/* Decides what becomes of a tensor, and passes the tensor on if it is needed now. e: the tensor's
 * entry in the store of early tensors, with the results of earlier checks and of the decoding. */
static enum fate take_tensor(struct agent *a, const struct msg *m, struct early_tensor *e,
			     int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	int rc;

	e->is_due = false;
	if (misuse_reported(&a->modules.misuse, t->from))
		return drop_tensor(&a->tell);
	if (beyond_all(a, t))
		return FATE_REFUSED;
	if (standby_sum_arrived(a->modules.standby, m, &rc))
		return rc < 0 ? FATE_REFUSED : FATE_TAKEN;
	if (a->held.standing != STAND_READY)
		return FATE_EARLY;
	if ((t->kind == TENSOR_PART || t->kind == TENSOR_SUM) && t->stage != a->held.stage) {
		/* The tensor belongs to the standby copy. Either the order REDUCE has not arrived
		 * yet, or the iteration of the tensor is past. */
		uint64_t past = standby_wants(a->modules.standby, t)
					? standby_iteration(a->modules.standby)
					: a->held.committed;

		return t->iteration <= past ? drop_tensor(&a->tell) : FATE_EARLY;
	}
	if (!e->looked_at && format_is_known(a, t) && !is_checked_by_job(&a->modules.links, m, e)) {
		if (!is_plausible(a, m))
			return report_implausible(&a->modules.misuse, t, now_us);
		e->looked_at = true;
	}
	switch (t->kind) {
	case TENSOR_ACTIVATION:
	case TENSOR_GRADIENT:
		return take_chain(a, m, e, now_us);
	case TENSOR_PART:
	case TENSOR_SUM:
		rc = reduction_put(a->modules.reduction, m);
		if (rc == -EBADMSG)
			return report_implausible(&a->modules.misuse, t, now_us);
		return rc == -EAGAIN ? FATE_EARLY : rc < 0 ? FATE_REFUSED : FATE_TAKEN;
	default:
		return FATE_REFUSED;
	}
}

/* Counts a message as refused. Either it is not a message between agents, or it names another
 * sender than the node whose key the peer has proven to hold. */
static void refuse_message(struct agent *a, post_peer_id peer, int64_t now_us)
{
	uint32_t node =
		a->run.welcomed ? misuse_sender(&a->modules.misuse, peer) : a->run.welcome.n_nodes;

	if (node < a->run.welcome.n_nodes)
		misuse_misfit(&a->modules.misuse, (uint16_t)node, now_us);
	else
		a->tell.tally.refused++;
}

/* ---- early tensors ---- */

/* Sets the limits of early tensors to fit the present plans and stage. */
static void bound_early(struct agent *a)
{
	const struct early_traffic t = { .visits = plans_most_visits(&a->modules.plans) +
						   a->iteration.evaluation.n,
					 .input_bytes = a->held.activation * sizeof(float),
					 .sum_bytes = a->held.parameters * sizeof(float),
					 .piece_bytes = links_slice_bytes(&a->modules.links) };

	size_t room = a->iteration.early_room ? a->iteration.early_room : EARLY_MOST_BYTES;

	early_bound(a->modules.early, room, early_share(&t, room / 2));
}

/* Stores the message. Lets a thread decode the tensor if it is due. If the sender's share of the
 * store is nearly full, asks the sender to hold back further sums. */
static void keep_early(struct agent *a, struct post_message *p, const struct msg *m,
		       struct early_tensor *e, int64_t now_us)
{
	uint16_t from = e->from;
	struct peer *peer = &a->peers.list[from];

	bound_early(a);
	if (!early_fits(a->modules.early, from, p->size)) {
		/* The store has no room for the tensor. If the tensor is due, the event loop
		 * decodes it here. */
		if (e->is_due) {
			e->looked_at = true;
			if (take_tensor(a, m, e, now_us) == FATE_TAKEN)
				return;
		}
		a->tell.tally.dropped++;
		misuse_misfit(&a->modules.misuse, from, now_us);
		return;
	}
	post_keep(a->peers.post, p);
	e->message = *p;
	begin_decoding(a, m, e);
	early_keep(a->modules.early, e);
	if (peer->deferred || !early_crowded(a->modules.early, from))
		return;
	peer->deferred = p->peer;
	(void)post_defer(a->peers.post, peer->deferred, POST_CLASS_SUMS, true);
}

void arrivals_let_in(struct peers *peers, uint16_t node)
{
	struct peer *peer = &peers->list[node];

	if (peer->deferred)
		(void)post_defer(peers->post, peer->deferred, POST_CLASS_SUMS, false);
	peer->deferred = 0;
}

/* Removes the entries of dropped tensors. Accepts sums again from each peer whose share of the
 * store has room. Returns the number of removed entries. */
static size_t close_up_early(struct agent *a)
{
	size_t gone = early_close_up(a->modules.early);

	bound_early(a);
	for (uint32_t i = 0; i < a->run.welcome.n_nodes; i++)
		if (!early_crowded(a->modules.early, (uint16_t)i))
			arrivals_let_in(&a->peers, (uint16_t)i);
	return gone;
}

void arrivals_look_again(struct agent *a, int64_t now_us)
{
	a->requests.look_again = false;
	for (size_t i = 0, n = early_count(a->modules.early); i < n; i++) {
		struct early_tensor *e = early_at(a->modules.early, i);
		enum fate fate;
		struct msg m;

		/* The message could be decoded when it arrived, so decoding can fail here only for
		 * lack of memory. */
		if (read_message(a, &e->message, &m) < 0)
			continue;
		fate = take_tensor(a, &m, e, now_us);
		if (!e->is_due)
			e->due_us = 0;
		if (fate == FATE_EARLY && !codec_threads_full(a->modules.links.codec_threads))
			begin_decoding(a, &m, e);
		msg_clear(&m);
		if (fate == FATE_EARLY)
			continue;
		if (fate == FATE_REFUSED)
			misuse_misfit(&a->modules.misuse, e->from, now_us);
		early_drop(a->modules.early, i);
	}
	(void)close_up_early(a);
}

/* Returns true if the tensor is a sum for the present standby copy. */
static bool is_for_the_copy(const struct agent *a, struct early_tensor *e)
{
	struct msg m;
	bool wanted = false;

	if (read_message(a, &e->message, &m) == 0) {
		wanted = standby_wants(a->modules.standby, &m.u.tensor);
		msg_clear(&m);
	}
	return wanted;
}

void arrivals_forget(struct agent *a)
{
	for (size_t i = 0; i < early_count(a->modules.early); i++)
		if (!is_for_the_copy(a, early_at(a->modules.early, i)))
			early_drop(a->modules.early, i);
	a->tell.tally.dropped += close_up_early(a);
}

void arrivals_forget_peer(struct agent *a, uint16_t node)
{
	for (size_t i = 0; i < early_count(a->modules.early); i++)
		if (early_at(a->modules.early, i)->from == node)
			early_drop(a->modules.early, i);
	a->tell.tally.dropped += close_up_early(a);
}

/* ---- arrivals ---- */

/* Adds the transfer of a tensor of the present iteration to the times of this node's device. The
 * time from the end of the computation until the sender had encoded the tensor counts as time of
 * the host. The rest counts as time of the network. A faulty sender may claim times that are too
 * early, but times before the present period do not count (device_clock.h). */
static void note_transfer(struct agent *a, const struct msg_tensor *t, int64_t now_us)
{
	int64_t computed_us = tell_from_controller_us(&a->tell, t->computed_us);
	int64_t encoded_us = tell_from_controller_us(&a->tell, t->encoded_us);
	bool is_of_sum = t->kind == TENSOR_PART || t->kind == TENSOR_SUM;

	/* Ignores the sums of the standby copy, for which the device does not wait. */
	if (!computed_us || !encoded_us || (is_of_sum && t->stage != a->held.stage) ||
	    t->iteration != a->held.committed + !t->evaluate)
		return;
	if (encoded_us > now_us)
		encoded_us = now_us;
	device_clock_add(a->modules.device_clock, DEVICE_HOST, computed_us, encoded_us);
	device_clock_add(a->modules.device_clock, DEVICE_NETWORK, encoded_us, now_us);
}

static void take_message(struct agent *a, struct post_message *p, const struct msg *m,
			 uint16_t from, int64_t now_us)
{
	struct early_tensor e = { .from = from, .message = *p };
	enum fate fate;

	if (misuse_reported(&a->modules.misuse, from)) {
		a->tell.tally.dropped++;
	} else if (m->type == MSG_FETCH) {
		weight_server_ask(a->modules.weight_server, &m->u.fetch, now_us);
	} else if (m->type == MSG_PACKET_TRAIN) {
		packet_trains_announced(a->modules.trains, &m->u.packet_train, p->peer, now_us);
		measure_soon(a->modules.measure, now_us);
	} else if (m->type == MSG_PACKET_TRAIN_HEARD) {
		packet_trains_answered(a->modules.trains, &m->u.packet_train_heard);
	} else if (m->u.tensor.kind == TENSOR_PROBE) {
		log_line(a->tell.log, LOG_DEBUG, "a probe of node %u", from);
	} else if (m->u.tensor.kind == TENSOR_STATE) {
		if (!restore_piece_arrived(a->modules.restore, m, now_us))
			standby_piece_arrived(a->modules.standby, m, now_us);
	} else {
		fate = take_tensor(a, m, &e, now_us);
		if (fate == FATE_TAKEN || fate == FATE_EARLY)
			note_transfer(a, &m->u.tensor, now_us);
		if (fate == FATE_REFUSED)
			misuse_misfit(&a->modules.misuse, from, now_us);
		else if (fate == FATE_EARLY)
			keep_early(a, p, m, &e, now_us);
	}
}

/* Returns the node that the message names as its sender; MSG_NOBODY: not a message between
 * agents. */
static uint16_t sender_of(const struct msg *m)
{
	switch (m->type) {
	case MSG_TENSOR: return m->u.tensor.from;
	case MSG_FETCH: return m->u.fetch.from;
	case MSG_PACKET_TRAIN:
		return m->u.packet_train.from;
	case MSG_PACKET_TRAIN_HEARD:
		return m->u.packet_train_heard.from;
	default: return MSG_NOBODY;
	}
}

void arrivals_take(struct agent *a, struct post_message *p, int64_t now_us)
{
	struct msg m;
	uint16_t from;
	int rc = a->run.welcomed ? read_message(a, p, &m) : -EBADMSG;

	if (rc == -ENOMEM) /* this node lacks memory, and the sender is not responsible for this */
		a->tell.tally.dropped++;
	else if (rc < 0)
		refuse_message(a, p->peer, now_us);
	if (rc < 0)
		return;
	from = sender_of(&m);
	if (from == MSG_NOBODY || !misuse_proven(&a->modules.misuse, p->peer, from))
		refuse_message(a, p->peer, now_us);
	else
		take_message(a, p, &m, from, now_us);
	msg_clear(&m);
}
