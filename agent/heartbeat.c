/* heartbeat.c - fills and sends the heartbeats, by which the controller detects dead agents. */
#include "agent/heartbeat.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/network/gpu_monitor.h"
#include "agent/network/probe.h"
#include "agent/network/processor_time.h"
#include "agent/network/report.h"
#include "agent/state.h"
#include "agent/sums/reduction.h"
#include "agent/tensors/delay_queue.h"
#include "base/alloc.h"
#include "base/process/memory.h"

enum {
	BEAT_US = 100000,
	/* Number of heartbeats between two readings of the resident memory and processor time */
	READ_BEATS = 10,
	PING_BYTES = 1024 /* limit of a ping's encoded size */
};

struct heartbeat {
	uint64_t number;
	int64_t due_us;
	uint64_t rss_bytes;
	struct processor_time processor;
	int64_t ping_us;    /* time of the controller's clock in the controller's newest PING */
	int64_t ping_at_us; /* time at which the newest PING arrived; 0: no PING has arrived */
};

struct heartbeat *heartbeat_new(void)
{
	struct heartbeat *h = alloc_new(sizeof(*h));

	return h;
}

void heartbeat_free(struct heartbeat *h)
{
	free(h);
}

void heartbeat_ping(struct heartbeat *h, struct tell *tell, const struct msg_ping *ping,
		    int64_t now_us)
{
	h->ping_us = ping->now_us;
	h->ping_at_us = now_us;
	tell_set_clock(tell, ping);
}

/* Counts the tensors in flight. These are the tensors that wait on this node, are being decoded,
 * or were sent and not acknowledged. Pings do not count. An undelivered report to the controller
 * counts as one tensor. Otherwise a heartbeat that overtakes the report of the last ended task
 * would say that nothing is left to do. */
static uint32_t count_in_flight(const struct agent *a)
{
	size_t size = links_chain_bytes(&a->modules.links, TENSOR_GRADIENT, false),
	       n = delay_queue_count(a->modules.delay_queue);
	struct post_peer_info info;

	n += codec_threads_decoding(a->modules.links.codec_threads);
	n += report_pending(a->modules.report) || !post_idle(a->tell.post, a->tell.controller);
	for (uint32_t i = 0; size && i < a->run.welcome.n_nodes; i++)
		if (a->peers.list[i].used &&
		    post_peer(a->peers.post, a->peers.list[i].dial, &info) == 0 &&
		    info.retained_bytes > PING_BYTES)
			n += (info.retained_bytes + size - 1) / size;
	return (uint32_t)n;
}

static uint64_t count_refused(const struct post_counters *c)
{
	uint64_t n = 0;

	for (int i = 0; i < LINK_REASON_COUNT; i++)
		n += c->link.refused[i];
	return n;
}

/* Fills in what this node does in its run. */
static void tell_progress(struct agent *a, struct msg_heartbeat *h)
{
	h->iteration = a->progress.iteration;
	h->committed = a->held.committed;
	h->hash = a->held.hash;
	h->stage = a->held.standing == STAND_READY ? a->held.stage : MSG_NO_STAGE;
	h->slots = (uint8_t)queue_slots_held(tasks_queue(a->modules.tasks));
	/* A requested step counts as a running task, because the step of a large stage takes
	 * seconds. */
	h->running = queue_running(tasks_queue(a->modules.tasks)) != NULL || a->requests.step ||
		     a->requests.zero;
	h->blocked = queue_blocked(tasks_queue(a->modules.tasks));
	h->queued = queue_waiting(tasks_queue(a->modules.tasks));
	h->in_flight = count_in_flight(a);
	h->drains = a->tell.end.drain_by_us > 0;
	h->awaits = (uint16_t)(reduction_awaits(a->modules.reduction) + 1);
}

/* Sends one heartbeat. */
static void tell_beat(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_HEARTBEAT };
	struct msg_heartbeat *h = &m.u.heartbeat;
	struct heartbeat *own = a->modules.heartbeat;
	struct post_counters control, tensors;
	struct msg_stuck stuck[MSG_STUCK];

	post_count(a->tell.post, &control);
	post_count(a->peers.post, &tensors);
	if (own->number % READ_BEATS == 0) {
		own->rss_bytes = memory_resident();
		own->processor = processor_time_read("/proc/self/task");
	}
	h->beat = ++own->number;
	h->now_us = now_us;
	h->echo_us = own->ping_us;
	h->echo_age_us = own->ping_at_us ? now_us - own->ping_at_us : 0;
	h->stage = MSG_NO_STAGE;
	if (a->run.welcomed)
		tell_progress(a, h);
	h->tasks_done = tasks_done(a->modules.tasks);
	h->rss_bytes = own->rss_bytes;
	h->ran_us = own->processor.ran_us;
	h->waited_us = own->processor.waited_us;
	h->gpu = gpu_monitor_turn(a->modules.gpu_monitor);
	h->sent_bytes = control.sent_bytes + tensors.sent_bytes;
	h->received_bytes = control.received_bytes + tensors.received_bytes;
	h->resent = control.resent_frames + tensors.resent_frames;
	h->refused = a->tell.tally.refused + count_refused(&control) + count_refused(&tensors);
	if (a->run.welcomed)
		misuse_malformed(&a->modules.misuse, now_us);
	if (a->run.welcomed && !a->tell.end.leaving)
		h->n_stuck = probe_links(&a->peers, stuck, now_us);
	h->stuck = stuck;
	tell_controller(&a->tell, &m, POST_LOSSY, now_us);
}

void heartbeat_turn(struct agent *a, int64_t now_us)
{
	struct heartbeat *h = a->modules.heartbeat;

	if (now_us < h->due_us)
		return;
	/* Sends heartbeats before WELCOME too, to show that this agent is waiting for it. */
	if (!a->tell.end.leaving)
		tell_beat(a, now_us);
	/* If the loop was late, the missed heartbeats are skipped. */
	h->due_us += BEAT_US;
	if (h->due_us <= now_us)
		h->due_us = now_us + BEAT_US;
}

int64_t heartbeat_deadline_us(const struct heartbeat *h)
{
	return h->due_us;
}
