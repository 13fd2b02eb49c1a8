/* hostile.h - an agent whose admitted key an attacker uses.
 *
 * The program is a complete agent that joins and works, so that it gets a place in the run. After a
 * signal the function of a mode is called in every turn of the loop. It sends messages of its own
 * over the agent's sealed sessions. The modes are in the table in main.c.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct post;
struct msg;

struct hostile {
	struct agent *agent; /* agent/state.h */
	uint64_t turns;      /* number of turns since the attack began, this one included */
	/* For the modes. */
	uint64_t iteration;  /* iteration to which `done` belongs */
	uint32_t done;       /* messages sent */
	uint64_t next;       /* the next unused number or time */
};

struct mode {
	const char *name, *description;
	void (*act)(struct hostile *h, int64_t now_us);
};

/* Sends a message to the controller. Returns true if the post has taken it. */
bool hostile_send_control(struct hostile *h, struct msg *m, int64_t now_us);
/* Sends a message to another node, with a body of `floats` floats of one value. Returns true if the
 * post has taken it. */
bool hostile_send_tensor(struct hostile *h, uint16_t to, const struct msg *m, float value,
			 size_t floats, int64_t now_us);
/* Returns a node's stage according to the plans; -1: not known. */
int hostile_stage_of(const struct hostile *h, uint16_t node);

/* tensors.c: attacks on other nodes. */
void numbers(struct hostile *h, int64_t now_us);
void evaluations(struct hostile *h, int64_t now_us);
void early(struct hostile *h, int64_t now_us);
void announce(struct hostile *h, int64_t now_us);

/* control.c: attacks on the controller. HOSTILE_WATCHER names the file with the watcher's key. */
void contradict(struct hostile *h, int64_t now_us);
void forge(struct hostile *h, int64_t now_us);
void repeat(struct hostile *h, int64_t now_us);
void lines(struct hostile *h, int64_t now_us);
void watch(struct hostile *h, int64_t now_us);

/* flood.c: attempts by strangers, or with an invitation: the whole program, which returns its exit
 * status. */
int flood(int argc, char **argv);

/* announce.c: sends one chunk of a message of `total` bytes. Returns true if it was sent. */
bool announce_one(struct post *p, uint32_t peer, uint64_t number, uint64_t total, uint32_t chunks,
		  int64_t now_us);

#endif
