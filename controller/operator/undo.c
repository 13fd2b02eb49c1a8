/* undo.c - stores the operator's acts and finds the inverse of each.
 *
 * An operator who made a mistake can thus undo it without working out the inverse command. */
#include "base/skip_schedule.h"
#include "controller/operator/undo.h"

#include <errno.h>
#include <stdio.h>

#include "base/array.h"
#include "controller/iteration/iteration.h"
#include "controller/operator/command.h"
#include "controller/run/outcome.h"
#include "controller/run/rates.h"

void undo_remember(struct act_list *list, struct run *run, const char *who, enum command_verb verb,
		   int node, int64_t value, int64_t before)
{
	struct act *a;

	array_reserve(&list->acts, &list->room, list->n + 1, sizeof(*list->acts));
	a = &list->acts[list->n++];
	run->journal.act = list->n;
	*a = (struct act){ list->n, verb, node, value, before, false, "" };
	snprintf(a->who, sizeof(a->who), "%s", who);
}

void undo_healed(struct act_list *list, int64_t fault)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct act *a = &list->acts[i];

		a->undone |= a->verb == COMMAND_INJECT && a->value == fault;
	}
}

struct act *undo_find(struct act_list *list, int64_t id, struct outcome *o)
{
	outcome_set(o, -ENOENT, "nothing to undo");
	for (uint32_t i = list->n; i-- > 0;) {
		if (id != 0 && list->acts[i].id != (uint64_t)id)
			continue;
		if (!list->acts[i].undone) {
			o->status = 0;
			return &list->acts[i];
		}
		if (id != 0)
			outcome_set(o, -EALREADY,
				    "#%lld is over, is undone already, or undid another",
				    (long long)id);
	}
	return NULL;
}

/* Has one case for each verb that has an inverse. */
bool undo_inverse(const struct run *run, const struct act *a, struct msg_command *out,
		  struct outcome *o)
{
	uint32_t stages = (uint32_t)run->cluster->n_stages;
	char is[SKIP_SHARE_TEXT], was[SKIP_SHARE_TEXT];

	*out = (struct msg_command){ .node = a->node, .peer = -1 };
	switch (a->verb) {
	case COMMAND_SKIP:
		out->verb = COMMAND_SKIP;
		out->value = a->before;
		skip_share_format(skip_share_of(a->value), skip_share_stages(a->value), stages, is);
		skip_share_format(skip_share_of(a->before), skip_share_stages(a->before), stages,
				  was);
		outcome_set(o, 0, "undo #%llu: skip %s -> %s", (unsigned long long)a->id, is, was);
		return true;
	case COMMAND_WIRE:
	case COMMAND_SUM_WIRE:
		out->verb = (uint8_t)a->verb;
		out->value = a->before;
		outcome_set(o, 0, "undo #%llu: %s %s -> %s", (unsigned long long)a->id,
			    verb_name(a->verb), tensor_format_name((enum tensor_format)a->value),
			    tensor_format_name((enum tensor_format)a->before));
		return true;
	case COMMAND_FAIL:
	case COMMAND_RECOVER:
		out->verb = a->verb == COMMAND_FAIL ? COMMAND_RECOVER : COMMAND_FAIL;
		outcome_set(o, 0, "undo #%llu: %s n%02d", (unsigned long long)a->id,
			    verb_name(out->verb), a->node);
		return true;
	case COMMAND_INJECT:
		if (fault_describe(run->faults.list[a->value - run->faults.first - 1].kind)
			    ->for_good) {
			outcome_set(o, -EPERM,
				    "a kill cannot be undone; recover n%02d starts it again",
				    a->node);
			return false;
		}
		out->verb = COMMAND_HEAL;
		out->value = a->value;
		outcome_set(o, 0, "undo #%llu: heal fault #%lld", (unsigned long long)a->id,
			    (long long)a->value);
		return true;
	case COMMAND_FINISH:
		if (!rates_may_finish(run, a->before, o))
			return false;
		out->verb = COMMAND_FINISH;
		out->value = a->before;
		outcome_set(o, 0, "undo #%llu: finish %lld", (unsigned long long)a->id,
			    (long long)a->value);
		return true;
	case COMMAND_PAUSE:
	case COMMAND_RESUME:
		out->verb = a->verb == COMMAND_PAUSE ? COMMAND_RESUME : COMMAND_PAUSE;
		outcome_set(o, 0, "undo #%llu: %s", (unsigned long long)a->id,
			    verb_name(out->verb));
		return true;
	default:
		outcome_set(o, -EPERM, "%s cannot be undone", verb_name(a->verb));
		return false;
	}
}
