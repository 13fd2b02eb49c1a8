#include "controller/iteration/sums.h"

#include <string.h>

#include "controller/controller.h"
#include "controller/members/member.h"
#include "controller/weights/copies.h"

void sums_forget(struct controller *c)
{
	c->reduce_attempt++;
	memset(c->summing, 0, sizeof(c->summing));
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].copies = c->members[i].in_sum = false;
}

static void order_stage(struct controller *c, int stage, bool when_counted)
{
	struct msg m = { .type = MSG_REDUCE };
	uint16_t nodes[MSG_NODES], copies[MSG_NODES];
	uint32_t n = 0, k = copies_of(c, stage, copies);

	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].replica && member_stage(c, &c->members[i]) == stage)
			nodes[n++] = (uint16_t)i;
	m.u.reduce = (struct msg_reduce){
		.iteration = c->iteration, .attempt = c->reduce_attempt, .stage = (uint8_t)stage,
		.when_counted = when_counted, .n_nodes = n, .nodes = nodes, .n_copies = k, .copies = copies,
	};
	for (uint32_t i = 0; i < k; i++)
		member_send(c, &c->members[copies[i]], &m);
	for (uint32_t i = 0; i < n; i++) {
		c->members[nodes[i]].reduced = false;
		c->members[nodes[i]].slice = i;
		c->members[nodes[i]].in_sum = true;
		c->members[nodes[i]].sum_stage = (uint8_t)stage;
		member_send(c, &c->members[nodes[i]], &m);
	}
	c->summing[stage] = n;
}

/* An emulated iteration keeps to the model that its times are of: sums begin after its last task, or its stage's. */
static bool may_order_ahead(const struct controller *c)
{
	return c->links != NULL;
}

void sums_order_ahead(struct controller *c)
{
	for (int s = 0; may_order_ahead(c) && s < c->cluster->n_stages; s++)
		order_stage(c, s, true);
}

void sums_order_counted(struct controller *c)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (c->summing[s] == 0 && routes_stage_counted(&c->routes, (uint8_t)s))
			order_stage(c, s, false);
}

void sums_order_rest(struct controller *c)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (c->summing[s] == 0)
			order_stage(c, s, false);
}
