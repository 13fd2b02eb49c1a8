/* The agent's loop: the phases of a turn in their order, and the start and the end of the agent.
 *
 * Modules decide about their own state. For anything else a module leaves a request, which the
 * loop carries out. Examples of requests are a job for the worker, another check of early
 * tensors, and the end of the process. The section "the turn" therefore shows every action of the
 * agent in order.
 */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/arrivals.h"
#include "agent/assign.h"
#include "agent/execution/compute.h"
#include "agent/execution/tasks.h"
#include "agent/heartbeat.h"
#include "agent/join.h"
#include "agent/network/connections.h"
#include "agent/network/gpu_monitor.h"
#include "agent/network/measure.h"
#include "agent/network/report.h"
#include "agent/network/packet_trains.h"
#include "agent/orders.h"
#include "agent/shared/worker.h"
#include "agent/state.h"
#include "agent/sums/reduction.h"
#include "agent/tensors/delay_queue.h"
#include "agent/weights/files.h"
#include "agent/weights/restore.h"
#include "agent/weights/save.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "base/clock.h"
#include "base/process/cgroup.h"
#include "base/process/numa.h"
#include "model/cuda/nvml.h"
#include "wire/address.h"
#include "wire/reach.h"

enum {
	/* Limit of messages taken from each post in one turn, so that a flood of messages does not
	 * delay the other phases of the turn. */
	TURN_MESSAGES = 64,
	TURN_US = 3000, /* longest time that a turn spends on taking tensors */
	/* Limits of the time that a leaving agent waits: LEAVE_JOB_US for its running job,
	 * LEAVE_WRITE_US for a checkpoint that is being written. LEAVE_WRITE_US is below ten
	 * seconds, because a container's processes are killed ten seconds after the container is
	 * asked to stop. */
	LEAVE_JOB_US = 1000000,
	LEAVE_WRITE_US = 7000000,
	LISTEN_AGAIN_NS = 100000000,
	LISTEN_TRIES = 50,
	/* If two turns are this far apart, the process was suspended. */
	STOPPED_US = 3000000,
	/* A short job (job_is_short) may take stuck_s seconds plus STUCK_TIMES times the longest
	 * duration of a short job so far. */
	STUCK_TIMES = 20,
	STUCK_LONG_TIMES = 40, /* long jobs may take this many times the limit of short jobs */
	FILES = 8192,          /* limit of open files that the agent requests from the system */
	/* The limit of open files must suffice for at least this many peers. */
	PEERS_LEAST = 8,
	/* A burst of activations opens additional connections. They get 1 / FILES_FOR_BURSTS of
	 * the limit of open files. */
	FILES_FOR_BURSTS = 8,
	SEAL_THREADS = 4,          /* threads that encrypt tensors, at most one for each core */
	PIECE_LEAST_BYTES = 16384, /* default of the option piece_least_bytes */
	/* Connections for control messages; each heartbeat uses the next one. */
	CONTROL_CONNECTIONS = 4
};
/* Longest chunk of a tensor. Each chunk costs the event loop a fixed time. Only links within a
 * machine have chunks of this size. Links between machines have chunks of 64 KiB. */
#define CHUNK_BYTES ((size_t)4 << 20)
/* Limit of unacknowledged bytes, for each peer and class of messages. */
#define RETAINED_BYTES ((size_t)128 << 20)
/* Limit of the bytes of messages that have not arrived completely. */
#define ASSEMBLING_BYTES ((size_t)1 << 30)

/* ---- the turn ---- */

/* Checks early tensors again at the request of a module. A new order, stage or sum may need these
 * tensors. */
static void look_again(struct agent *a, int64_t now_us)
{
	if (a->run.welcomed && a->requests.look_again)
		arrivals_look_again(a, now_us);
}

static void take_tensor_event(struct agent *a, struct post_message *p, int64_t now_us)
{
	switch (p->kind) {
	case POST_DATA:
		arrivals_take(a, p, now_us);
		break;
	case POST_LOST:
		a->tell.tally.dropped += p->lost;
		break;
	case POST_REFUSED:
		log_line(a->tell.log, LOG_DEBUG, "a peer refuses us: %s",
			 link_reason_text(p->reason));
		break;
	default:
		break;
	}
}

/* Handles messages in this order. The posts and the trains of packets come first, because the
 * arrival of their packets is timed. The controller's orders come before tensors, because they
 * decide which tensors are needed. Early tensors are checked again next, and new tensors come
 * last. */
void agent_receive(struct agent *a, int64_t now_us)
{
	const int64_t began_us = clock_monotonic_us();
	struct post_message p;

	a->tell.now_us = now_us;
	post_tick(a->tell.post, now_us);
	post_tick(a->peers.post, now_us);
	packet_trains_hear(a->modules.trains);
	for (int i = 0; i < TURN_MESSAGES && post_receive(a->tell.post, now_us, &p) == 0; i++)
		orders_take(a, &p, now_us);
	if (a->run.welcomed)
		orders_turn(a, now_us);
	look_again(a, now_us);
	for (int i = 0;
	     i < TURN_MESSAGES && (i == 0 || clock_monotonic_us() - began_us < TURN_US) &&
	     !codec_threads_full(a->modules.links.codec_threads) &&
	     post_receive(a->peers.post, now_us, &p) == 0;
	     i++)
		take_tensor_event(a, &p, now_us);
}

/* Hands the ended jobs of the encoding threads to the modules that added them. */
static void take_codec_jobs(struct agent *a)
{
	struct codec_job job;

	while (codec_threads_take(a->modules.links.codec_threads, &job)) {
		if (job.encodes)
			links_encoded(&a->modules.links, &job);
		else
			arrivals_decoded(a, &job);
		/* A stored tensor may have waited until an encoding thread became idle. */
		a->requests.look_again = true;
	}
}

/* Returns true for the kinds of jobs for which an iteration waits. Other jobs, such as a restore,
 * may take much longer, in proportion to the size of the stage. */
static bool job_is_short(enum job_kind kind)
{
	switch (kind) {
	case JOB_PREPARE:
	case JOB_LOAD:
	case JOB_RESTORE:
	case JOB_MIX:
	case JOB_MEASURE:
	case JOB_STACK:
	case JOB_STATE:
	case JOB_KEEP:
		return false;
	default:
		return true;
	}
}

/* Excludes the time in which the process was suspended from the time limits. A signal can suspend
 * the process, and so can a pause of its container or virtual machine. Without this exclusion, an
 * agent that continues would find that its controller has been silent too long, and would end. If
 * this agent had the last replica of a stage, the stage would be lost. */
static void note_suspension(struct identity *self, struct stuck_check *stuck, int64_t now_us)
{
	int64_t since_us = now_us - self->turn_us;

	self->turn_us = now_us;
	if (since_us <= STOPPED_US)
		return;
	self->awake_us = now_us;
	stuck->job_from_us += since_us;
}

/* Ends the agent if a job does not end. A hung GPU does not stop the heartbeats, so the
 * controller cannot detect that the GPU hangs. Even PREPARE has a limit, because a driver may
 * hang at its first use. */
static void check_stuck(struct agent *a, int64_t now_us)
{
	int64_t took_us, limit_us;

	if (!worker_busy(a->worker) || a->tell.end.leaving)
		return;
	took_us = now_us - a->stuck.job_from_us;
	limit_us = (int64_t)a->options.stuck_s * 1000000 + STUCK_TIMES * a->stuck.longest_us;
	if (!job_is_short(a->job.kind))
		limit_us *= STUCK_LONG_TIMES;
	if (took_us < limit_us)
		return;
	a->stuck.found = true;
	tell_trouble(&a->tell, true, "a job on its device has not ended for %.0f s: the agent ends",
		     (double)took_us * 1e-6);
}

/* Gives the ended job to the module that started it. */
static void hand_back(struct agent *a, struct job *job, int64_t now_us)
{
	switch (job->kind) {
	case JOB_PREPARE:
	case JOB_LOAD:
	case JOB_RESTORE:
	case JOB_MIX:
	case JOB_MEASURE:
		assign_job_done(a, job, now_us);
		break;
	case JOB_STATE:
		if (job->for_checkpoint)
			save_job_done(a->modules.save, job, now_us);
		else
			weight_server_job_done(a->modules.weight_server, job, now_us);
		break;
	case JOB_KEEP:
	case JOB_FOLLOW:
		standby_job_done(a->modules.standby, job, now_us);
		break;
	case JOB_TASK:
		tasks_job_done(a->modules.tasks, job, now_us);
		break;
	case JOB_ZERO:
	case JOB_STEP:
	case JOB_STACK:
		iteration_job_done(&a->iteration, job, now_us);
		break;
	case JOB_NORM:
		if (job->of_copy)
			standby_job_done(a->modules.standby, job, now_us);
		else
			reduction_job_done(a->modules.reduction, job, now_us);
		break;
	case JOB_GRADIENT:
	case JOB_SUM:
		reduction_job_done(a->modules.reduction, job, now_us);
		break;
	}
}

/* Returns true if the agent can continue although this job failed. This holds for a standby copy,
 * for a checkpoint, and for a file that cannot be read. */
static bool may_fail(const struct job *j)
{
	return j->kind == JOB_KEEP || j->kind == JOB_RESTORE || j->refused || j->for_checkpoint;
}

/* Adds a job to the times of the device. Tasks are not added here: they may last longer than
 * their job, and tasks.c adds them. If task times are prescribed, only tasks count as work of the
 * device. Other jobs then count as work of the host. */
static void note_times(struct agent *a, const struct job *job)
{
	bool is_of_device = (job->kind == JOB_STEP || job->kind == JOB_STACK ||
			     job->kind == JOB_ZERO) &&
			    !tasks_have_given_times(&a->run);

	if (job->kind == JOB_TASK)
		return;
	tasks_other_job_done(a->modules.tasks, job);
	device_clock_add(a->modules.device_clock, is_of_device ? DEVICE_BUSY : DEVICE_HOST,
			 job->began_us, job->ended_us);
}

static void finish_job(struct agent *a, int64_t now_us)
{
	struct job *job = &a->job;

	check_stuck(a, now_us);
	if (!worker_finished(a->worker))
		return;
	if (job_is_short(job->kind) && now_us - a->stuck.job_from_us > a->stuck.longest_us)
		a->stuck.longest_us = now_us - a->stuck.job_from_us;
	note_times(a, job);
	if (job->prepare.device_free_bytes)
		a->device.free_bytes = job->prepare.device_free_bytes;
	if (job->rc < 0 && !may_fail(job))
		tell_trouble(&a->tell, true, "%s", job->err.text);
	else
		hand_back(a, job, now_us);
	job_clear(job);
}

/* Asks the modules for a job, and sets *job to the first job that a module gives. The order of
 * the modules ensures three things. A requested step runs before jobs that would discard the
 * step. A checkpoint's copy is made before the next step. Weights change before tasks run.
 *
 * A copy of the stage is made in parts, and a task may run between two parts. A step waits for
 * the last part of a checkpoint's copy. A step does not wait for a copy that another node has
 * requested: the step makes that copy void. */
static bool take_next_job(struct agent *a, struct job *job, int64_t now_us)
{
	bool after_part = job->kind == JOB_STATE;

	return (after_part && tasks_next_job(a->modules.tasks, job, now_us)) ||
	       save_next_part(a->modules.save, job) || iteration_next_job(&a->iteration, job) ||
	       save_next_job(a->modules.save, job) || standby_next_job(a->modules.standby, job) ||
	       assign_next_job(a, job, now_us) || reduction_next_job(a->modules.reduction, job) ||
	       weight_server_next_job(a->modules.weight_server, job) ||
	       tasks_next_job(a->modules.tasks, job, now_us);
}

static void start_job(struct agent *a, int64_t now_us)
{
	struct job *job = &a->job;

	if (worker_busy(a->worker) || a->tell.end.leaving)
		return;
	iteration_begin_sum(&a->iteration);
	if (!take_next_job(a, job, now_us))
		return;
	a->stuck.job_from_us = now_us;
	worker_start(a->worker, compute_run, a->compute, job);
}

/* If the previous run's job has ended, drops the job's result and joins the next run. If the job
 * still runs, checks only that it is not stuck. */
static void end_last_job(struct agent *a, int64_t now_us)
{
	check_stuck(a, now_us);
	if (worker_finished(a->worker))
		job_clear(&a->job);
	if (!worker_busy(a->worker))
		orders_begin_run(a, now_us);
}

/* Ends and starts jobs. Handles a finished job first, because waiting orders may need its result.
 * Carries out waiting orders before a job starts, because an order may change which job is next. */
void agent_work(struct agent *a, int64_t now_us)
{
	a->tell.now_us = now_us;
	note_suspension(&a->self, &a->stuck, now_us);
	take_codec_jobs(a);
	if (a->tell.end.leaving) {
		/* The result of the ended job is not used, because orders may have freed the sum
		 * to which it points. But the loop must take the job from the worker. Otherwise
		 * the worker's descriptor stays readable and wakes the loop again and again. */
		if (worker_finished(a->worker))
			job_clear(&a->job);
	} else if (!a->run.welcomed) {
		end_last_job(a, now_us);
	}
	if (!a->run.welcomed || a->tell.end.leaving)
		return;
	fault_expire(&a->faults, now_us);
	finish_job(a, now_us);
	look_again(a, now_us);
	tasks_end_due(a->modules.tasks, now_us);
	orders_turn(a, now_us);
	look_again(a, now_us);
	start_job(a, now_us);
	tasks_report_waiting(a->modules.tasks);
}

/* Logs why the controller cannot be reached, each cause once. */
static void note_trouble(struct identity *self, struct tell *tell, const char *trouble)
{
	if (!trouble || strcmp(trouble, self->trouble) == 0)
		return;
	snprintf(self->trouble, sizeof(self->trouble), "%s", trouble);
	if (trouble[0])
		tell_log(tell, LOG_WARN, "no connection to the controller: %s", trouble);
}

static void check_orphaned(struct agent *a, int64_t now_us)
{
	struct post_peer_info info = { .heard_us = 0 };
	int64_t heard = a->self.awake_us;

	if (post_peer(a->tell.post, a->tell.controller, &info) == 0 && info.heard_us > heard)
		heard = info.heard_us;
	note_trouble(&a->self, &a->tell, info.trouble);
	if (a->tell.end.drain_by_us && now_us >= a->tell.end.drain_by_us)
		agent_leave(a, "its notice is over", false, now_us);
	if (a->tell.end.leaving || now_us - heard < (int64_t)a->options.orphan_s * 1000000)
		return;
	log_line(a->tell.log, LOG_ERROR, "no controller for %u s: leaving", a->options.orphan_s);
	tell_last(&a->tell, 1, now_us);
	a->tell.end.leave_by_us = now_us;
}

/* Queues messages in this order: requests for pieces, answers to requests, tensors that are due,
 * and reports to the controller. The posts work last, so that all these messages leave in this
 * turn. */
void agent_send(struct agent *a, int64_t now_us)
{
	a->tell.now_us = now_us;
	note_suspension(&a->self, &a->stuck, now_us);
	if (a->run.welcomed) {
		standby_turn(a->modules.standby, now_us);
		restore_turn(a->modules.restore, now_us);
		files_turn(a->modules.files, now_us);
		weight_server_turn(a->modules.weight_server, now_us);
		measure_turn(a->modules.measure, now_us);
		connections_turn(a->modules.connections, now_us);
		links_pump(&a->modules.links, now_us);
	}
	/* An agent outside a run may still be writing a checkpoint. */
	save_turn(a->modules.save, now_us);
	if (a->run.welcomed)
		tell_turn(&a->tell, now_us);
	report_turn(a->modules.report, now_us);
	heartbeat_turn(a, now_us);
	if (a->run.welcomed && !a->tell.end.leaving)
		link_times_turn(&a->modules.link_times, now_us);
	check_orphaned(a, now_us);
	post_tick(a->tell.post, now_us);
	post_tick(a->peers.post, now_us);
}

_Static_assert(AGENT_FDS == 5 + CODEC_THREADS, "a descriptor for each thread");

void agent_fds(const struct agent *a, int fds[AGENT_FDS])
{
	fds[0] = post_fd(a->tell.post);
	/* While the encoding threads have enough jobs, the loop takes no tensors. Tensors that
	 * have arrived must not wake the loop again and again meanwhile. */
	fds[1] = codec_threads_full(a->modules.links.codec_threads) ? post_threads_fd(a->peers.post)
								    : post_fd(a->peers.post);
	fds[2] = worker_fd(a->worker);
	fds[3] = save_fd(a->modules.save);
	fds[4] = packet_trains_fd(a->modules.trains);
	codec_threads_fds(a->modules.links.codec_threads, fds + 5);
}

static int64_t take_sooner(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/* Returns the deadline of the modules that work only in a run. */
static int64_t deadline_in_run_us(const struct agent *a)
{
	int64_t at = take_sooner(delay_queue_deadline_us(a->modules.delay_queue),
				 fault_deadline_us(&a->faults));

	at = take_sooner(at, take_sooner(standby_deadline_us(a->modules.standby),
					 restore_deadline_us(a->modules.restore)));
	at = take_sooner(at,
			 take_sooner(files_deadline_us(a->modules.files),
				     tasks_deadline_us(a->modules.tasks, !worker_busy(a->worker))));
	return take_sooner(at, take_sooner(measure_deadline_us(a->modules.measure),
					   connections_deadline_us(a->modules.connections)));
}

/* Returns true if the worker or the checkpoint's thread is busy. agent_free would then wait for
 * the busy thread. */
static bool threads_work(const struct agent *a)
{
	return worker_busy(a->worker) || save_busy(a->modules.save);
}

/* Returns the time at which a leaving agent stops waiting for its threads. */
static int64_t late_us(const struct agent *a)
{
	return a->tell.end.leave_by_us +
	       (save_busy(a->modules.save) ? LEAVE_WRITE_US : LEAVE_JOB_US);
}

int64_t agent_deadline_us(const struct agent *a)
{
	int64_t at = post_deadline_us(a->tell.post), tensors_at = post_deadline_us(a->peers.post);

	if (tensors_at > 0 || post_waits_for_tick(a->peers.post) ||
	    !codec_threads_full(a->modules.links.codec_threads))
		at = take_sooner(at, tensors_at);

	at = take_sooner(at, take_sooner(heartbeat_deadline_us(a->modules.heartbeat),
					 report_deadline_us(a->modules.report)));
	if (a->run.welcomed)
		at = take_sooner(at, deadline_in_run_us(a));
	if (a->tell.end.leaving) /* the loop also wakes when a job ends */
		at = take_sooner(at, threads_work(a) ? late_us(a) : a->tell.end.leave_from_us);
	return at;
}

/* ---- the end ---- */

void agent_leave(struct agent *a, const char *why, bool drains, int64_t now_us)
{
	struct msg m = { .type = MSG_TROUBLE, .u.trouble.refused_node = -1 };

	a->tell.now_us = now_us;
	if (a->tell.end.leaving || (drains && a->held.standing == STAND_READY &&
				    tell_drain(&a->tell, a->options.notice_s, now_us)))
		return;
	m.u.trouble.fatal = 1;
	snprintf(m.u.trouble.text, sizeof(m.u.trouble.text), "leaving: %s", why);
	log_line(a->tell.log, LOG_INFO, "leaving: %s", why);
	if (a->run.welcomed)
		tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
	tell_last(&a->tell, 0, now_us);
}

bool agent_over(const struct agent *a, int *status, int64_t now_us)
{
	if (!a->tell.end.leaving || now_us < a->tell.end.leave_from_us)
		return false;
	*status = a->tell.end.status;
	if (threads_work(a) && now_us < late_us(a) && !a->stuck.found)
		return false;
	/* A node that fetches weights may still need the sums of an agent that has drained.
	 * Therefore a drained agent waits until its messages to peers are acknowledged. */
	return now_us >= a->tell.end.leave_by_us || !a->run.welcomed ||
	       (post_idle(a->tell.post, 0) &&
		(!a->tell.end.drain_by_us || post_idle(a->peers.post, 0)));
}

bool agent_stuck(const struct agent *a)
{
	return threads_work(a) || gpu_monitor_busy(a->modules.gpu_monitor);
}

uint32_t agent_hang_ms(struct agent *a)
{
	uint32_t ms = a->requests.hang_ms;

	a->requests.hang_ms = 0;
	return ms;
}

/* ---- the start ---- */

/* Returns the number of connections to each peer on another machine. files: limit of open files.
 * With eight connections the agent uses 26 files for each peer, not counting the connections that
 * the peer opens. */
static unsigned connections_for(uint64_t files)
{
	return files >= FILES / 2 ? 8 : files >= FILES / 4 ? 3 : 1;
}

/* Listens at the address. Tries again for some seconds while the port is in use, because the
 * previous run's agent may still be ending. */
static int listen_when_free(struct post *post, const char *address, struct tell *tell, char *bound,
			    struct error *err)
{
	static const struct timespec between = { .tv_nsec = LISTEN_AGAIN_NS };
	int rc = post_listen(post, address, bound, err);

	if (rc == -EADDRINUSE)
		tell_log(tell, LOG_WARN, "%s; waiting", err->text);
	for (int i = 0; rc == -EADDRINUSE && i < LISTEN_TRIES; i++) {
		nanosleep(&between, NULL);
		rc = post_listen(post, address, bound, err);
	}
	if (rc == 0)
		err->text[0] = 0;
	return rc;
}

/* Opens one post for the controller and another for peers. With a single post, a flood of tensors
 * could delay a heartbeat. */
static int open_posts(struct agent *a, int64_t now_us, struct error *err)
{
	const struct agent_options *o = &a->options;
	const uint64_t files = link_raise_files(FILES);
	struct post_options control = { .identity = o->identity,
					.connections = CONTROL_CONNECTIONS };
	struct post_options tensors = {
		.identity = o->identity,
		.admitted = a->admitted,
		.roles = KEYS_ROLE_BIT(KEYS_AGENT),
		.chunk_bytes = o->chunk_bytes ? o->chunk_bytes : CHUNK_BYTES,
		.message_most_bytes = links_message_bytes(&a->modules.links),
		.retained_most_bytes = o->retained_bytes ? o->retained_bytes : RETAINED_BYTES,
		.assembling_most_bytes = ASSEMBLING_BYTES,
		.connections = connections_for(files),
		.connections_more = (unsigned)(files / FILES_FOR_BURSTS),
		.piece_least_bytes = o->piece_least_bytes ? o->piece_least_bytes
							  : PIECE_LEAST_BYTES,
		.seal_threads = cores_usable() < SEAL_THREADS ? cores_usable() : SEAL_THREADS,
	};
	char announced[LINK_ADDRESS_SIZE];
	struct reach reach = { .inside = "" };
	int rc = link_check_files(PEERS_LEAST, err);

	if (rc == 0)
		rc = post_open(&a->tell.post, &control, err);
	if (rc == 0)
		rc = post_dial(a->tell.post, o->join, &o->controller, &a->tell.controller, err);
	if (rc == 0)
		rc = post_open(&a->peers.post, &tensors, err);
	if (rc == 0)
		rc = listen_when_free(a->peers.post, a->options.listen, &a->tell, a->self.bound,
				      err);
	if (rc)
		return rc;
	reach_choose(a->self.bound, o->seen ? o->seen : "", o->advertise, &reach);
	address_announced(announced, reach.address);
	if (strlen(announced) >= sizeof(a->self.address))
		return error_set(err, -EINVAL, "the address %s is too long", announced);
	snprintf(a->self.address, sizeof(a->self.address), "%s", announced);
	snprintf(a->self.inside, sizeof(a->self.inside), "%.255s", reach.inside);
	log_line(o->log, LOG_INFO, "tensors at %s, controller at %s", a->self.address, o->join);
	a->self.awake_us = a->self.turn_us = now_us;
	return 0;
}

/* Finds the device. The agent calls this function before it sends HELLO, which names the device.
 * The agent also calls this function before it starts threads, because threads run on the CPU
 * socket that is close to the GPU. */
static int find_device(struct stage_device *d, const char *wanted, struct tell *tell,
		       struct error *err)
{
	int rc = stage_device(d, wanted, err);

	if (rc == -ENODEV) {
		tell_log(tell, LOG_WARN, "%s: on the CPU instead", err->text);
		rc = stage_device(d, "cpu", err);
	}
	if (rc == 0)
		log_line(tell->log, LOG_INFO, "computes on %s", d->text);
	if (rc == 0 && d->bus_id[0] && numa_bind("", d->bus_id))
		log_line(tell->log, LOG_INFO, "runs on the %u processors of the GPU's socket",
			 cores_usable());
	if (rc == 0 && strncmp(d->name, "cuda", 4) == 0 && !strstr(d->name, "bf16"))
		tell_log(tell, LOG_WARN,
			 "products are computed in fp32, on a fifteenth of the GPU's speed: "
			 "--device %s:bf16 is faster",
			 d->name);
	return rc;
}

/* Starts the thread that reads the GPU's figures. If the thread cannot be started, the agent
 * works without these figures. */
static void watch_gpu(struct agent *a)
{
	struct error err;

	if (a->device.bus_id[0] && gpu_monitor_new(&a->modules.gpu_monitor, NVML_LIBRARY,
						   a->device.bus_id, a->options.log, &err) != 0)
		log_line(a->tell.log, LOG_WARN, "no figures of the GPU: %s", err.text);
}

int agent_new(struct agent **out, const struct agent_options *options, int64_t now_us,
	      struct error *err)
{
	/* First makes the parts that need only memory. Then finds the device, starts threads and
	 * opens the network. */
	struct agent *a = state_new(options);
	int rc;

	a->tell.now_us = now_us;
	if (getrandom(&a->self.incarnation, sizeof(a->self.incarnation), 0) !=
	    (ssize_t)sizeof(a->self.incarnation)) {
		rc = error_set(err, -EIO, "no random numbers: %s", strerror(errno));
		goto fail;
	}
	rng_init(&a->peers.rng, a->self.incarnation);
	rc = find_device(&a->device, a->options.device, &a->tell, err);
	if (rc < 0)
		goto fail;
	snprintf(a->self.who, sizeof(a->self.who), "agent");
	a->options.log->who = a->self.who;
	rc = worker_new(&a->worker, "compute", err);
	if (rc == 0)
		rc = codec_threads_new(&a->modules.links.codec_threads, err);
	if (rc == 0)
		rc = save_new(&a->modules.save, &a->tell, &a->run, &a->held, a->options.run_dir,
			      err);
	if (rc == 0)
		rc = open_posts(a, now_us, err);
	if (rc)
		goto fail;
	watch_gpu(a);
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
	/* Frees the worker first, because its job may use the memory that is freed below. */
	worker_free(a->worker);
	a->worker = NULL;
	/* agent_new makes this module last, so a run can exist only if the module does. */
	if (a->modules.save)
		join_forget_run(a);
	codec_threads_free(a->modules.links.codec_threads);
	a->modules.links.codec_threads = NULL;
	save_free(a->modules.save);
	post_close(a->peers.post);
	post_close(a->tell.post);
	if (a->options.log->who == a->self.who)
		a->options.log->who = "agent";
	state_free(a);
}
