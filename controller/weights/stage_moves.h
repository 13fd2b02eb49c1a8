/* stage_moves.h - nodes change stages: places are exchanged, and a copy that is kept becomes a node's own weights. */
#ifndef CONTROLLER_WEIGHTS_STAGE_MOVES_H
#define CONTROLLER_WEIGHTS_STAGE_MOVES_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct planning;
struct member;

/* Whether the next iteration still waits, for a while after that moment, for copies to be loaded. */
bool stage_moves_settle(const struct members *members, int64_t since_us);
/* Between iterations: keepers that can be spared move over. Whether the next one is to wait for that. */
bool stage_moves_balance(struct planning *planning);
/* m's copy of the stage, which is its place now, becomes its weights. */
void stage_moves_load(struct members *members, struct member *m, int stage);
void stage_moves_move(struct members *members, struct member *m, int stage);
/* Of one that is away; NULL: none */
struct member *stage_moves_place(struct members *members, int stage);
void stage_moves_exchange(struct members *members, struct member *m,
			  int stage); /* places, nothing else */

#endif
