/* world_private.h - the state of a simulated run, for the files that implement world.h. */
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
	TAKE_OVER, /* the controller dies, and a new one resumes the run */
	CUT,
	NARROW, /* one direction of a link loses large messages */
	RESET,
	SLEEP,
	FLIP,  /* a bit flips in a tensor */
	LOSE,  /* all nodes that have a certain stage die */
	DRAIN, /* an agent gets SIGTERM */
	/* The kinds below are commands of the operator: */
	RECUT, /* the command cut: the model is cut into other stages */
	MARK,
	SKIP,
	PAUSE,
	WIRE,
	SUM_WIRE
};

enum moment {
	IN_PHASE,
	SOME_SUMMED, /* some replicas have their sum, and other replicas do not */
	SOME_FETCH,  /* a node fetches its stage or a standby copy */
	/* Between two phases of the skip schedule, nodes load the stages to which they move. */
	SOME_MOVE,
	/* Moments of a change of stages (joining/recut.h): */
	SOME_SAVE,    /* nodes save the last commit with the old stages */
	STAGES_BEGIN, /* the controller has restarted, and nodes load the new stages */
	SOON_AFTER    /* soon after the previous mishap */
};

/* A mishap happens `after_us` microseconds after its moment in its iteration. */
struct mishap {
	enum mishap_kind kind;
	enum moment moment;
	uint64_t iteration;
	enum run_phase phase; /* phase of the iteration, for the moment IN_PHASE */
	int64_t after_us, lasts_us;
	/* Time, on the world's clock, at which the mishap happens; INT64_MAX: its moment has not
	 * come. */
	int64_t at_us;
	int64_t since_us; /* time, on the world's clock, at which the iteration was reached */
	uint32_t a, b;    /* processes that the mishap concerns; b: only if it concerns two */
	bool silently, done;
	bool given; /* the command was given; a second command will undo it */
};

/* The weights that an agent has at the end. */
struct held {
	int stage; /* stage of the weights; -1: the agent has no weights of the last commit */
	uint64_t hash;
	bool announced; /* the store has an announced hash for this stage */
	bool matches;   /* the announced hash equals `hash` */
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
	bool saves; /* the controller makes regular checkpoints */
	/* Where agents save checkpoints: nowhere, in the run's folder, or each in a folder of its
	 * own machine. */
	enum { NO_FOLDERS, ONE_FOLDER, OWN_FOLDERS } folders;
	enum { STAGES_STAY, STAGES_CHANGE } stages;
	/* The stages that every microbatch visits, in a run in which untrained stages take the
	 * weights of trained stages */
	enum { NO_STACKING, STACK_ON_FIRST, STACK_ON_FIRST_AND_LAST } stacking;
	enum { NODES_STAY, NODES_MOVE } at_phases;
	/* At the controller's last turn, an exchange of stages was prepared. */
	bool exchange_is_prepared;
	uint32_t n_agents, iterations;
	struct controller *controller;
	struct agent *agents[SIM_AGENTS];
	struct agent_place places[SIM_AGENTS];
	char join[64];
	/* Next start of each process, on the world's clock; INT64_MAX: none. */
	int64_t start_us[SIM_PROCESSES];
	int64_t job_us[SIM_PROCESSES]; /* usual length of a job of each process */
	/* Usual length of the optimizer's step, and of storing a fetched standby copy; 0: the usual
	 * length of other jobs. */
	int64_t step_us, store_us;
	struct mishap mishaps[MISHAPS];
	uint32_t n_mishaps;
	int64_t calm_us;  /* end of the last mishap */
	uint64_t durable; /* newest commit that is in the store */
	struct held held[SIM_AGENTS];
	bool begun, over;
	char *argv[ARGUMENTS];
	int argc;
	char texts[ARGUMENTS][128];
};

/* ---- world.c ---- */
/* Records the first check that failed, and ends the run. */
void world_go_wrong(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes a process the present one: the real modules then see its clock and its id. */
void world_become(uint32_t process);
/* Returns the present time on a process's own clock. */
int64_t world_own_now(uint32_t process);
void world_end_process(struct world *w, uint32_t i, bool silently);

/* ---- arguments.c ---- */
/* Writes the description of an emulated cluster to its file. */
void arguments_write_cluster(struct world *w);
/* Makes the controller's command line. Chooses its options at random, unless the controller
 * resumes a run. */
void arguments_make(struct world *w, bool resume);

/* ---- mishaps.c ---- */
void mishap_draw(struct world *w, struct mishap *m);
void mishap_draw_recut(const struct world *w, struct mishap *m);
/* Sets the time of a mishap if its moment has come, or if the moment was awaited for too long. */
void mishap_arm(struct world *w, struct mishap *m);
/* Executes a mishap whose time has come, or schedules it again. */
void mishap_apply(struct world *w, struct mishap *m);

/* ---- checks.c ---- */
/* Prepares sim_sends. */
void checks_begin(struct world *w);
/* Checks the members of the run after a turn of the controller. */
void checks_turn(struct world *w);
/* Checks the result of the run when the controller has ended with this exit status. */
void checks_controller_ended(struct world *w, int status);
/* Records which weights the agents have at the end, for checks_record. */
void checks_ask_agents(struct world *w);
/* Checks the run's record by the rules of verify/audit.h. Recomputes all weights and losses from
 * the record, and compares them with the agents' weights. */
void checks_record(struct world *w);

#endif
