/* trains.h - trains of packets (wire/train.h) that show a link's bandwidth: sent, and those of others
 * timed.
 */
#ifndef AGENT_NETWORK_TRAINS_H
#define AGENT_NETWORK_TRAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/post.h"

struct agent;
struct trains; /* opaque; the agent has them */

enum trains_standing { TRAINS_UNDER_WAY, TRAINS_TOLD, TRAINS_UNHEARD };

struct trains *trains_new(void); /* trains_free */
void trains_free(struct trains *t);  /* NULL is allowed */
int trains_fd(const struct trains *t); /* poll for POLLIN; -1 none */
void trains_hear(struct agent *a);     /* times what has come */

/* Opens the socket at the port where tensors arrive, once; where that cannot be had there is none. */
void trains_open(struct agent *a);
/* False: there is nothing to send them with, or nobody hears them. */
bool trains_begin(struct agent *a, uint16_t to, int64_t now_us);
/* rate: what they told, bytes per second. last: what is known now has to do, if anything is. */
enum trains_standing trains_turn(struct agent *a, bool last, double *rate, int64_t now_us);
/* One of another node's is on its way; and what one of ours showed there. */
void trains_announced(struct agent *a, const struct msg_train *m, post_peer_id peer,
		      int64_t now_us);
void trains_answered(struct agent *a, const struct msg_train_heard *m);
/* Answers for the trains that are over. True: some are awaited. */
bool trains_answer(struct agent *a, int64_t now_us);
void trains_forget(struct agent *a);

#endif
