/* sim.h - a whole run in one process. Its clock and its network are simulated and depend on a seed.
 *
 * The controller and the agents are the real ones, linked from their archives. Only the modules
 * that tell the time, carry messages or use threads are replaced. The files here define all
 * functions of these modules, so the linker does not take the modules from the archives.
 *
 *     clock.c    base/clock.h, and the system's sources of random numbers
 *     network.c  wire/post.h, in memory, with the promises of its contract (net.h, net_*.c)
 *     train.c    wire/bandwidth/packet_train.h
 *     flip.c     flipped bits in tensors
 *     threads.c  agent/shared/worker.h and controller/planning/planner.h: the work is done
 *                when it is taken or when its result is collected, as the seed decides
 *     world.c    processes, their turns and the main loop (world_private.h)
 *     arguments.c, mishaps.c, checks.c    the run's options, its failures, and its checks
 *     sim_test.c the loop over seeds
 *
 * The test never waits: the clock jumps to the next process that has something to do. All random
 * numbers come from one stream in the order of events. Therefore a seed always gives the same run
 * to the last message, and the hash of the trace proves it. The world's clock is the clock of the
 * simulation. Each process has a clock of its own, which differs from the world's clock by an
 * offset, as on real machines.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "wire/keys.h"

enum { SIM_AGENTS = 8, SIM_PROCESSES = SIM_AGENTS + 1 /* the controller is the last process */ };

/* The state of a process that the clock and the network need. */
struct sim_process {
	int64_t clock_offset_us; /* time on the process's clock minus time on the world's clock */
	/* The process's next turn, on the world's clock; INT64_MAX: it does not run. */
	int64_t wake_us;
	/* The process does nothing until this time, on the world's clock. */
	int64_t asleep_us;
	uint64_t life; /* number of times that the process was started */
};

struct sim {
	struct rng rng;
	int64_t now_us; /* time on the world's clock */
	/* During a job: the time on the job's clock minus now_us, and the time by which each
	 * reading advances the job's clock. */
	int64_t ahead_us, step_us;
	uint32_t self;      /* the process whose turn it is */
	uint64_t hash;      /* hash of the trace */
	uint64_t delivered; /* number of messages that were delivered */
	bool prints;        /* the trace is printed, not only hashed */
	/* Each process seems to run on a machine of its own; false: all on one machine. */
	bool has_machines;
	struct sim_process processes[SIM_PROCESSES];
};

/* State of the present run. It is global because the functions that replace real modules have no
 * argument for it. */
extern struct sim sim;

/* Returns a random number in [min, max], with uniform distribution. */
static inline int64_t sim_draw(int64_t min, int64_t max)
{
	return min + (int64_t)(rng_uniform(&sim.rng) * (double)(max - min + 1));
}

/* Returns true with this probability. */
static inline bool sim_chance(double probability)
{
	return rng_uniform(&sim.rng) < probability;
}

/* Draws a delay around `usual_us`. Some delays are much longer, as if by a queue, a lost packet or
 * a busy machine. */
int64_t sim_delay(int64_t usual_us);
/* Adds a line to the hash of the trace, and prints it if the trace is printed. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_mix(const void *data, size_t size); /* adds data to the hash of the trace only */
/* Makes sure that process i has a turn at this time at the latest. */
void sim_wake(uint32_t i, int64_t at_us);
const char *sim_name(uint32_t process); /* "n03", "controller" */

/* ---- checks.c ---- */
/* Checks a message that a process is sending. */
void sim_sends(uint32_t process, const void *data, size_t size);

/* ---- flip.c ---- */
/* Flips a bit in a message with a sum or with a piece of a stage's weights. Corrects the hash of a
 * piece, so that its receiver accepts it. Returns false if the message is neither. */
bool flip_tensor(void *data, size_t size);

/* ---- network.c ---- */
/* Starts a network without connections. usual_us: typical delay in one direction; loss: probability
 * that a LOSSY message is lost. */
void network_begin(int64_t usual_us, double loss);
/* Lets nothing pass between two processes until until_us. RELIABLE messages arrive later. */
void network_cut(uint32_t a, uint32_t b, int64_t until_us);
/* Until until_us, lets only small messages pass from one process to another: those of class
 * CONTROL, and small probes. */
void network_narrow(uint32_t from, uint32_t to, int64_t until_us);
/* Ends all connections between two processes, which then connect again. */
void network_reset(uint32_t a, uint32_t b);
/* Sets how a process dies the next time that its posts are closed. silently: the process's
 * machine dies too, and peers notice nothing. Otherwise peers notice at once that their
 * connections have ended. */
void network_dies(uint32_t process, bool silently);
/* Flips a bit in the next sum, or the next piece of a stage, that arrives at the process. The
 * message is otherwise correct, as if the bit had flipped in the sender's memory. */
void network_flip(uint32_t process);

/* ---- threads.c ---- */
void threads_begin(void);
/* Returns the time, on the world's clock, at which a process's next job or plan is finished;
 * INT64_MAX: none is under way. */
int64_t threads_due_us(uint32_t process);
/* Sets the function that returns the usual length of a job. A worker of the process sim.self calls
 * the function when it begins a job. */
struct worker;
void threads_pace(int64_t (*job_us)(void *context, const struct worker *w, const void *job),
		  void *context);

#endif
