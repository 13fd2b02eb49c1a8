/* stage_moves.h - moves nodes between stages: nodes exchange stages, and a standby copy becomes a
 * node's own weights. */
#ifndef CONTROLLER_WEIGHTS_STAGE_MOVES_H
#define CONTROLLER_WEIGHTS_STAGE_MOVES_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct planning;
struct member;

/* Returns true if the next iteration has to wait for nodes that load their copies. The wait is
 * short and counts from since_us. */
bool stage_moves_settle(const struct members *members, int64_t since_us);
/* Called between two iterations. Moves nodes to the stage of their copy if their own stage has
 * enough other replicas. Returns true if the next iteration has to wait. */
bool stage_moves_balance(struct planning *planning);
/* Assigns the stage to m, and orders m to use its copy of the stage as its weights. */
void stage_moves_load(struct members *members, struct member *m, int stage);
void stage_moves_move(struct members *members, struct member *m, int stage);
/* Returns an absent node that is assigned to the stage and may lose it; NULL: none */
struct member *stage_moves_place(struct members *members, int stage);
/* Exchanges the stages to which m and a node of `stage` are assigned, but not the weights. */
void stage_moves_exchange(struct members *members, struct member *m, int stage);

#endif
