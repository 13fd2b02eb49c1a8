/* conflict_tree.h - the high level of conflict-based search: branches, each its parent's
 * constraints and its own with the paths that keep them, and those still to look at, cheapest
 * first. Internal to schedule/.
 */
#ifndef SCHEDULE_CONFLICT_TREE_H
#define SCHEDULE_CONFLICT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/published/path_search.h"

enum forbids { FORBIDS_STAGE, FORBIDS_NODE, FORBIDS_TIME };

struct constraint {
	enum forbids kind;
	int agent, what; /* a stage, or a node */
	double from_s, to_s;
};

struct branch {
	struct branch *parent; /* all live until conflict_tree_fini */
	int n_own;
	struct constraint *own;
	int *paths;     /* (n_agents, length) */
	double *home_s; /* (n_agents) when each is back, by its own timeline */
	double cost_s;
	int conflicts;
};

struct conflict_tree {
	int n_agents, length, n_nodes;
	struct arena arena;   /* of all but the two that grow */
	struct branch **open; /* heap */
	int n_open;
	size_t room;
	/* Of one agent, from a branch up to the root. */
	uint64_t barred_stages;
	bool *barred; /* (n_nodes) */
	struct taken *taken;
	int n_taken;
	size_t taken_room;
};

/* -ENOMEM; conflict_tree_fini is safe either way. */
int conflict_tree_init(struct conflict_tree *t, int n_agents, int length, int n_nodes);
void conflict_tree_fini(struct conflict_tree *t);

/* With room for so many constraints of its own, and its parent's paths (NULL: none). NULL: out
 * of memory. */
struct branch *branch_new(struct conflict_tree *t, struct branch *parent, int n_own);
static inline int *branch_path(const struct conflict_tree *t, const struct branch *b, int agent)
{
	return b->paths + (size_t)agent * (size_t)t->length;
}

int conflict_tree_push(struct conflict_tree *t, struct branch *b); /* -ENOMEM */
/* The cheapest, of equals that with the fewest conflicts; something must be there. */
struct branch *conflict_tree_pop(struct conflict_tree *t);
/* All constraints on the agent, into the tree's fields; -ENOMEM. */
int conflict_tree_gather(struct conflict_tree *t, const struct branch *b, int agent);

#endif
