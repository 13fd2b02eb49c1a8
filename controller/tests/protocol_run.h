/* protocol_run.h - for tests: functions that the files of the protocol's model share. */
#ifndef CONTROLLER_TESTS_PROTOCOL_RUN_H
#define CONTROLLER_TESTS_PROTOCOL_RUN_H

#include "controller/tests/protocol.h"

/* A step of the model, and the choices that were made in it. A step runs once for each possible
 * series of choices of the controller and of chance. */
struct p_run {
	const struct protocol *p;
	struct p_state s;
	const char *wrong; /* NULL: no property is violated */
	bool crashed;      /* the controller died in this step */
	int n, at;
	uint8_t choice[24], bound[24];
};

/* protocol_state.c */
int p_choose(struct p_run *r, int n);
bool p_choose_others(struct p_run *r);
void p_found(struct p_run *r, const char *wrong);
bool p_is_replica(const struct p_node *x);
uint32_t p_count_replicas(const struct p_state *s, int n, int stage);
bool p_replicas_everywhere(const struct p_run *r);
bool p_is_stalled(const struct p_state *s);
bool p_has_input(const struct protocol *p, const struct p_state *s, const struct p_node *x, int m);
bool p_lacks(const struct p_node *x, int m);
void p_lose_inputs(struct p_run *r, const struct p_state *before);
void p_forget_iteration(struct p_node *x);
void p_begin_iteration(const struct protocol *p, struct p_node *x);
void p_begin_process(struct p_node *x);
void p_end_process(struct p_node *x);

/* protocol_iteration.c */
void p_forget_sums(struct p_state *s);
bool p_is_keeper(const struct p_node *x, int stage);
bool p_admit_joiners(struct p_run *r, bool computing);
void p_reduce_rest(struct p_run *r);
void p_reduce_early(struct p_run *r);
void p_order_ahead(const struct protocol *p, struct p_state *s);
void p_give_parts(struct p_run *r);
bool p_all_given(const struct p_run *r, int stage);
bool p_all_done(const struct p_run *r);
void p_crash(struct p_run *r);
bool p_dies_telling(struct p_run *r);
void p_hear_route(struct p_node *x, int m);
struct p_node *p_gone_on_route(struct p_run *r);
void p_begin_reduction(struct p_run *r);
bool p_copies_awaited(const struct p_node *x);
void p_commit_when_reduced(struct p_run *r);
void p_iteration_lost(struct p_run *r, struct p_node *x);
void p_members_gone(struct p_run *r, struct p_node *x);
void p_kill_node(struct p_run *r, struct p_node *x);

/* protocol_stacking.c */
void p_stacking_turn(struct p_run *r);
void p_next_phase(struct p_run *r);
void p_stacking_begin(struct p_run *r, bool dies);
bool p_is_void_copy(struct p_run *r, const struct p_node *x);
void p_take_layers(struct p_run *r, struct p_node *x);
bool p_can_take_layers(const struct p_run *r, const struct p_node *x);
bool p_may_take_layers(const struct p_run *r, const struct p_node *x);
bool p_stages_started(const struct protocol *p, const struct p_state *s, bool may_still);

/* protocol_moves.c */
void p_moves_fetch(struct p_run *r);
void p_moves_prepare(struct p_run *r);
void p_moves_drop(struct p_state *s);
void p_moves_turn(struct p_run *r);
bool p_moves_complete(const struct p_run *r);
void p_moves_exchange(struct p_run *r);
void p_moves_load(struct p_run *r, struct p_node *x);
void p_moves_ready(struct p_run *r, struct p_node *x);
bool p_moves_can_start(const struct p_run *r);
void p_moves_start(struct p_run *r);
void p_moves_crash(struct p_run *r);
void p_moves_gather(struct p_run *r, struct p_node *x);
bool p_moves_may_order(const struct p_run *r, const struct p_node *x);
uint8_t p_moves_held(const struct protocol *p, const struct p_state *s);

/* protocol_recut.c */
bool p_is_recut(const struct p_state *s);
bool p_recut_waits(const struct p_state *s);
bool p_recut_may_save(const struct p_state *s, const struct p_node *x);
bool p_recut_cannot_save(const struct p_run *r);
bool p_recut_may_cut(const struct p_run *r);
void p_recut_cut(struct p_run *r);
bool p_recut_may_meet(const struct p_state *s, const struct p_node *x);
void p_recut_meet(struct p_run *r, struct p_node *x);
bool p_recut_may_read(const struct p_state *s, const struct p_node *x);
void p_recut_read(struct p_node *x);
void p_recut_start(struct p_run *r);
void p_recut_crash(struct p_state *s);
void p_recut_settle(struct p_run *r);
void p_recut_gather(const struct p_run *r, struct p_node *x);

/* protocol_recover.c */
void p_restart(struct p_state *s);
void p_begin(struct p_run *r);
void p_resume(struct p_run *r, struct p_node *x);
struct p_node *p_taker_of(struct p_run *r, int stage);
void p_take_over(struct p_run *r, int stage);
void p_gather(struct p_run *r);

#endif
