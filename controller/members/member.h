/* member.h - what is known of a node at the moment, as questions, and what is sent to it. */
#ifndef CONTROLLER_MEMBERS_MEMBER_H
#define CONTROLLER_MEMBERS_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/post.h"

struct controller;
struct member;
struct msg;

/* Whether an agent's clock can say so: then sums and differences with ours are numbers, too. */
static inline bool is_clock(int64_t us)
{
	return us >= 0 && us <= INT64_MAX / 8;
}
struct member *member_of_peer(struct controller *c, post_peer_id peer);
bool member_alive(const struct member *m);         /* answers, whatever its weights */
bool member_has_key(const struct member *m);       /* somebody was that node, and may come back */
/* It has the weights of the last commit, and takes part from the next iteration or sum on. */
bool member_joins(const struct controller *c, const struct member *m);
/* Its weights are the stage's, of the last commit: by what it was told, and by its last beat. */
bool member_holds(const struct controller *c, const struct member *m, int stage);
uint32_t members_live(const struct controller *c); /* in state NODE_LIVE */
uint32_t stage_replicas(const struct controller *c, int stage, const struct member *without);
int member_send(struct controller *c, struct member *m, const struct msg *message);
int member_stage(const struct controller *c, const struct member *m); /* -1 none */
bool replicas_everywhere(const struct controller *c);
void send_replicas(struct controller *c, const struct msg *m);
bool members_share_machine(const struct member *a, const struct member *b);

#endif
