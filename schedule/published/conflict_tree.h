/* conflict_tree.h - the tree of the high level of conflict-based search. A branch has its
 * parent's constraints, some further constraints, and paths that keep all of these. Branches that
 * have not been expanded yet wait in a heap, the cheapest first. Internal to schedule/.
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
	/* The parent branch; NULL: this is the root. All branches live until conflict_tree_fini. */
	struct branch *parent;
	int n_own;
	struct constraint *own;
	int *paths; /* array of (n_agents, length) */
	/* array of n_agents: time at which each agent finishes under its constraints, if no other
	 * agent delays it */
	double *home_s;
	double cost_s;
	int conflicts;
};

struct conflict_tree {
	int n_agents, length, n_nodes;
	struct arena arena;   /* owns the branches and the array `barred` */
	struct branch **open; /* heap of the branches to be expanded */
	int n_open;
	size_t room;
	/* The constraints of one agent, filled by conflict_tree_gather. */
	uint64_t barred_stages;
	bool *barred; /* array of n_nodes */
	struct taken *taken;
	int n_taken;
	size_t taken_room;
};

void conflict_tree_init(struct conflict_tree *t, int n_agents, int length, int n_nodes);
void conflict_tree_fini(struct conflict_tree *t);

/* Makes a branch with room for n_own constraints and a copy of its parent's paths. parent NULL: the
 * branch is the root. */
struct branch *branch_new(struct conflict_tree *t, struct branch *parent, int n_own);
static inline int *branch_path(const struct conflict_tree *t, const struct branch *b, int agent)
{
	return b->paths + (size_t)agent * (size_t)t->length;
}

void conflict_tree_push(struct conflict_tree *t, struct branch *b);
/* Removes the cheapest branch from the heap and returns it. Of several equally cheap branches,
 * takes the branch with the fewest conflicts. The heap must not be empty. */
struct branch *conflict_tree_pop(struct conflict_tree *t);
/* Collects the constraints on the agent from the branch and all its ancestors. Writes them to the
 * fields of the tree. */
void conflict_tree_gather(struct conflict_tree *t, const struct branch *b, int agent);

#endif
