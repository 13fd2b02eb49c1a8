/* join.c - joins a run: sends HELLO, checks WELCOME, admits and dials the other nodes.
 *
 * A controller that has been restarted sends WELCOME again. The agent then keeps its stage and its
 * standby copy, so that the run continues without a restore. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/arrivals.h"
#include "agent/execution/compute.h"
#include "agent/execution/tasks.h"
#include "agent/join.h"
#include "agent/network/connections.h"
#include "agent/network/measure.h"
#include "agent/network/report.h"
#include "agent/shared/worker.h"
#include "agent/state.h"
#include "agent/tensors/early.h"
#include "agent/weights/corpus_files.h"
#include "agent/weights/restore.h"
#include "agent/weights/save.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "wire/address.h"

enum { HEAD_BYTES = 64 << 10 }; /* limit of the bytes before the numbers in a tensor's message */

/* Returns the free bytes of the device; 0: unknown. The figure was read at the agent's start, or
 * when the worker last prepared a stage or a standby copy. On a CPU the figure is at most the
 * limit of --memory. */
static uint64_t memory_available(const struct stage_device *device, uint64_t limit)
{
	uint64_t free_bytes = device->free_bytes;

	if (limit > 0 && limit < free_bytes && strncmp(device->text, "cpu", 3) == 0)
		return limit;
	return free_bytes == UINT64_MAX ? 0 : free_bytes;
}

/* Reads the boot identifier. Until a machine reboots, all its processes share this identifier,
 * even in different containers. */
static void read_machine(char *out, size_t room)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	out[0] = 0;
	if (f && fgets(out, (int)room, f))
		out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
}

/* Returns a number that identifies the network of this process within its machine; 0: unknown. */
static uint64_t read_network(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Sends HELLO, which names the stage and the standby copy that this node holds. A restarted
 * controller can thus continue with this stage and this copy. */
void join_hello(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_HELLO };
	struct msg_hello *h = &m.u.hello;

	h->protocol = MSG_VERSION;
	h->node = a->run.welcomed ? a->run.welcome.node : a->options.node;
	h->incarnation = a->self.incarnation;
	snprintf(h->address, sizeof(h->address), "%s", a->self.address);
	snprintf(h->device, sizeof(h->device), "%s", a->device.text);
	if (gethostname(h->host, sizeof(h->host) - 1) < 0 && errno != ENAMETOOLONG)
		snprintf(h->host, sizeof(h->host), "unknown");
	h->pid = getpid();
	if (a->run.welcomed && a->held.standing == STAND_READY &&
	    !restore_unused(a->modules.restore)) {
		h->run = a->run.welcome.run;
		h->stage = a->held.stage;
		h->committed = a->held.committed;
		h->hash = a->held.hash;
	}
	h->keeps = MSG_NO_STAGE;
	h->saves = a->options.run_dir != NULL;
	h->memory_bytes = memory_available(&a->device, a->options.memory_bytes);
	h->machine_bytes = a->device.machine_bytes == UINT64_MAX ? 0 : a->device.machine_bytes;
	h->cores = cores_usable();
	h->quota = (uint32_t)(1000 * cores_quota() + 0.5);
	read_machine(h->machine, sizeof(h->machine));
	h->network = read_network();
	snprintf(h->inside, sizeof(h->inside), "%s", a->self.inside);
	snprintf(h->place, sizeof(h->place), "%s", a->options.place ? a->options.place : "");
	snprintf(h->card, sizeof(h->card), "%s", a->device.bus_id);
	if (a->run.welcomed && standby_standing(a->modules.standby) == STANDBY_WHOLE) {
		h->run = a->run.welcome.run;
		h->keeps = standby_stage(a->modules.standby);
		h->kept = standby_iteration(a->modules.standby);
		h->kept_hash = standby_hash(a->modules.standby);
	}
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
}

/* ---- welcome ---- */

static bool is_seconds(double s)
{
	return isfinite(s) && s >= 0 && s <= 1e6;
}

static const char *welcome_fault(const struct msg_welcome *w)
{
	if (w->n_nodes == 0 || w->node >= w->n_nodes)
		return "its node is not one of the cluster's";
	if (w->batch == 0 || w->sequence == 0 || w->n_shards == 0 || w->slots == 0)
		return "batch, sequence, shards and slots must be 1 or more";
	if (!is_seconds(w->time_scale) || !is_seconds(w->forward_s) || !is_seconds(w->backward_s) ||
	    !is_seconds(w->loss_s) || !is_seconds(w->dispatch_overhead_s))
		return "a time or the time scale is out of range";
	if ((w->n_delays && w->n_delays != w->n_nodes) ||
	    (w->n_bytes && w->n_bytes != w->n_delays) || (w->n_syncs && w->n_syncs != w->n_nodes))
		return "delays must be for all nodes, or for none";
	for (uint32_t i = 0; i < w->n_delays; i++)
		if (!isfinite(w->delay_s[i]) || w->delay_s[i] > 1e6f)
			return "a delay is out of range";
	for (uint32_t i = 0; i < w->n_bytes; i++)
		if (!(w->bytes_s[i] >= 0) || (w->delay_s[i] >= 0 && w->bytes_s[i] > w->delay_s[i]))
			return "the bytes of a delay take longer than the delay";
	for (uint32_t i = 0; i < w->n_syncs; i++)
		if (!isfinite(w->sync_s[i]) || w->sync_s[i] > 1e6f)
			return "a sync time is out of range";
	if (w->n_corpus && w->corpus[w->n_corpus - 1] != 0)
		return "the last corpus path does not end";
	return NULL;
}

static int read_model(const struct msg_welcome *w, struct model_config *c, struct error *err)
{
	int rc;

	if (w->model[0] == '{')
		rc = model_config_parse(c, NULL, w->model, strlen(w->model), "model", err);
	else
		rc = model_preset(w->model, c, NULL, err);
	if (rc == 0)
		rc = model_config_check(c, err);
	if (rc == 0 && c->n_stages > MSG_STAGES)
		rc = error_set(err, -EINVAL, "model: %u stages; at most %d", c->n_stages,
			       MSG_STAGES);
	if (rc == 0 && w->sequence > c->context)
		rc = error_set(err, -EINVAL, "a sequence of %u tokens in a context of %u",
			       w->sequence, c->context);
	return rc;
}

static uint32_t count_paths(const char *paths, size_t size)
{
	uint32_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += paths[i] == 0;
	return n;
}

void join_forget_run(struct agent *a)
{
	job_clear(&a->job);
	tasks_forget(a->modules.tasks);
	device_clock_forget(a->modules.device_clock);
	if (tasks_queue(a->modules.tasks))
		iteration_forget(&a->iteration);
	standby_forget(a->modules.standby);
	weight_server_forget(a->modules.weight_server);
	restore_forget(a->modules.restore);
	restore_cancel(a->modules.restore);
	save_forget(a->modules.save);
	measure_forget(a->modules.measure);
	connections_forget(a->modules.connections);
	for (uint32_t i = 0; a->peers.list && i < a->run.welcome.n_nodes; i++)
		arrivals_let_in(&a->peers, (uint16_t)i);
	early_free(a->modules.early);
	a->modules.early = NULL;
	iteration_forget_evaluation(&a->iteration);
	plans_forget(&a->modules.plans);
	tasks_end_run(a->modules.tasks);
	compute_free(a->compute);
	a->compute = NULL;
	for (uint32_t i = 0; a->peers.list && i < a->run.welcome.n_nodes; i++)
		if (a->peers.list[i].known)
			links_forget_peer(&a->modules.links, (uint16_t)i);
	sum_codecs_free(a->run.sum_codecs);
	a->run.sum_codecs = NULL;
	free(a->peers.list);
	free(a->run.times.delay_s);
	free(a->run.times.bytes_s);
	free(a->run.times.sync_s);
	a->peers.list = NULL;
	a->run.times.delay_s = a->run.times.bytes_s = a->run.times.sync_s = NULL;
	a->held.standing = STAND_UNASSIGNED;
	a->held.stage = MSG_NO_STAGE;
	a->held.committed = a->held.hash = a->held.announced = 0;
	a->held.whole = false;
	report_void(a->modules.report);
	a->run.welcomed = false;
}

static float *copy_times(const float *from, uint32_t n, uint32_t n_nodes)
{
	float *to = alloc_array(n_nodes, sizeof(to[0]));

	if (n)
		memcpy(to, from, n * sizeof(to[0]));
	return to;
}

/* Takes the values of WELCOME that may change during a run. */
static void take_times(struct run *run, const struct msg_welcome *w)
{
	free(run->times.delay_s);
	free(run->times.bytes_s);
	free(run->times.sync_s);
	run->times.delay_s = copy_times(w->delay_s, w->n_delays, w->n_nodes);
	run->times.bytes_s = copy_times(w->bytes_s, w->n_bytes, w->n_nodes);
	run->times.sync_s = copy_times(w->sync_s, w->n_syncs, w->n_nodes);
	run->welcome = *w;
	run->welcome.delay_s = NULL;
	run->welcome.bytes_s = NULL;
	run->welcome.sync_s = NULL;
	run->welcome.corpus = NULL;
}

/* Stops taking part in the present run. The memory of the run stays until the worker is idle,
 * because the worker's job uses it. */
static void leave_run(struct agent *a)
{
	report_void(a->modules.report);
	save_forget(a->modules.save);
	a->run.welcomed = false;
}

/* Leaves the previous run and begins the new one. -EAGAIN: the worker still runs a job of the
 * previous run. The loop must not wait for that job, because the heartbeats would stop. */
static int begin_run(struct agent *a, const struct msg_welcome *w,
		     const struct compute_setup *setup, struct error *err)
{
	int rc;

	if (worker_busy(a->worker)) {
		leave_run(a);
		return -EAGAIN;
	}
	join_forget_run(a);
	a->peers.list = alloc_array(w->n_nodes, sizeof(a->peers.list[0]));
	a->modules.early = early_new(w->n_nodes);
	take_times(&a->run, w);
	rc = sum_codecs_new(&a->run.sum_codecs, &setup->config, FORMAT_FP32, err);
	if (rc)
		return rc;
	if (compute_new(&a->compute, setup) < 0 || tasks_begin_run(a->modules.tasks, w->slots) < 0)
		return error_set(err, -ENOMEM, "no memory for the run");
	return 0;
}

/* Returns the size of the longest message in the run: a header, followed by an activation, by a
 * piece of a slice or by a piece of a stage. */
static size_t longest_message(const struct links *links, const struct msg_welcome *w,
			      const struct model_config *c)
{
	size_t activation = (size_t)w->batch * w->sequence * c->dim * sizeof(float);
	size_t piece = 3 * MSG_PIECE_FLOATS * sizeof(float),
	       longest = links_slice_bytes(links);

	longest = activation > longest ? activation : longest;
	longest = HEAD_BYTES + (piece > longest ? piece : longest);
	return longest < links_message_bytes(links) ? longest : links_message_bytes(links);
}

int join_welcome(struct agent *a, const struct msg_welcome *w, int64_t now_us)
{
	const char *fault = welcome_fault(w);
	struct compute_setup setup = { 0 };
	struct error err = { "" };
	int rc = 0;

	if (fault)
		rc = error_set(&err, -EINVAL, "%s", fault);
	if (rc == 0)
		rc = read_model(w, &setup.config, &err);
	if (rc) {
		tell_trouble(&a->tell, true, "the controller's welcome: %s", err.text);
		return 0;
	}
	setup.batch = w->batch;
	setup.sequence = w->sequence;
	setup.slots = w->slots;
	setup.threads = w->threads;
	setup.n_shards = w->n_shards;
	setup.seed = w->seed;
	setup.steps_before = w->steps_before;
	snprintf(setup.device, sizeof(setup.device), "%s", a->device.name);
	setup.recompute = a->options.recompute;
	setup.memory_bytes = a->options.memory_bytes;
	setup.quota = cores_quota();
	setup.has_tokenizer = w->has_tokenizer;
	setup.corpus_size = w->n_corpus;
	setup.corpus = (char *)w->corpus;
	setup.n_corpus = count_paths(w->corpus, w->n_corpus);
	/* If only the controller was restarted, the agent keeps its state. */
	if (a->run.welcomed && a->run.welcome.run == w->run && a->run.welcome.node == w->node &&
	    a->run.welcome.n_nodes == w->n_nodes && compute_fits(a->compute, &setup))
		take_times(&a->run, w);
	else
		rc = begin_run(a, w, &setup, &err);
	if (rc == -EAGAIN)
		return rc;
	if (rc) {
		tell_trouble(&a->tell, true, "%s",
			     err.text[0] ? err.text : "no memory for the run");
		return 0;
	}
	a->run.config = setup.config;
	corpus_files_welcome(a->modules.corpus_files, w->corpus, w->n_corpus);
	post_limit(a->peers.post, longest_message(&a->modules.links, w, &setup.config));
	a->run.limits = (struct route_limits){ w->n_nodes, setup.config.n_stages, w->n_shards };
	/* A new controller counts its assignments from 1. */
	a->held.assign.assignment = 0;
	standby_accept_any_order(a->modules.standby);
	a->run.welcomed = true;
	/* This WELCOME may be from a new controller, with another clock. */
	a->tell.clock.is_measured = false;
	snprintf(a->self.who, sizeof(a->self.who), "agent %u", w->node);
	log_line(a->tell.log, LOG_INFO,
		 "welcome: node %u of %u, %u stages, %u slots, "
		 "time scale %g",
		 w->node, w->n_nodes, setup.config.n_stages, w->slots, w->time_scale);
	a->modules.link_times.due_us = now_us;
	return 0;
}

/* ---- the other nodes ---- */

/* Returns the reason why the controller has withdrawn a peer's key, in words for the log. */
static const char *absence_text(uint8_t absence)
{
	switch (absence) {
	case PEER_AWAY:
		return "has not returned to the new controller; its key is refused until it does";
	case PEER_EXPELLED:
		return "its key was expelled";
	case PEER_EXCLUDED:
		return "is excluded for the data that it sent; its key is refused meanwhile";
	default:
		return "has another key";
	}
}

/* Gives the address at which this machine reaches a peer. A link-local address needs the name of
 * an interface of this machine. The interface's name is taken from --join's address. If --join's
 * address names no interface, the name is taken from the address at which this agent listens. */
static void find_address(struct agent *a, const struct msg_peer *m, char out[LINK_ADDRESS_SIZE])
{
	char zone[LINK_ADDRESS_SIZE];
	struct error err = { "" };

	address_zone(zone, a->options.join);
	if (!zone[0])
		address_zone(zone, a->self.bound);
	if (address_with_zone(out, m->address, zone, &err) < 0)
		tell_log(&a->tell, LOG_WARN, "node %u: %s", m->node, err.text);
}

/* Warns once if other machines cannot dial this agent's address. */
static void check_own_address(struct agent *a, const struct msg_peer *m)
{
	if (!m->elsewhere || a->self.warned_of_address || !address_is_own(a->self.address))
		return;
	a->self.warned_of_address = true;
	tell_log(&a->tell, LOG_WARN,
		 "%.60s means the machine itself, other machines cannot connect to it: start "
		 "with --advertise and this machine's name or address",
		 a->self.address);
}

static void take_peer(struct agent *a, const struct msg_peer *m)
{
	static const struct keys_public none;
	struct peer *p = &a->peers.list[m->node];
	char name[KEYS_NAME_SIZE], address[LINK_ADDRESS_SIZE];
	struct keys_public key;
	struct error err = { "" };

	memcpy(key.bytes, m->key, sizeof(key.bytes));
	find_address(a, m, address);
	if (p->known && keys_equal(&p->key, &key) && strcmp(p->place.address, address) == 0)
		return;
	snprintf(name, sizeof(name), "node%u", m->node);
	if (p->known) {
		links_forget_peer(&a->modules.links, m->node);
		/* The withdrawal of the key ends the peer's sessions in the next turn of the
		 * loop. */
		if (!keys_equal(&p->key, &key)) {
			log_line(a->tell.log, LOG_INFO, "node %u: %s", m->node,
				 absence_text(m->absence));
			keys_list_expel(a->admitted, name, &err);
		}
	}
	arrivals_let_in(&a->peers, m->node);
	if (keys_equal(&key, &none))
		arrivals_forget_peer(a, m->node); /* the node has left */
	*p = (struct peer){ .known = false };
	if (keys_equal(&key, &none))
		return;
	if (keys_list_admit(a->admitted, &key, KEYS_AGENT, name, &err) < 0) {
		tell_trouble(&a->tell, false, "node %u cannot be admitted: %s", m->node, err.text);
		return;
	}
	p->known = true;
	p->key = key;
	p->place.elsewhere = m->elsewhere;
	memcpy(p->place.address, address, sizeof(p->place.address));
	check_own_address(a, m);
	if (a->run.welcome.n_nodes <= PEERS_DIAL_ALL)
		peers_dial(&a->peers, m->node);
}

void join_peers(struct agent *a, const struct msg_peers *m)
{
	for (uint32_t i = 0; i < m->n_peers; i++) {
		if (m->peers[i].node >= a->run.welcome.n_nodes) {
			a->tell.tally.refused++;
			continue;
		}
		if (m->peers[i].node != a->run.welcome.node)
			take_peer(a, &m->peers[i]);
	}
	a->requests.look_again = true;
}
