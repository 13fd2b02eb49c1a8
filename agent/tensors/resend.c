/* What this node has sent in the iteration, kept until its end: a node that stands in for one that died
 * gets it too, and so nothing but what the dead one did is computed again.
 *
 * At most an activation for each visit and each gradient: some megabytes beside the stage.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

enum { KINDS = WORK_BACKWARD + 1 };

static float **place(struct agent *a, uint32_t microbatch, enum work_kind kind)
{
	return &a->sent[(size_t)microbatch * KINDS + kind];
}

int resend_init(struct agent *a)
{
	a->sent = calloc((size_t)MSG_MICROBATCHES * KINDS, sizeof(float *));
	return a->sent ? 0 : -1;
}

void resend_drop(struct agent *a, uint32_t microbatch)
{
	for (int kind = 0; kind < KINDS; kind++) {
		float **kept = place(a, microbatch, (enum work_kind)kind);

		free(*kept);
		*kept = NULL;
	}
}

void resend_forget(struct agent *a)
{
	for (uint32_t i = 0; a->sent && i < MSG_MICROBATCHES; i++)
		resend_drop(a, i);
}

void resend_keep(struct agent *a, const struct task *t, const float *out)
{
	float **kept = place(a, t->route.microbatch, t->kind);

	if (!*kept)
		*kept = malloc(a->activation * sizeof(float));
	if (*kept)
		memcpy(*kept, out, a->activation * sizeof(float));
	else
		agent_trouble(a, true, "no memory for what was sent");
}

void resend_to_others(struct agent *a, const struct route *was, const struct route *r, int64_t now_us)
{
	for (uint32_t t = 0; t < route_last(r, false); t++) {
		uint16_t to = route_node(r, t + 1);
		const float *kept;
		float *body;

		if (route_node(r, t) != a->run.node || to == a->run.node || to == route_node(was, t + 1))
			continue;
		kept = *place(a, r->microbatch, route_kind(r, t));
		if (!kept)
			continue; /* not done yet: it will go there */
		body = malloc(a->activation * sizeof(float));
		if (!body) {
			agent_trouble(a, true, "no memory for a tensor to send again");
			return;
		}
		memcpy(body, kept, a->activation * sizeof(float));
		links_send_output(a, r, t, false, body, now_us);
	}
}
