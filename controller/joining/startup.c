/* startup.c - prepares the first iteration of a new run, or the next iteration of a run whose
 * controller was restarted.
 *
 * New run: agents join. The agents measure their links, and then the agents of each machine measure
 * their compute one after another. The planner makes a plan, and the agents build their stages. An
 * emulated cluster is planned at once, because its delays are given.
 *
 * Resumed run: the controller waits for the agents of the last commit. If every stage has a holder
 * among these agents, the run continues with the agents' weights. Otherwise copies or checkpoints
 * restore the lost stages. If the run resumed too early, it would discard weights that arrive a
 * moment later. */
#include "controller/joining/startup.h"

#include <math.h>
#include <string.h>

#include "controller/iteration/iteration.h"
#include "controller/joining/agents.h"
#include "controller/joining/first_stages.h"
#include "controller/joining/slots.h"
#include "controller/members/announce.h"
#include "controller/members/capacity.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/members/saved_state.h"
#include "controller/network/link_record.h"
#include "controller/network/link_table.h"
#include "controller/network/measuring.h"
#include "controller/planning/drift.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/record.h"
#include "controller/trust/agreement.h"
#include "controller/weights/assign.h"
#include "controller/weights/checkpoints.h"
#include "model/device_name.h"

enum {
	/* A resumed run waits for agents for this time plus REGATHER_TRIPS round trips of the
	 * longest link. Connecting alone takes four round trips. */
	REGATHER_US = 1200000,
	REGATHER_TRIPS = 5,
	BUILD_US = 60000000,
	JOINED_US = 1000000,
	/* For each kind of device on a machine, only this many agents are measured. The other
	 * agents with such a device on this machine get the mean of the measured times. */
	TIMED_OF_MACHINE = 2
};

static const double watchable_s = 2.5;
/* Processor seconds for the tensor and the events of one task, if all agents share one machine. */
static const double task_messages_s = 0.003;
/* Largest share of an emulated iteration that may be spent on arithmetic */
static const double busy_share = 0.4;

/* ---- status ---- */

static uint8_t list_steps(const struct run *run)
{
	unsigned measured = 1u << GATHER_LINKS | 1u << GATHER_PLAN,
		 all = (1u << (GATHER_BUILD + 1)) - 1;

	if (run->resumed)
		return 1u << GATHER_COMING;
	if (!measuring_wanted(run))
		return (uint8_t)(all & ~measured);
	return (uint8_t)(run->options.mode.measure_only ? (1u << GATHER_PLAN) - 1 : all);
}

/* Fills in the steps of the run's start. The progress of a step counts the nodes that have done
 * their part.
 */
void startup_status(const struct members *members, struct msg_see_status *s)
{
	uint32_t here = 0, ready = 0, timed = 0;
	char left[32] = "";

	for (uint32_t i = 0; i < members->n; i++) {
		here += member_alive(&members->list[i]);
		ready += member_is_ready(&members->list[i]);
		timed += member_alive(&members->list[i]) &&
			 members->list[i].compute.alone_forward_s > 0;
	}
	s->steps = list_steps(members->run);
	s->step = (uint8_t)(members->run->resumed ? GATHER_COMING : members->gathering);
	s->parts = s->step == GATHER_COMING ? members->n : s->step == GATHER_PLAN ? 0 : here;
	s->part = s->step == GATHER_COMING ? here : s->step == GATHER_COMPUTE ? timed : ready;
	switch ((enum gather_step)s->step) {
	case GATHER_COMING:
		snprintf(s->doing, sizeof(s->doing), "gathering agents: %u of %u are here", s->part,
			 s->parts);
		break;
	case GATHER_LINKS:
		s->left_s = (float)measuring_round(members, &s->part, &s->parts);
		if (s->left_s >= 1)
			snprintf(left, sizeof(left), ", about %.0f s left", (double)s->left_s);
		snprintf(s->doing, sizeof(s->doing), "measuring links: round %u of %u%s", s->part,
			 s->parts, left);
		break;
	case GATHER_COMPUTE:
		snprintf(s->doing, sizeof(s->doing), "measuring how fast nodes compute: %u of %u",
			 s->part, s->parts);
		break;
	case GATHER_PLAN:
		s->part = 0;
		snprintf(s->doing, sizeof(s->doing), "planning with the measurements");
		break;
	case GATHER_BUILD:
		snprintf(s->doing, sizeof(s->doing), "agents build their stages: %u of %u ready",
			 s->part, s->parts);
		break;
	}
}

static void go_to_step(struct members *members, enum gather_step to)
{
	static const char *const begins[] = {
		[GATHER_COMPUTE] = "measuring how fast nodes compute",
		[GATHER_PLAN] = "planning with the measurements",
		[GATHER_BUILD] = "agents build their stages",
	};

	members->gathering = to;
	members->run->stream.next_status_us = 0;
	if (begins[to]) /* measuring_begin writes its own journal line */
		note(members->run, NOTE_EVENT, -1, 0, "%s", begins[to]);
}

static void first_assignments(struct planning *planning)
{
	int stages[MSG_NODES], shard = 0;

	plan_stages(planning->pending->plan, planning->run->cluster->n_nodes, stages);
	for (uint32_t i = 0; i < planning->members->n; i++)
		planning->run->cluster->nodes[i].stage = planning->members->list[i].move.home =
			stages[i];
	for (uint32_t i = 0; i < planning->members->n; i++)
		planning->run->training.shard_of[i] = stages[i] == 0 ? shard++ : -1;
	resume_save(planning->members);
	/* Nodes that joined during the measurement have not received the description of the run
	 * yet */
	members_welcome(planning->members);
	for (uint32_t i = 0; i < planning->members->n; i++)
		if (member_alive(&planning->members->list[i]) &&
		    (stages[i] >= 0 ||
		     measuring_isolates(planning->members, &planning->members->list[i])))
			members_assign(planning->members, &planning->members->list[i], stages[i],
				       false);
}

/* Returns the processor seconds of an iteration's tasks and messages. Sets *cores to the number of
 * processors of all machines. */
static double arithmetic_s(const struct members *members, const struct plan *p, uint32_t *cores)
{
	double forward_s = 0, backward_s = 0, loss_s = 0, visits = 0;
	uint32_t n = 0;

	*cores = 0;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];
		bool first = true;

		if (!member_alive(m))
			continue;
		for (uint32_t k = 0; k < i; k++)
			first = first && !(member_alive(&members->list[k]) &&
					   members_share_machine(m, &members->list[k]));
		*cores += first ? m->hello.cores : 0;
		forward_s += m->compute.alone_forward_s;
		backward_s += m->compute.alone_backward_s;
		loss_s += m->compute.alone_loss_s;
		n++;
	}
	for (int i = 0; i < p->n_microbatches; i++)
		visits += p->microbatches[i].length;
	if (n == 0)
		return 0;
	return (visits * (forward_s + backward_s) + p->n_microbatches * loss_s) / n +
	       (2 * visits + p->n_microbatches) * task_messages_s;
}

/* Sets the time scale, unless the operator has set it. With this scale an iteration lasts long
 * enough for a person to follow it. The iteration lasts longer if the machine needs more time for
 * the arithmetic. */
static void choose_time_scale(struct planning *planning)
{
	const struct plan_predicted *p = &planning->pending->plan->predicted;
	uint32_t cores;
	double most_s = watchable_s,
	       busy_s = arithmetic_s(planning->members, planning->pending->plan, &cores);

	if (cores > 0 && busy_s / cores > busy_share * most_s)
		most_s = busy_s / cores / busy_share;
	if (run_is_rehearsal(planning->run))
		most_s = watchable_s; /* agents of a rehearsal do no arithmetic */
	if (planning->run->options.cluster.time_scale < 0 && most_s > watchable_s)
		note(planning->run, NOTE_EVENT, -1, 0,
		     "an iteration needs %.1f s of %u cores: the time scale gives it %.1f s",
		     busy_s, cores, most_s);
	if (planning->run->options.cluster.time_scale < 0)
		planning->run->options.cluster.time_scale = most_s / (p->iteration_s + p->sync_s);
	planning->run->unit_s = planning->run->options.cluster.time_scale > 0
					? planning->run->options.cluster.time_scale
					: 1;
	consoles_run(planning->members);
}

/* Returns true if m is building its stage and the time limit for building is not over. */
static bool is_building(const struct run *run, const struct member *m)
{
	int64_t most =
		BUILD_US > run->options.limits.gather_us ? BUILD_US : run->options.limits.gather_us;

	return member_alive(m) && !m->is_marked && !member_is_ready(m) &&
	       run->now_us - m->assigned.at_us < most;
}

/* ---- speed and memory of nodes ---- */

static bool computes_alike(const struct member *a, const struct member *b)
{
	return members_share_machine(a, b) && a->hello.quota == b->hello.quota &&
	       device_texts_alike(a->hello.device, b->hello.device);
}

/* Returns the stage in which compute is measured: if possible not stage 0, which reads the
 * corpus. */
static uint8_t timed_stage(const struct members *members)
{
	return members->run->cluster->n_stages > 1;
}

/* Assigns a stage to m so that m's compute can be measured. */
static void have_timed(struct members *members, struct member *m)
{
	struct msg a = { .type = MSG_ASSIGN };

	/* If m joined after the links were measured, it has not been welcomed yet */
	members_welcome(members);
	m->assigned.number = ++members->assignments;
	m->assigned.at_us = members->run->now_us;
	a.u.assign = (struct msg_assign){ m->assigned.number, timed_stage(members), false };
	member_apply(members->run, m, EVENT_ASSIGN, "its compute is measured");
	member_send(members->run, m, &a);
}

/* Returns the number of measured nodes of m's kind, and the sums of their times. Sets *busy if an
 * agent of m's machine is being measured. */
static int timed_like(const struct members *members, const struct member *m, bool *busy,
		      double *forward_s, double *backward_s)
{
	int n = 0;

	*busy = false;
	*forward_s = *backward_s = 0;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *other = &members->list[i];

		*busy = *busy || (members_share_machine(m, other) && other->assigned.number &&
				  is_building(members->run, other));
		if (other->compute.alone_forward_s <= 0 || !other->assigned.number ||
		    !computes_alike(m, other))
			continue;
		*forward_s += other->compute.alone_forward_s;
		*backward_s += other->compute.alone_backward_s;
		n++;
	}
	return n;
}

/* Measures the agents of each machine one after another, so that no other agent of the machine
 * computes meanwhile. Agents of a rehearsal are not measured, because the cluster file gives
 * their times. Returns true when all times are known. */
static bool all_timed(struct members *members)
{
	const struct cluster_node *given = members->run->cluster_as_given->nodes;
	bool all = true;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		double forward_s, backward_s;
		bool busy;
		int n;

		if (!member_alive(m) || m->compute.alone_forward_s > 0)
			continue;
		if (run_is_rehearsal(members->run)) {
			m->compute.alone_forward_s = fmax(given[i].forward_s, 1e-6);
			m->compute.alone_backward_s = fmax(given[i].backward_s, 1e-6);
			continue;
		}
		if (m->assigned.number && member_is_ready(m)) {
			double work = cluster_work(members->run->cluster, timed_stage(members));

			m->compute.alone_forward_s =
				m->compute.forward_s > 0 ? m->compute.forward_s / work : 1e-6;
			m->compute.alone_backward_s =
				m->compute.backward_s > 0 ? m->compute.backward_s / work : 1e-6;
			continue;
		}
		n = timed_like(members, m, &busy, &forward_s, &backward_s);
		if (n >= TIMED_OF_MACHINE && !m->assigned.number) {
			m->compute.alone_forward_s = forward_s / n;
			m->compute.alone_backward_s = backward_s / n;
			continue;
		}
		if (m->assigned.number && !is_building(members->run, m)) {
			member_apply(members->run, m, EVENT_LOST, "did not build a stage in time");
			continue;
		}
		all = false;
		if (!m->assigned.number && !busy)
			have_timed(members, m);
	}
	return all;
}

static void take_times(struct members *members)
{
	double ratio =
		capacity_loss_ratio(&members->run->training.model, &members->run->training.hyper);

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->compute.alone_forward_s <= 0)
			continue;
		m->compute.alone_loss_s =
			run_is_rehearsal(members->run)
				? members->run->cluster_as_given->nodes[i].loss_s
				: ratio * m->compute.alone_forward_s;
		if (members->run->options.cluster.time_scale != 0)
			continue; /* the cluster gives the times of emulated nodes */
		drift_set_times(members->run, m);
		record_compute(members->run, m->id);
	}
}

/* ---- the steps ---- */

static bool all_have_come(struct members *members)
{
	bool patient = members->run->now_us - members->run->committed_us <
		       members->run->options.limits.gather_us;
	const struct options *o = &members->run->options;
	/* The supervisor of an embedded cluster starts only MIN agents (--agents MIN..MAX). */
	uint32_t here = 0, expected = o->mode.embedded && o->cluster.least_agents > 1
					      ? o->cluster.least_agents
					      : members->n;

	for (uint32_t i = 0; i < members->n; i++)
		here += member_alive(&members->list[i]);
	if (here == 0 && !patient)
		controller_finish(members, 1, "no agent came");
	return here > 0 && (here == expected || !patient);
}

/* Returns true if enough agents have joined for a new run (--agents MIN..MAX). Otherwise ends the
 * run, because the time for joining is over. */
static bool are_enough(struct members *members)
{
	const struct options *o = &members->run->options;
	uint32_t here = 0;
	char why[96];

	for (uint32_t i = 0; i < members->n; i++)
		here += member_alive(&members->list[i]);
	if (here >= o->cluster.least_agents || o->cluster.file)
		return true;
	snprintf(why, sizeof(why), "%u agents came in %u s (--gather-s), and --agents needs %u",
		 here, (unsigned)(o->limits.gather_us / 1000000), o->cluster.least_agents);
	controller_finish(members, 1, why);
	return false;
}

static void gather_coming(struct planning *planning)
{
	if ((!measuring_wanted(planning->run) && !planning->pending) ||
	    !all_have_come(planning->members) || !are_enough(planning->members))
		return;
	if (measuring_wanted(planning->run))
		slots_settle_all(planning->members);
	members_welcome(planning->members);
	if (measuring_wanted(planning->run)) {
		measuring_begin(planning->members);
		go_to_step(planning->members, GATHER_LINKS);
	} else {
		go_to_step(planning->members, GATHER_COMPUTE);
	}
}

/* Assigns the stages of an emulated run, for which a plan already exists. Welcomes the agents
 * again, because the time scale was unknown at their first welcome. */
static void begin_emulated(struct planning *planning)
{
	choose_time_scale(planning);
	for (uint32_t i = 0; i < planning->members->n; i++) {
		planning->members->list[i].assigned.number = 0;
		planning->members->list[i].assigned.is_welcomed = false;
	}
	members_welcome(planning->members);
	first_assignments(planning);
	go_to_step(planning->members, GATHER_BUILD);
}

static void gather_compute(struct iteration *it)
{
	struct planning *planning = it->planning;
	struct error err = { "" };

	if (!all_timed(planning->members) || disk_waits(planning->run))
		return;
	if (!measuring_wanted(planning->run)) {
		take_times(planning->members);
		begin_emulated(planning);
		return;
	}
	link_table_apply_all(planning->members->links, planning->run->cluster);
	take_times(planning->members);
	if (disk_is_locked(planning->run))
		return;
	if (record_cluster(planning->members, &err) != 0) {
		controller_unrecorded(planning->members, err.text);
		return;
	}
	for (uint32_t i = 0; i < planning->members->n; i++)
		planning->members->list[i].assigned.number = 0;
	if (planning->run->options.mode.measure_only) {
		controller_finish(planning->members, 0, "the cluster is measured");
		return;
	}
	go_to_step(planning->members, GATHER_PLAN);
	if (planning->run->options.cluster.chooses_stages)
		first_stages_begin(it);
	else
		replan_first(planning);
}

/* If the stages are to be chosen, the first plan is requested after the choice. */
static void gather_plan(struct iteration *it)
{
	if (it->run->options.cluster.chooses_stages) {
		if (!first_stages_turn(it))
			return;
		take_times(it->members);
		replan_first(it->planning);
	} else if (it->planning->pending) {
		first_assignments(it->planning);
		go_to_step(it->members, GATHER_BUILD);
	}
}

/* Reports in the journal when the first checkpoint will be written, or that there are no
 * checkpoints. Without a checkpoint, the loss of all nodes of a stage restarts the run from its
 * first weights. */
static void note_first_checkpoint(struct run *run)
{
	if (run->options.checkpoint_every)
		note(run, NOTE_LOG, -1, 0,
		     "the first checkpoint follows it%u: if all nodes of a stage are lost before, "
		     "the run restarts from its first weights",
		     run->options.checkpoint_every);
	else
		note(run, NOTE_LOG, -1, 0,
		     "there are no checkpoints: if all nodes of a stage are lost, the run restarts "
		     "from its first weights");
}

/* Reports in the journal that the run is a rehearsal. Warns if the activations in the cluster
 * file have another size than the activations of the model. */
static void note_rehearsal(const struct iteration *it)
{
	const struct training *t = &it->run->training;
	const struct link_table *network = it->members->emulated;
	double model = (double)t->hyper.batch * t->hyper.sequence * t->model.dim * sizeof(float) *
		       t->model.rehearsal;

	note(it->run, NOTE_EVENT, -1, 0,
	     "REHEARSAL: agents compute nothing, tensors have 1/%u of their bytes, nothing is "
	     "trained", t->model.rehearsal);
	if (network && network->activation_bytes > 0 &&
	    fabs(network->activation_bytes / model - 1) > 0.1)
		note(it->run, NOTE_WARNING, -1, 0,
		     "the cluster file has activations of %.3g bytes, and is rehearsed with them; "
		     "the model's have %.3g", network->activation_bytes, model);
}

/* Starts the run once all agents have built their stages, or the time for building is over. */
static void gather_built(struct iteration *it)
{
	uint32_t ready = 0, building = 0;

	for (uint32_t i = 0; i < it->members->n; i++) {
		const struct member *m = &it->members->list[i];

		ready += member_is_ready(m) && !m->is_marked;
		building += is_building(it->run, m) && !measuring_isolates(it->members, m);
	}
	if (building > 0 || !all_have_come(it->members))
		return;
	agreement_before_start(it->members);
	/* agreement_before_start has ended the run, because the corpus is not the intended one */
	if (it->run->phase == PHASE_FINISHED)
		return;
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *m = &it->members->list[i];

		if (member_is_ready(m) && !m->is_marked)
			member_apply(it->run, m, EVENT_ADMIT, "");
		else
			m->move.use = USE_UNDECIDED; /* spares_admit decides later */
	}
	if (!replicas_everywhere(it->members)) {
		controller_finish(it->members, 1,
				  "some stage has no agent: start more, or fewer --stages");
		return;
	}
	note(it->run, NOTE_EVENT, -1, 0, "%u of %u agents are here", ready, it->members->n);
	if (run_is_rehearsal(it->run))
		note_rehearsal(it);
	note_first_checkpoint(it->run);
	it->run->committed_us = it->run->now_us;
	if (it->run->options.cluster.time_scale == 0 && !run_is_rehearsal(it->run))
		drift_guess_pace(it->planning, it->planning->pending->plan);
	if (ready < it->members->n || it->run->options.cluster.time_scale == 0 ||
	    spares_any(it->members, SPARES_ALL))
		replan(it->planning, ready < it->members->n ? "not all agents came"
				     : it->run->options.cluster.time_scale == 0
					     ? "compute was measured"
					     : "nodes that failed often are used last");
	if (it->run->options.cluster.time_scale == 0)
		replan_baseline(it->planning);
	it->evaluation.wanted = it->run->options.eval_every > 0;
	set_phase(it->run, PHASE_PLANNING);
}

static void gather_new(struct iteration *it)
{
	switch (it->members->gathering) {
	case GATHER_COMING:
		gather_coming(it->planning);
		break;
	case GATHER_LINKS:
		if (measuring_turn(it->members))
			go_to_step(it->members, GATHER_COMPUTE);
		break;
	case GATHER_COMPUTE:
		gather_compute(it);
		break;
	case GATHER_PLAN:
		gather_plan(it);
		break;
	case GATHER_BUILD:
		gather_built(it);
		break;
	}
}

/* Called if no agent holds the weights of some stage. Stalls the run, so that copies or a
 * checkpoint restore the stage. */
static void gather_without(struct backups *backups)
{
	if (!backups->run->wanted.recut.is_done)
		note(backups->run, NOTE_ALERT, -1, 0,
		     "not every stage has an agent with its weights of it%llu",
		     (unsigned long long)backups->run->committed);
	backups->stall.since_us = backups->run->committed_us = backups->run->now_us;
	backups->stall.in = PHASE_PLANNING;
	set_phase(backups->run, PHASE_STALLED);
}

static bool awaits_any(const struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m->is_awaited && !member_is_ready(m))
			return true;
		if (member_is_ready(m) && m->beat.beat == 0)
			/* the node has sent no heartbeat, so its clock is not known yet */
			return true;
	}
	return false;
}

static int64_t regather_us(const struct members *members)
{
	double longest_s = 0;

	for (uint32_t i = 0; members->links && i < members->links->n * members->links->n; i++)
		longest_s = fmax(longest_s, (double)members->links->links[i].latency_s);
	return REGATHER_US + (int64_t)(REGATHER_TRIPS * 2e6 * longest_s);
}

/* Returns true if the controller should still wait for agents. The controller waits longer if all
 * weights of some stage contradict the record, because agents with the correct weights may join
 * later. */
static bool is_patient(const struct members *members, int64_t waited)
{
	return waited < regather_us(members) || (waited < members->run->options.limits.gather_us &&
						 agreement_record_contradicted(members));
}

/* Returns true if every stage has a node whose weights are ready to continue with. */
static bool ready_everywhere(const struct members *members)
{
	bool has_node[MSG_STAGES] = { false };
	int n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];
		int stage = member_stage(members->run, m);

		if (member_is_ready(m) && !m->is_marked && stage >= 0 && !has_node[stage]) {
			has_node[stage] = true;
			n++;
		}
	}
	return n == members->run->cluster->n_stages;
}

/* Turns nodes that hold the last commit into replicas. late: true for the nodes that did not take
 * part in the last commit; false for those that did. */
static void admit_these(struct members *members, bool late)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!member_is_ready(m) || (m->move.use == USE_UNDECIDED) != late)
			continue;
		spares_admit(members, m);
		member_apply(members->run, m, EVENT_ADMIT, "");
	}
}

/* Admits the nodes that hold the last commit. Nodes that did not take part in that commit come
 * last: if enough other nodes are in use by then, they wait as spares. Afterwards a spare replaces
 * each node that did not come back. */
static void admit_ready(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) && members->list[i].is_marked)
			member_apply(members->run, &members->list[i], EVENT_BAR, "marked failed");
	admit_these(members, false);
	admit_these(members, true);
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->is_awaited && m->state == MEMBER_DEAD && member_has_key(m))
			spares_replace(members, m);
	}
}

/* Returns true if all nodes for which the run waits are connected. Usually these are all nodes.
 * After a change of stages no node holds weights, so the run does not wait for nodes that had
 * left before the change. */
static bool all_returned(const struct members *members, uint32_t here)
{
	if (members->run->training.part.after != members->run->committed)
		return here == members->n;
	for (uint32_t i = 0; i < members->n; i++)
		if (members->list[i].is_awaited && !member_alive(&members->list[i]))
			return false;
	return true;
}

/* Continues a resumed run once the agents of the last commit are back. After a short wait, it is
 * enough that every stage has an agent with its weights. If a stage has no such agent within
 * --gather-s, the run stalls until the stage is restored.
 *
 * If a finished run lacks its last checkpoint, agents that hold the weights write it, and nothing
 * is computed. */
static void gather_again(struct backups *backups)
{
	int64_t waited = backups->run->now_us - backups->run->committed_us;
	uint32_t ready = 0, here = 0;

	if (run_is_done(backups->run) &&
	    (checkpoint_is_there(backups) || waited > backups->run->options.limits.gather_us)) {
		/* The earlier controller died while it announced the end of the run */
		controller_finish(backups->members, 0, "done");
		return;
	}
	for (uint32_t i = 0; i < backups->members->n; i++) {
		here += member_alive(&backups->members->list[i]) &&
			backups->members->list[i].assigned.is_welcomed;
		ready += member_is_ready(&backups->members->list[i]);
	}
	if (here == 0 && waited > backups->run->options.limits.gather_us)
		controller_finish(backups->members, 1, "no agent came");
	if (here == 0 ||
	    (awaits_any(backups->members) && is_patient(backups->members, waited)))
		return;
	agreement_before_start(backups->members);
	/* agreement_before_start has ended the run, because the corpus is not the intended one */
	if (backups->run->phase == PHASE_FINISHED)
		return;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (member_alive(m))
			continue;
		if (m->is_awaited)
			member_apply(backups->run, m, EVENT_MISS, "did not come back");
		/* If the key was expelled while no controller ran, other agents must forget it. */
		member_disown(backups->members, m);
	}
	if (!ready_everywhere(backups->members) &&
	    (run_is_done(backups->run) || (!all_returned(backups->members, here) &&
					   waited <= backups->run->options.limits.gather_us)))
		return;
	admit_ready(backups->members);
	if (!replicas_everywhere(backups->members)) {
		gather_without(backups);
		return;
	}
	agreement_check_copies(backups->members);
	note(backups->run, NOTE_EVENT, -1, 0, "%u agents resume from it%llu", ready,
	     (unsigned long long)backups->run->committed);
	backups->run->committed_us = backups->run->now_us;
	/* The iteration under way restarts, because attempts of the earlier controller are void */
	set_phase(backups->run, PHASE_PLANNING);
	if (!backups->planning->wanted_id)
		replan(backups->planning, "the run was taken over");
}

/* When the number of joined agents has changed, writes it to the journal, at most once a
 * second. */
static void note_joined(struct members *members)
{
	const struct run *run = members->run;
	struct membership *s = &members->membership;
	int64_t joined = 0;

	if (run->now_us < s->joined_next_us || run->now_us - run->committed_us < JOINED_US)
		return;
	for (uint32_t i = 0; i < members->n; i++)
		joined += member_alive(&members->list[i]);
	if (s->joined_noted == 1 + joined)
		return;
	s->joined_noted = 1 + joined;
	s->joined_next_us = run->now_us + JOINED_US;
	note(members->run, NOTE_EVENT, -1, 0, "%lld of %u agents joined", (long long)joined,
	     members->n);
}

void startup_turn(struct iteration *it)
{
	if (it->run->resumed || it->members->gathering == GATHER_COMING)
		note_joined(it->members);
	if (it->run->resumed)
		gather_again(it->backups);
	else
		gather_new(it);
}
