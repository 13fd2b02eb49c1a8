/* console_messages.c - builds the messages that both a live run and a replay send to consoles.
 *
 * Live runs and replays use the same functions, so a console shows a recorded run exactly as it
 * showed the live run. */
#include "controller/operator/console_messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "controller/members/member.h"
#include "controller/members/shared_machines.h"

/* ---- the model ---- */

uint64_t count_parameters(const struct model_config *m)
{
	uint64_t dim = m->dim, kv = (uint64_t)m->n_kv_heads * (m->dim / m->n_heads);
	uint64_t layer = 2 * dim + 2 * dim * dim + 2 * dim * kv + 3 * dim * m->ffn_dim;

	return (m->tied ? 1 : 2) * (uint64_t)m->vocab * dim + m->n_layers * layer + dim;
}

/* ---- phases ---- */

const char *phase_in_words(enum run_phase phase)
{
	static const char *const words[] = {
		[PHASE_GATHERING] = "gathering agents",
		[PHASE_PLANNING] = "planning",
		[PHASE_COMPUTING] = "computing",
		[PHASE_REDUCING] = "replicas sum their gradients",
		[PHASE_COMMITTING] = "committing",
		[PHASE_EVALUATING] = "validating",
		[PHASE_PAUSED] = "paused",
		[PHASE_STALLED] = "stalled: a stage has no living copy of its weights",
		[PHASE_FINISHED] = "the run ended",
	};
	_Static_assert(sizeof(words) / sizeof(words[0]) == PHASE_LAST + 1, "each phase has words");

	return words[phase];
}

void describe_iteration(char *out, size_t room, enum run_phase phase, uint64_t iteration,
			uint32_t done, uint32_t total)
{
	if (phase == PHASE_COMPUTING)
		snprintf(out, room, "it%llu: %u of %u microbatches done",
			 (unsigned long long)iteration, done, total);
	else
		snprintf(out, room, "it%llu: %s", (unsigned long long)iteration,
			 phase_in_words(phase));
}

/* ---- nodes ---- */

void node_message(struct msg *out, const struct member *w, const struct cluster_node *n,
		  double work, uint32_t layers, double lost_s)
{
	struct msg_see_node *s = &out->u.see_node;

	out->type = MSG_SEE_NODE;
	*s = (struct msg_see_node){
		.node = w->id,
		.stage = (uint8_t)(n->stage < 0 ? 0 : n->stage),
		.layers = (uint16_t)layers,
		.state = (uint8_t)member_shown(w),
		.slots = w->compute.slots,
		.memory = (uint8_t)(n->memory > 255 ? 255 : n->memory),
		.running = w->beat.running,
		.queued = w->beat.queued,
		.heard_us = w->heard.message_us,
		.since_us = w->since_us,
		.committed = w->beat.committed,
		.hash = w->beat.hash,
		.hash_agrees = w->weights.hash_agrees,
		.forward_s = (float)(n->forward_s * work),
		.backward_s = (float)(n->backward_s * work),
		.loss_s = (float)n->loss_s,
		.measured_forward_s = (float)w->compute.forward_s,
		.measured_backward_s = (float)w->compute.backward_s,
		.rss_bytes = w->beat.rss_bytes,
		.waits_percent = (uint8_t)shared_machines_percent(w),
		.sent_bytes = w->beat.sent_bytes,
		.received_bytes = w->beat.received_bytes,
		.resent = w->beat.resent,
		.pid = w->hello.pid,
		.lost_s = (float)lost_s,
		.gpu = w->beat.gpu,
		.spent = w->compute.spent,
	};
	snprintf(s->name, sizeof(s->name), "%s", w->name);
	snprintf(s->location, sizeof(s->location), "%s",
		 w->hello.place[0] ? w->hello.place
		 : n->location     ? n->location
				   : "");
	snprintf(s->device, sizeof(s->device), "%s", w->hello.device);
	snprintf(s->host, sizeof(s->host), "%s", w->hello.host);
	snprintf(s->why, sizeof(s->why), "%s", w->why);
}

/* ---- comparisons ---- */

/* Replaces the excluded nodes by the nodes in the list, such as " 3,7". " -" excludes no node, and
 * "" changes nothing. */
static int parse_excluded(const char *list, uint32_t n_nodes, bool *excluded, struct error *err)
{
	bool listed[MSG_NODES] = { false };
	const char *at = list;
	char *end;

	if (!*list)
		return 0;
	for (at++; strcmp(list, " -") != 0; at = end + 1) {
		unsigned long node = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || node >= n_nodes || (*end && *end != ','))
			return error_set(err, -EINVAL, "no list of nodes: \"%.60s\"", list + 1);
		listed[node] = true;
		if (!*end)
			break;
	}
	memcpy(excluded, listed, n_nodes * sizeof(*listed));
	return 0;
}

/* Reads "wire FORMAT" or "sum-wire FORMAT", and gives the candidate plan its name. Returns false if
 * the text is neither. */
static bool take_format(const char *text, struct tensor_formats *formats, char *name, size_t room)
{
	bool sums = strncmp(text, "sum-wire ", 9) == 0;
	const char *word = sums ? text + 9 : text + 5;
	enum tensor_format f;

	if ((!sums && strncmp(text, "wire ", 5) != 0) || tensor_format_parse(word, &f) != 0 ||
	    !(sums ? tensor_format_suits_sums(f) : tensor_format_suits_activations(f)))
		return false;
	*(sums ? &formats->sum_wire : &formats->wire) = f;
	snprintf(name, room, "%s %s", sums ? "sums" : "wire", tensor_format_name(f));
	return true;
}

/* Fills in the algorithm and the skip ratio of the plan in force. */
static void fill_like_present(struct planner_request *q)
{
	if (!plan_algorithm_named(q->from->search.algorithm ? q->from->search.algorithm : "",
				  &q->algorithm))
		q->algorithm = PLAN_BEST;
	q->path_length = q->from->path_length;
	q->skip_share = q->from->skip_share;
}

static void finish_request(struct planner_request *q)
{
	q->kind = PLANNER_COMPARE;
	q->substitute = SUBSTITUTE_ANY;
	q->from = q->algorithm == PLAN_BEST ? q->from : NULL;
	q->budget_s = 1;
}

/* Makes all checks before it changes q. */
int compare_request(const struct msg_command *m, int n_stages, int most_skipped,
		    uint32_t n_nodes, bool *excluded, struct planner_request *q, char *name,
		    size_t room, struct error *err)
{
	enum plan_algorithm a = PLAN_BEST;
	uint32_t skip = skip_share_stages(m->value), share = skip_share_of(m->value);
	char without[16] = "", ratio[SKIP_SHARE_TEXT];
	int word = (int)strcspn(m->text, " ");
	bool branch = word == 6 && memcmp(m->text, "branch", 6) == 0;

	if (q->from && take_format(m->text, &q->formats, name, room)) {
		fill_like_present(q);
		finish_request(q);
		return 0;
	}
	if (!branch && !plan_algorithm_named(m->text, &a))
		return error_set(err, -EINVAL, "no algorithm \"%.60s\"", m->text);
	if (m->node >= 0 && (uint32_t)m->node >= n_nodes)
		return error_set(err, -EINVAL, "there is no node %d", m->node);
	if (m->value < 0 || m->value >= skip_share_pack(100, 0) || (int)skip > most_skipped)
		return error_set(err, -EINVAL, "0 to %d of %d stages may be skipped", most_skipped,
				 n_stages);
	if (share > 0 && a != PLAN_BEST)
		return error_set(err, -EINVAL,
				 "%s gives all microbatches paths of one length: a share of "
				 "skipping microbatches needs best",
				 plan_algorithm_name(a));
	if (branch && parse_excluded(m->text + word, n_nodes, excluded, err) != 0)
		return -EINVAL;
	if (m->node >= 0) {
		excluded[m->node] = true;
		snprintf(without, sizeof(without), " -n%02d", m->node);
	}
	q->algorithm = a;
	q->path_length = a == PLAN_DTFM ? n_stages : n_stages - (int)skip;
	q->skip_share = (int)share;
	finish_request(q);
	skip_share_format(share, (uint32_t)(n_stages - q->path_length), (uint32_t)n_stages, ratio);
	snprintf(name, room, "%.*s %s%s", word, m->text, ratio, without);
	return 0;
}
