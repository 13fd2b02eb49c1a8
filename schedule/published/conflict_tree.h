/* conflict_tree.h - the tree of the high level of conflict-based search. A branch has its parent's
 * constraints and some of its own, and paths that keep them. Branches that are still to be expanded
 * wait in a heap, the cheapest first. Internal to schedule/.
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
	int agent, what; /* the agent, and the stage or node that the constraint concerns */
	double from_s, to_s;
};

struct branch {
	struct branch *parent; /* NULL: the root. All branches live until conflict_tree_fini. */
	int n_own;
	struct constraint *own;
	int *paths;     /* (n_agents, length) */
	/* (n_agents) time at which each agent is home under its constraints; other agents do not
	 * delay it */
	double *home_s;
	double cost_s;
	int conflicts;
};

struct conflict_tree {
	int n_agents, length, n_nodes;
	struct arena arena;   /* owns the branches and barred */
	struct branch **open; /* heap */
	int n_open;
	size_t room;
	/* The constraints of one agent, filled by conflict_tree_gather. */
	uint64_t barred_stages;
	bool *barred; /* (n_nodes) */
	struct taken *taken;
	int n_taken;
	size_t taken_room;
};

void conflict_tree_init(struct conflict_tree *t, int n_agents, int length, int n_nodes);
void conflict_tree_fini(struct conflict_tree *t);

/* Makes a branch with room for n_own constraints and a copy of its parent's paths (parent NULL: the
 * root). */
struct branch *branch_new(struct conflict_tree *t, struct branch *parent, int n_own);
static inline int *branch_path(const struct conflict_tree *t, const struct branch *b, int agent)
{
	return b->paths + (size_t)agent * (size_t)t->length;
}

void conflict_tree_push(struct conflict_tree *t, struct branch *b);
/* Removes the cheapest branch; of equally cheap ones, that with the fewest conflicts. The heap must
 * not be empty. */
struct branch *conflict_tree_pop(struct conflict_tree *t);
/* Gathers all constraints on the agent, from the branch up to the root, in the tree's fields. */
void conflict_tree_gather(struct conflict_tree *t, const struct branch *b, int agent);

#endif
