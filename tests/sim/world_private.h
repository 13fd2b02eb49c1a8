/* world_private.h - a simulated run while it goes on, shared by the files of world.h. */
#ifndef TESTS_SIM_WORLD_PRIVATE_H
#define TESTS_SIM_WORLD_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "base/log.h"
#include "controller/controller.h"
#include "tests/sim/ground.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

enum { CONTROLLER = SIM_AGENTS, MISHAPS = 12, MOST_RECUTS = 4, ARGUMENTS = 64 };

enum mishap_kind {
	KILL,
	TAKE_OVER, /* the controller dies, and another one resumes the run */
	CUT,
	NARROW, /* one direction of a link loses large messages */
	RESET,
	SLEEP,
	FLIP,  /* a bit in a tensor */
	LOSE,  /* all nodes that hold a stage die */
	DRAIN, /* an agent gets SIGTERM */
	/* Commands of the operator: */
	RECUT, /* cut: the model is cut into other stages */
	MARK,
	SKIP,
	PAUSE,
	WIRE,
	SUM_WIRE
};

enum moment {
	IN_PHASE,
	SOME_SUMMED, /* some replicas have their sum, and others do not */
	SOME_FETCH,  /* a node fetches its stage or a copy */
	SOME_MOVE,   /* nodes load the stages to which they move between two phases */
	/* The steps of a change of stages (joining/recut.h): */
	SOME_SAVE,    /* nodes save the last commit of the former stages */
	STAGES_BEGIN, /* the controller has begun again, and nodes load the new stages */
	SOON_AFTER    /* soon after the previous mishap */
};

/* A mishap happens some time after its moment in its iteration. */
struct mishap {
	enum mishap_kind kind;
	enum moment moment;
	uint64_t iteration;
	enum run_phase phase; /* IN_PHASE */
	int64_t after_us, lasts_us;
	int64_t at_us;    /* world; INT64_MAX: the moment has not come */
	int64_t since_us; /* world: when its iteration was reached */
	uint32_t a, b;    /* processes; b: the other one, of a mishap between two */
	bool silently, done;
	bool given; /* the command was given, and is undone later */
};

/* The weights that an agent holds at the end. */
struct held {
	int stage; /* -1: no weights of the last commit */
	uint64_t hash;
	bool announced; /* the store has a hash of the stage */
	bool matches;   /* the announced hash equals this one */
};

/* Where an agent listens, saves and logs. */
struct agent_place {
	char listen[32], folder[128];
	struct log log;
};

struct world {
	struct ground *ground;
	struct outcome *out;
	bool emulated;
	bool saves; /* checkpoints are regular */
	/* Where agents save: nowhere, in the run's folder, or each on a machine of its own */
	enum { NO_FOLDERS, ONE_FOLDER, OWN_FOLDERS } folders;
	enum { STAGES_STAY, STAGES_CHANGE } stages;
	/* The stages that are always visited if a phase starts the others from them */
	enum { NO_STACKING, STACK_ON_FIRST, STACK_ON_FIRST_AND_LAST } stacking;
	enum { NODES_STAY, NODES_MOVE } at_phases;
	bool exchange_is_prepared; /* an exchange of stages, at the last look */
	uint32_t n_agents, iterations;
	struct controller *controller;
	struct agent *agents[SIM_AGENTS];
	struct agent_place places[SIM_AGENTS];
	char join[64];
	int64_t start_us[SIM_PROCESSES]; /* world: its next start; INT64_MAX: none */
	int64_t job_us[SIM_PROCESSES];   /* usual length of a job */
	/* Usual lengths of the optimizer's step and of storing a fetched copy; 0: as other jobs */
	int64_t step_us, store_us;
	struct mishap mishaps[MISHAPS];
	uint32_t n_mishaps;
	int64_t calm_us;                 /* the time from which on there was no mishap */
	uint64_t durable;                /* the newest commit in the store */
	struct held held[SIM_AGENTS];
	bool begun, over;
	char *argv[ARGUMENTS];
	int argc;
	char texts[ARGUMENTS][128];
};

/* ---- world.c ---- */
/* Ends the run with the first check that failed. */
void world_go_wrong(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes a process the current one, whose clock and id the real modules see. */
void world_become(uint32_t process);
/* Returns the time on a process's own clock. */
int64_t world_own_now(uint32_t process);
void world_end_process(struct world *w, uint32_t i, bool silently);

/* ---- arguments.c ---- */
/* Writes the file of an emulated cluster. */
void arguments_write_cluster(struct world *w);
/* Makes the controller's command line. The options of a new run are drawn. */
void arguments_make(struct world *w, bool resume);

/* ---- mishaps.c ---- */
void mishap_draw(struct world *w, struct mishap *m);
void mishap_draw_recut(const struct world *w, struct mishap *m);
/* Schedules a mishap whose moment has come or has been waited for too long. */
void mishap_arm(struct world *w, struct mishap *m);
/* Lets a mishap happen whose time has come, or schedules it again. */
void mishap_apply(struct world *w, struct mishap *m);

/* ---- checks.c ---- */
/* Prepares the check of messages (sim_sends). */
void checks_begin(struct world *w);
/* Checks the members after a turn of the controller. */
void checks_turn(struct world *w);
/* Checks the run after the controller has ended with this exit status. */
void checks_controller_ended(struct world *w, int status);
/* Keeps what the agents hold at the end, for checks_record. */
void checks_ask_agents(struct world *w);
/* Checks the rules of verify/audit.h, recomputes every weight and loss, and compares them with what
 * the agents hold. */
void checks_record(struct world *w);

#endif
