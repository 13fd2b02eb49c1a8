#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/state.h"
#include "base/clock.h"

enum {
	TURN_MESSAGES = 64,
	LEAVE_US = 1000000,      /* for the last word to be heard; or so many of its timeouts */
	LEAVE_TIMES = 3,
	LEAVE_JOB_US = 10000000, /* for the job under way to end */
	LINGER_US = 30000,
	LISTEN_AGAIN_NS = 100000000,
	LISTEN_TRIES = 50,
	STOPPED_US = 3000000,    /* between turns: the process itself stood still */
	STUCK_TIMES = 20,        /* the longest job so far */
	FILES = 8192,            /* wanted, and of them */
	FILES_FOR_BURSTS = 8,    /* one in so many for activations that leave together */
	CONTROL_CONNECTIONS = 4  /* that heartbeats take turns on */
};

void agent_tell(struct agent *a, struct msg *m, enum post_flags flags, int64_t now_us)
{
	size_t size = msg_size(m);
	struct post_part part;
	void *bytes;
	int rc = -EINVAL;

	m->sequence = ++a->sequence;
	bytes = size ? malloc(size) : NULL;
	if (bytes && msg_encode(m, bytes, size) == (long)size) {
		part = (struct post_part) { bytes, size };
		rc = post_send(a->control, a->controller, &part, 1, flags, now_us);
	}
	free(bytes);
	if (rc < 0 && flags == POST_RELIABLE) {
		a->dropped++;
		log_line(a->options.log, LOG_ERROR, "%s for the controller dropped: %s",
			 msg_name(m->type), strerror(-rc));
	}
}

void agent_exit(struct agent *a, int status, int64_t now_us)
{
	struct post_peer_info info = { .rto_us = 0 };

	if (a->leaving)
		return;
	post_peer(a->control, a->controller, &info);
	a->leaving = true;
	a->status = status;
	a->leave_from_us = now_us + LINGER_US; /* acknowledgements go out meanwhile */
	a->leave_by_us = now_us + (LEAVE_US > LEAVE_TIMES * info.rto_us ? LEAVE_US : LEAVE_TIMES * info.rto_us);
}

void agent_trouble(struct agent *a, bool fatal, const char *format, ...)
{
	struct msg m = { .type = MSG_TROUBLE };
	va_list ap;

	va_start(ap, format);
	vsnprintf(m.u.trouble.text, sizeof(m.u.trouble.text), format, ap);
	va_end(ap);
	m.u.trouble.fatal = fatal;
	m.u.trouble.accused = -1;
	log_line(a->options.log, fatal ? LOG_ERROR : LOG_WARN, "%s", m.u.trouble.text);
	agent_tell(a, &m, POST_RELIABLE, clock_monotonic_us());
	if (fatal)
		agent_exit(a, 1, clock_monotonic_us());
}

void agent_leave(struct agent *a, const char *why, int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE, .u.trouble.accused = -1 };

	if (a->leaving)
		return;
	m.u.trouble.fatal = 1;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "leaving: %s", why);
	log_line(a->options.log, LOG_INFO, "leaving: %s", why);
	if (a->welcomed)
		agent_tell(a, &m, POST_RELIABLE, now_us);
	agent_exit(a, 0, now_us);
}

bool agent_accused(const struct agent *a, uint16_t node)
{
	return a->standing == STAND_READY && a->peers[node].accused_in == a->committed + 1;
}

void agent_accuse(struct agent *a, uint16_t node, const char *what, int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE };

	if (agent_accused(a, node) || a->standing != STAND_READY)
		return;
	a->peers[node].accused_in = a->committed + 1;
	m.u.trouble.accused = node;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "n%02u sent %s", node, what);
	log_line(a->options.log, LOG_WARN, "%s", m.u.trouble.text);
	if (a->n_accused < ACCUSED_MOST)
		a->accused[a->n_accused++] = m.u.trouble;
	agent_tell(a, &m, POST_RELIABLE, now_us);
}

bool agent_over(const struct agent *a, int *status, int64_t now_us)
{
	if (!a->leaving || now_us < a->leave_from_us)
		return false;
	*status = a->status;
	if (worker_busy(a->worker) && now_us < a->leave_by_us + LEAVE_JOB_US && !a->stuck)
		return false;
	return now_us >= a->leave_by_us || !a->welcomed || post_idle(a->control, 0);
}

bool agent_stuck(const struct agent *a)
{
	return worker_busy(a->worker);
}

uint32_t agent_hang_ms(struct agent *a)
{
	uint32_t ms = a->hang_ms;

	a->hang_ms = 0;
	return ms;
}

/* ---- making ---- */

/* To peers on other machines. Each takes 26 files with eight, its own connections to us not counted. */
static unsigned connections_for(uint64_t files)
{
	return files >= FILES / 2 ? 8 : files >= FILES / 4 ? 3 : 1;
}

/* The agent of the run before may be about to end, and still have the port. */
static int listen_when_free(struct agent *a, char *bound, struct error *err)
{
	static const struct timespec between = { .tv_nsec = LISTEN_AGAIN_NS };
	int rc = post_listen(a->tensors, a->options.listen, bound, err);

	if (rc == -EADDRINUSE)
		log_line(a->options.log, LOG_WARN, "%s; waiting", err->text);
	for (int i = 0; rc == -EADDRINUSE && i < LISTEN_TRIES; i++) {
		nanosleep(&between, NULL);
		rc = post_listen(a->tensors, a->options.listen, bound, err);
	}
	if (rc == 0)
		err->text[0] = 0;
	return rc;
}

size_t agent_message_bytes(const struct agent *a)
{
	return a->options.message_bytes ? a->options.message_bytes : TENSOR_MOST_BYTES;
}

static int open_posts(struct agent *a, int64_t now_us, struct error *err)
{
	const struct agent_options *o = &a->options;
	const uint64_t files = link_raise_files(FILES);
	struct post_options control = { .identity = o->identity, .connections = CONTROL_CONNECTIONS };
	struct post_options tensors = {
		.identity = o->identity,
		.admitted = a->admitted,
		.roles = KEYS_ROLE_BIT(KEYS_AGENT),
		.chunk_bytes = o->chunk_bytes,
		.message_most_bytes = agent_message_bytes(a),
		.retained_most_bytes = o->retained_bytes ? o->retained_bytes : RETAINED_BYTES,
		.assembling_most_bytes = ASSEMBLING_BYTES,
		.connections = connections_for(files),
		.connections_more = (unsigned)(files / FILES_FOR_BURSTS),
	};
	const char *address;
	int rc;

	rc = post_open(&a->control, &control, err);
	if (rc == 0)
		rc = post_dial(a->control, o->join, &o->controller, &a->controller, err);
	if (rc == 0)
		rc = post_open(&a->tensors, &tensors, err);
	if (rc == 0)
		rc = listen_when_free(a, a->bound, err);
	if (rc)
		return rc;
	address = o->advertise ? o->advertise : a->bound;
	if (strlen(address) >= sizeof(a->address))
		return error_set(err, -EINVAL, "the address %s is too long", address);
	snprintf(a->address, sizeof(a->address), "%s", address);
	log_line(o->log, LOG_INFO, "tensors at %s, controller at %s", a->address, o->join);
	a->started_us = now_us;
	return 0;
}

/* Known before the first word to the controller, which is told what computes. */
static int find_device(struct agent *a, struct error *err)
{
	int rc = stage_device(&a->device, a->options.device, err);

	if (rc == -ENODEV) {
		log_line(a->options.log, LOG_WARN, "%s: on the CPU instead", err->text);
		rc = stage_device(&a->device, "cpu", err);
	}
	if (rc == 0)
		log_line(a->options.log, LOG_INFO, "computes on %s", a->device.text);
	return rc;
}

int agent_new(struct agent **out, const struct agent_options *options, int64_t now_us,
	      struct error *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	int rc = -ENOMEM;

	if (!a)
		return error_set(err, -ENOMEM, "no memory for the agent");
	a->options = *options;
	a->stage = a->standby.stage = a->standby.order.stage = MSG_NO_STAGE;
	a->report_by_us = INT64_MAX;
	a->events = calloc(EVENTS_MOST, sizeof(a->events[0]));
	a->routes = calloc(MSG_MICROBATCHES, sizeof(a->routes[0]));
	if (!a->events || !a->routes || resend_init(a) < 0 || delay_queue_new(&a->delay_queue) < 0 ||
	    keys_list_new(&a->admitted) < 0) {
		error_set(err, rc, "no memory for the agent");
		goto fail;
	}
	if (getrandom(&a->incarnation, sizeof(a->incarnation), 0) !=
	    (ssize_t)sizeof(a->incarnation)) {
		rc = error_set(err, -EIO, "no random numbers: %s", strerror(errno));
		goto fail;
	}
	rng_init(&a->rng, a->incarnation);
	rc = find_device(a, err);
	if (rc < 0)
		goto fail;
	snprintf(a->who, sizeof(a->who), "agent");
	a->options.log->who = a->who;
	rc = worker_new(&a->worker, err);
	if (rc == 0)
		rc = worker_new(&a->save.worker, err);
	if (rc == 0)
		rc = open_posts(a, now_us, err);
	if (rc)
		goto fail;
	join_hello(a, now_us);
	*out = a;
	return 0;
fail:
	agent_free(a);
	return rc;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	worker_free(a->worker); /* first: it may be computing with what follows */
	a->worker = NULL;
	join_forget_run(a);
	worker_free(a->save.worker);
	train_free(a->trains.socket);
	post_close(a->tensors);
	post_close(a->control);
	keys_list_free(a->admitted);
	delay_queue_free(a->delay_queue);
	free(a->events);
	free(a->happened);
	free(a->routes);
	resend_forget(a);
	free(a->sent);
	free(a->deferred.list);
	free(a->standby_deferred.list);
	if (a->options.log->who == a->who)
		a->options.log->who = "agent";
	free(a);
}

/* ---- the turn ---- */

void agent_fds(const struct agent *a, int fds[AGENT_FDS])
{
	fds[0] = post_fd(a->control);
	fds[1] = post_fd(a->tensors);
	fds[2] = worker_fd(a->worker);
	fds[3] = worker_fd(a->save.worker);
	fds[4] = train_fd(a->trains.socket);
}

static int64_t sooner(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

int64_t agent_deadline_us(const struct agent *a)
{
	int64_t at = sooner(post_deadline_us(a->control), post_deadline_us(a->tensors));

	at = sooner(at, sooner(delay_queue_deadline_us(a->delay_queue), fault_deadline_us(&a->faults)));
	at = sooner(at, sooner(a->beat_us, a->report_by_us));
	if (a->leaving) /* a job that ends wakes us */
		at = sooner(at, worker_busy(a->worker) ? a->leave_by_us + LEAVE_JOB_US
						       : a->leave_from_us);
	if (a->standby.standing == STANDBY_FETCHING)
		at = sooner(at, fetch_deadline_us(&a->standby.fetch));
	at = sooner(at, fetch_deadline_us(&a->restore.fetch));
	if (a->welcomed)
		at = sooner(at, a->measuring.wake_us);
	if (a->computed)
		at = sooner(at, a->task_ends_us);
	else if (a->queue && queue_waiting(a->queue) > 0 && !worker_busy(a->worker) &&
		 !queue_blocked(a->queue) && a->standing == STAND_READY && !a->leaving)
		at = sooner(at, a->busy_until_us);
	return at;
}

/* Those that need a settled agent wait until nothing is about to change its weights. */
static bool deferrable(enum msg_type type)
{
	return type == MSG_START || type == MSG_REROUTE || type == MSG_REDUCE ||
	       type == MSG_COMMIT || type == MSG_EVALUATE || type == MSG_SAVE;
}

static bool settled(const struct agent *a)
{
	bool task = a->job.kind == JOB_FORWARD || a->job.kind == JOB_LOSS ||
		    a->job.kind == JOB_BACKWARD || a->job.kind == JOB_STATE;

	return !assign_under_way(a) && !a->step_wanted && !a->zero_wanted && !a->save.wanted &&

	       (!worker_busy(a->worker) || task || a->job.kind == JOB_KEEP ||
		a->job.kind == JOB_FOLLOW);
}

static void defer(struct agent *a, struct deferred *to, struct msg *m)
{
	if (to->n == to->room) {
		size_t room = to->room ? 2 * to->room : 16;
		struct msg *d = realloc(to->list, room * sizeof(d[0]));

		if (!d) {
			agent_trouble(a, true, "no memory for the controller's messages");
			msg_clear(m);
			return;
		}
		to->list = d;
		to->room = room;
	}
	to->list[to->n++] = *m;
}

static size_t do_list(struct agent *a, struct deferred *d, bool (*ready)(const struct agent *a),
		      void (*act)(struct agent *a, const struct msg *m, int64_t now_us),
		      int64_t now_us)
{
	size_t done = 0;

	while (done < d->n && ready(a)) {
		act(a, &d->list[done], now_us);
		msg_clear(&d->list[done++]);
	}
	if (done == 0)
		return 0;
	d->n -= done;
	memmove(d->list, d->list + done, d->n * sizeof(d->list[0]));
	return done;
}

static void do_deferred(struct agent *a, int64_t now_us)
{
	if (do_list(a, &a->deferred, settled, iteration_control, now_us) +
		    do_list(a, &a->standby_deferred, standby_settled, standby_control, now_us) >
	    0)
		early_look_again(a, now_us);
}

static void take_fault(struct agent *a, const struct msg_fault *m, int64_t now_us)
{
	log_line(a->options.log, LOG_INFO, "fault %u: kind %u, peer %d, factor %g, %u ms",
		 m->fault, m->kind, m->peer, (double)m->factor, m->ttl_ms);
	if (m->kind == FAULT_KILL)
		raise(SIGKILL);
	else if (m->kind == FAULT_HANG)
		a->hang_ms = m->ttl_ms;
	else if (fault_apply(&a->faults, m, now_us) < 0)
		agent_trouble(a, false, "fault %u makes no sense here", m->fault);
}

void agent_forget_deferred(struct deferred *d)
{
	for (size_t i = 0; i < d->n; i++)
		msg_clear(&d->list[i]);
	d->n = 0;
}

/* A commit is for the own stage and for the copy; a sum for one of them. */
static void sort_out(struct agent *a, struct msg *m)
{
	const struct msg_reduce *r = &m->u.reduce;
	bool copy = m->type == MSG_KEEP;

	if (copy) { /* what waits is for the copy before it */
		agent_forget_deferred(&a->standby_deferred);
		standby_abandon(a);
	}
	for (uint32_t i = 0; m->type == MSG_REDUCE && i < r->n_copies; i++)
		copy = copy || r->copies[i] == a->run.node;
	if (m->type == MSG_COMMIT &&
	    (a->standby.order.stage != MSG_NO_STAGE || a->standby_deferred.n > 0))
		defer(a, &a->standby_deferred, &(struct msg){ .type = m->type, .u = m->u });
	defer(a, copy ? &a->standby_deferred : &a->deferred, m);
}

/* What the message says of commits: the newest word counts, for a run may go back. */
static uint64_t told_by(const struct agent *a, const struct msg *m)
{
	switch (m->type) {
	case MSG_START:
		return m->u.start.iteration ? m->u.start.iteration - 1 : 0;
	case MSG_REROUTE:
		return m->u.reroute.iteration ? m->u.reroute.iteration - 1 : 0;
	case MSG_REDUCE:
		return m->u.reduce.iteration ? m->u.reduce.iteration - 1 : 0;
	case MSG_COMMIT:
		return m->u.commit.iteration;
	case MSG_EVALUATE:
		return m->u.evaluate.iteration;
	case MSG_RESTORE:
		return m->u.restore.iteration;
	default:
		return a->told;
	}
}

/* Takes over what it keeps of *m. */
static void take_control(struct agent *a, struct msg *m, int64_t now_us)
{
	log_line(a->options.log, LOG_DEBUG, "%s from the controller", msg_name(m->type));
	a->told = told_by(a, m);
	if (m->type == MSG_REFUSED) {
		log_line(a->options.log, LOG_ERROR, "the controller refused this agent: %s",
			 m->u.refused.reason);
		agent_exit(a, 1, now_us);
	} else if (m->type == MSG_STOP) {
		log_line(a->options.log, LOG_INFO, "told to stop: %s", m->u.stop.reason);
		agent_exit(a, 0, now_us);
	} else if (m->type == MSG_WELCOME) {
		agent_forget_deferred(&a->deferred);
		agent_forget_deferred(&a->standby_deferred);
		join_welcome(a, &m->u.welcome, now_us);
	} else if (m->type == MSG_PING) {
		a->ping_us = m->u.ping.now_us;
		a->ping_at_us = now_us;
	} else if (!a->welcomed) {
		a->refused++;
		log_line(a->options.log, LOG_WARN, "%s before a welcome", msg_name(m->type));
	} else if (m->type == MSG_RECALL) {
		report_recall(a, &m->u.recall, now_us);
	} else if (m->type == MSG_MEASURE) {
		measure_begin(a, &m->u.measure, now_us);
	} else if (m->type == MSG_PEERS) {
		join_peers(a, &m->u.peers, now_us);
	} else if (m->type == MSG_ASSIGN) {
		agent_forget_deferred(&a->deferred);
		assign_begin(a, &m->u.assign);
	} else if (m->type == MSG_RESTORE) {
		agent_forget_deferred(&a->deferred);
		restore_begin(a, &m->u.restore);
	} else if (m->type == MSG_PLAN) {
		iteration_plan(a, &m->u.plan);
	} else if (m->type == MSG_FAULT) {
		take_fault(a, &m->u.fault, now_us);
	} else if (deferrable(m->type) || m->type == MSG_KEEP) {
		sort_out(a, m);
		return; /* it keeps the arrays */
	} else {
		a->refused++;
		log_line(a->options.log, LOG_WARN, "a %s is not the controller's to send",
			 msg_name(m->type));
	}
	msg_clear(m);
}

static void take_control_event(struct agent *a, struct post_message *p, int64_t now_us)
{
	struct msg m;
	int rc;

	switch (p->kind) {
	case POST_DATA:
		rc = msg_decode(&m, p->data, p->size);
		if (rc == 0) {
			take_control(a, &m, now_us);
			break;
		}
		a->refused++;
		log_line(a->options.log, LOG_WARN, "a message of the controller: %s",
			 strerror(-rc));
		break;
	case POST_UP:
		log_line(a->options.log, LOG_INFO, "the controller is up%s",
			 p->restarted ? ", and is a new process" : "");
		a->refusal = LINK_REASON_NONE;
		if (p->restarted)
			join_hello(a, now_us);
		break;
	case POST_DOWN:
		log_line(a->options.log, LOG_WARN, "no controller: %s",
			 link_reason_text(p->reason));
		break;
	case POST_LOST:
		log_line(a->options.log, LOG_WARN, "%" PRIu64 " messages were for the old one",
			 p->lost);
		break;
	case POST_REFUSED:
		if (p->reason != a->refusal)
			log_line(a->options.log, LOG_WARN, "the controller does not let us in: "
				 "%s; trying on", link_reason_text(p->reason));
		a->refusal = p->reason;
		break;
	}
}

static void take_tensor_event(struct agent *a, struct post_message *p, int64_t now_us)
{
	switch (p->kind) {
	case POST_DATA:
		tensors_arrived(a, p, now_us);
		break;
	case POST_LOST:
		a->dropped += p->lost;
		break;
	case POST_REFUSED:
		log_line(a->options.log, LOG_DEBUG, "a peer refuses us: %s",
			 link_reason_text(p->reason));
		break;
	default:
		break;
	}
}

void agent_receive(struct agent *a, int64_t now_us)
{
	struct post_message p;

	post_tick(a->control, now_us);
	post_tick(a->tensors, now_us);
	if (a->trains.socket)
		train_hear(a->trains.socket);
	for (int i = 0; i < TURN_MESSAGES && post_receive(a->control, now_us, &p) == 0; i++)
		take_control_event(a, &p, now_us);
	do_deferred(a, now_us);
	for (int i = 0; i < TURN_MESSAGES && post_receive(a->tensors, now_us, &p) == 0; i++)
		take_tensor_event(a, &p, now_us);
}

/* What an iteration waits for; the others may take as long as a stage's size makes them. */
static bool job_is_short(enum job_kind kind)
{
	switch (kind) {
	case JOB_PREPARE:
	case JOB_LOAD:
	case JOB_RESTORE:
	case JOB_MIX:
	case JOB_MEASURE:
	case JOB_STATE:
	case JOB_KEEP:
		return false;
	default:
		return true;
	}
}

/* A GPU that hangs leaves the heartbeats going: a job that does not come back ends the process. */
static void check_stuck(struct agent *a, int64_t now_us)
{
	int64_t since_us = now_us - a->turn_us, took_us;

	a->turn_us = now_us;
	if (since_us > STOPPED_US)
		a->job_from_us += since_us;
	if (!worker_busy(a->worker) || !job_is_short(a->job.kind) || a->leaving)
		return;
	took_us = now_us - a->job_from_us;
	if (took_us < (int64_t)a->options.stuck_s * 1000000 + STUCK_TIMES * a->longest_job_us)
		return;
	a->stuck = true;
	agent_trouble(a, true, "its computing has not come back for %.0f s: it gives up",
		      (double)took_us * 1e-6);
}

static void finish_job(struct agent *a, int64_t now_us)
{
	check_stuck(a, now_us);
	if (!worker_finished(a->worker))
		return;
	if (job_is_short(a->job.kind) && now_us - a->job_from_us > a->longest_job_us)
		a->longest_job_us = now_us - a->job_from_us;
	if (a->job.rc < 0 && a->job.kind != JOB_KEEP && a->job.kind != JOB_RESTORE &&
	    !a->job.refused && !a->job.save) {
		agent_trouble(a, true, "%s", a->job.err.text);
		job_clear(&a->job);
		return;
	}
	switch (a->job.kind) {
	case JOB_PREPARE:
	case JOB_LOAD:
	case JOB_RESTORE:
	case JOB_MIX:
	case JOB_MEASURE:
		assign_job_done(a, now_us);
		break;
	case JOB_STATE:
		if (a->job.save)
			save_job_done(a, now_us);
		else
			weight_server_job_done(a, now_us);
		break;
	case JOB_KEEP:
	case JOB_FOLLOW:
		standby_job_done(a, now_us);
		break;
	case JOB_FORWARD:
	case JOB_LOSS:
	case JOB_BACKWARD:
	case JOB_WEIGHTS:
		tasks_job_done(a, now_us);
		break;
	case JOB_ZERO:
	case JOB_STEP:
		iteration_job_done(a, now_us);
		break;
	case JOB_NORM:
		if (a->job.kept) {
			standby_job_done(a, now_us);
			break;
		}
		/* fall through */
	case JOB_GRADIENT:
	case JOB_SUM:
		reduction_job_done(a, now_us);
		break;
	}
	job_clear(&a->job);
}

void agent_work(struct agent *a, int64_t now_us)
{
	const struct task *waiter;

	if (a->leaving)
		worker_finished(a->worker); /* or its descriptor stays readable */
	if (!a->welcomed || a->leaving)
		return;
	fault_expire(&a->faults, now_us);
	finish_job(a, now_us);
	tasks_end_due(a, now_us);
	do_deferred(a, now_us);
	/* A step under way comes before what forgets it; changes of weights before tasks. */
	if (!worker_busy(a->worker) && !a->leaving &&
	    (iteration_next_job(a) || save_next_job(a) || standby_next_job(a) ||
	     assign_next_job(a, now_us) || reduction_next_job(a) || weight_server_next_job(a) ||
	     tasks_next_job(a, now_us))) {
		a->job_from_us = now_us;
		worker_start(a->worker, compute_run, a->compute, &a->job);
	}
	while ((waiter = queue_waiter(a->queue)))
		report_event(a, WORK_WAITS, waiter, waiter->arrived_us, 0);
}

static void check_orphaned(struct agent *a, int64_t now_us)
{
	struct post_peer_info info = { .heard_us = 0 };
	int64_t heard = a->started_us;

	if (post_peer(a->control, a->controller, &info) == 0 && info.heard_us > heard)
		heard = info.heard_us;
	if (a->leaving || now_us - heard < (int64_t)a->options.orphan_s * 1000000)
		return;
	log_line(a->options.log, LOG_ERROR, "no controller for %u s: leaving",
		 a->options.orphan_s);
	agent_exit(a, 1, now_us);
	a->leave_by_us = now_us;
}

void agent_send(struct agent *a, int64_t now_us)
{
	if (a->welcomed) {
		standby_turn(a, now_us);
		restore_turn(a, now_us);
		save_turn(a, now_us);
		weight_server_turn(a, now_us);
		measure_turn(a, now_us);
		links_pump(a, now_us);
	}
	report_turn(a, now_us);
	check_orphaned(a, now_us);
	post_tick(a->control, now_us);
	post_tick(a->tensors, now_us);
}
