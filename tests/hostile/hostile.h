/* hostile.h - an attacker with the admitted key of an agent.
 *
 * The program is a complete agent that joins the run and computes, so that the controller gives it
 * a stage. After SIGUSR1 it also attacks: in every turn of the loop it calls the function of its
 * mode, which sends additional messages over the agent's encrypted sessions. main.c has the table
 * of modes.
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
	uint64_t turns;      /* number of turns since the attack began, including the present one */
	/* The functions of the modes use the fields below. */
	uint64_t iteration; /* iteration in which `done` was counted */
	uint32_t done;      /* number of messages sent */
	uint64_t next;      /* next unused number, or the time of the next message */
};

struct mode {
	const char *name, *description;
	void (*act)(struct hostile *h, int64_t now_us);
};

/* Sends a message to the controller. Returns true if the agent's post accepted it. */
bool hostile_send_control(struct hostile *h, struct msg *m, int64_t now_us);
/* Sends a message to another node. Its body is `floats` floats with the same value. Returns true if
 * the agent's post accepted it. */
bool hostile_send_tensor(struct hostile *h, uint16_t to, const struct msg *m, float value,
			 size_t floats, int64_t now_us);
/* Returns the stage that a node has in the present plan; -1: unknown. */
int hostile_stage_of(const struct hostile *h, uint16_t node);

/* tensors.c: attacks on other nodes. */
void numbers(struct hostile *h, int64_t now_us);
void evaluations(struct hostile *h, int64_t now_us);
void early(struct hostile *h, int64_t now_us);
void announce(struct hostile *h, int64_t now_us);

/* control.c: attacks on the controller. The environment variable HOSTILE_WATCHER names the file
 * with a watcher's key. */
void contradict(struct hostile *h, int64_t now_us);
void forge(struct hostile *h, int64_t now_us);
void repeat(struct hostile *h, int64_t now_us);
void lines(struct hostile *h, int64_t now_us);
void watch(struct hostile *h, int64_t now_us);

/* flood.c: a program of its own, which floods the controller with the connections of strangers, or
 * with requests by an invitation. Returns its exit status. */
int flood(int argc, char **argv);

/* announce.c: sends one chunk of a message of `total` bytes, and never the other chunks. Returns
 * true if the chunk was sent. */
bool announce_one(struct post *p, uint32_t peer, uint64_t number, uint64_t total, uint32_t chunks,
		  int64_t now_us);

#endif
