/* ui.h - what the operator looks at and is about to do: view, selection, dialogs, typed text.
 *
 * Pure: keys and the clock come in as arguments; what should leave (commands for the
 * controller, side effects for the program) is put in the struct for main.c to take. So every
 * dialog is tested by feeding keys and messages. Views read it; ui.c, ui_send.c, ui_act.c,
 * ui_move.c, ui_command.c and dialog.c write it.
 */
#ifndef TUI_UI_H
#define TUI_UI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/input/keymap.h"
#include "tui/screen/screen.h"
#include "tui/run/state.h"

enum view {
	VIEW_OVERVIEW = 1,
	VIEW_NODES,
	VIEW_LINKS,
	VIEW_TIMELINE,
	VIEW_MICROBATCHES,
	VIEW_LOSS,
	VIEW_COMPARE,
	VIEW_JOURNAL,
	VIEWS
};

enum ui_link { UI_CONNECTING, UI_LIVE, UI_LOST, UI_REFUSED, UI_RECORDED };

enum graph { GRAPH_BRAILLE, GRAPH_BLOCK, GRAPH_ASCII };

enum scrub { SCRUB_NONE, SCRUB_BACK, SCRUB_ON, SCRUB_EVENT_BACK, SCRUB_EVENT_ON, SCRUB_LIVE };

enum prompt { PROMPT_NONE, PROMPT_COMMAND, PROMPT_FILTER };

enum dialog_kind {
	DIALOG_NONE,
	DIALOG_SKIP,
	DIALOG_FAIL,
	DIALOG_RECOVER,
	DIALOG_FAULT,
	DIALOG_INJECT,
	DIALOG_HEAL,
	DIALOG_UNDO,
	DIALOG_BRANCH,
	DIALOG_QUIT
};

enum { DIALOG_FIELDS = 5, UI_OUTBOX = 16, UI_LANES = 128 };

enum field_unit {
	FIELD_NUMBER,
	FIELD_STAGES,
	FIELD_NODE,
	FIELD_SECONDS,
	FIELD_TIMES,
	FIELD_PERCENT
};

/* One thing that can be changed in a dialog. */
struct dialog_field {
	char label[24];
	int64_t value, least, most, step;
	enum field_unit unit;
};

struct dialog {
	enum dialog_kind kind;
	enum fault_kind fault; /* DIALOG_INJECT */
	uint16_t node;
	uint32_t n_fields;
	struct dialog_field fields[DIALOG_FIELDS];
	uint32_t focus;  /* fields first, then Cancel, then Apply */
	uint32_t choice; /* DIALOG_FAULT, DIALOG_HEAL: the line */
	bool want_typed; /* the node's id must be typed */
	char typed[8];
	bool forbidden; /* Apply does nothing; `why` says why */
	char why[128];
	uint64_t preview_id; /* asked for; 0 none wanted */
	bool have_preview;
	struct msg_see_preview preview;
	int64_t asked_us; /* our clock */
	uint64_t undo;    /* the act, by its journal id; 0: the last */
	char undo_text[96];
};

/* A plan that the Compare view requests from the controller. */
struct ui_candidate {
	char name[32];    /* the name that the answer has: "best 2/6" */
	uint64_t id;      /* of the command that requests the plan; 0 not requested */
	int64_t asked_us; /* local clock */
	uint32_t asked;   /* number of requests */
};

/* The Compare view: every skip ratio, then a baseline. */
struct ui_compare {
	struct ui_candidate candidates[STATE_CANDIDATES];
	uint32_t n;
	uint64_t epoch; /* of the plan in force that the candidates are compared with */
	uint32_t shown; /* the candidate drawn beside the plan in force */
};

/* A what-if beside the iteration that is shown (branch.h). */
struct ui_branch {
	bool wanted, have;
	char name[32];    /* the name that the answer has */
	uint64_t id;      /* of the command that requests the plan */
	uint32_t skip;    /* stages */
	int32_t without;  /* the excluded node; -1 none */
	int64_t asked_us; /* local clock */
	char refused[96];
	enum view back;         /* the view to return to */
	struct state_plan plan; /* ui_fini frees it */
};

/* The rights of this console, and the operator's lease. ui_send.c owns it. */
struct ui_authority {
	char name[64];            /* the controller's name for this console; "" not known yet */
	bool readonly;            /* --readonly: no command leaves this console */
	bool admitted_to_watch;   /* the controller refuses commands of this console */
	bool owner;               /* quitting ends the run */
	uint64_t lease_request;   /* id of the unanswered COMMAND_ARM; 0 none */
	bool has_waiting;         /* `waiting` leaves when the lease is granted */
	struct msg_command waiting;
};

/* The connection to the controller. ui.c owns it. */
struct ui_connection {
	enum ui_link state;
	int64_t since_us; /* local clock: start of this state */
	char reason[160]; /* why the state is not UI_LIVE */
	int64_t heard_us; /* local clock: last message from the controller; 0 never */
};

/* Two clocks: this machine's (`local`) and the controller's. ui_tick owns it, except for the
 * cursor in the past, which console_scrub moves. */
struct ui_clock {
	int64_t local_us;
	int64_t wall_us;
	int32_t utc_offset_s;
	int64_t now_us;          /* the controller's clock, estimated; at the cursor while frozen */
	int64_t status_us;       /* the controller's clock in its newest status */
	int64_t status_local_us; /* local clock when that status arrived */
	bool frozen;
	int64_t frozen_us; /* the controller's clock at the cursor */
	int64_t behind_us; /* distance from the cursor to now; 0: the cursor is at now */
	int64_t span_us;   /* how far back the cursor can go from now */
};

/* The objects that the operator has selected. ui_move.c owns it. */
struct ui_selection {
	uint16_t node;
	bool following; /* `microbatch` is followed */
	uint32_t microbatch;
	uint64_t note;   /* the journal entry's id; 0: the newest entry */
	char filter[48]; /* "" none */
};

/* The line in which a command or a filter is typed. ui.c owns it. */
struct ui_prompt {
	enum prompt kind;
	char text[128];
	uint32_t choice; /* the line chosen in the list of commands */
};

/* How the run is drawn. */
struct ui_display {
	enum view view;
	enum graph graph;
	int help_page; /* 0: the help is closed; counts on without end */
	int zoom;      /* timeline: 0 an iteration; each step halves or doubles the width */
	bool mouse;
	char theme[32];
	uint32_t lanes[UI_LANES]; /* by row: id of the moving microbatch + 1; 0 free */
};

/* The message line. ui_say owns it. */
struct ui_message {
	char text[224];
	enum style style;
	int64_t until_us; /* local clock */
};

/* Work for the program outside the picture. main.c and side_effects.c take it. */
struct ui_requests {
	bool quit, theme, export, copy, mouse;
	enum scrub scrub;
	char theme_name[64];  /* "" the next theme */
	char export_name[16]; /* "" text */
};

/* Commands to the controller. ui_send.c fills it, console.c empties it. */
struct ui_outbox {
	struct msg_command commands[UI_OUTBOX];
	uint32_t n;
	uint64_t last_id; /* of this console's commands */
};

struct ui {
	struct keymap map;
	struct ui_authority authority;
	struct ui_connection connection;
	struct ui_clock clock;
	struct ui_display display;
	struct ui_selection selection;
	struct ui_prompt prompt;
	struct dialog dialog;
	struct ui_compare compare;
	struct ui_branch branch;
	struct ui_message message;
	struct ui_requests requests;
	struct ui_outbox outbox;
};

/* At the overview, connecting; freed by ui_fini. */
void ui_init(struct ui *u, enum graph graph);
void ui_fini(struct ui *u);
/* Before a frame: the clocks. */
void ui_tick(struct ui *u, const struct state *s, int64_t local_us, int64_t wall_us);
/* How the connection stands from now on; why: where it is not UI_LIVE, copied. */
void ui_link_is(struct ui *u, enum ui_link link, const char *why);
/* A message came (any; only replies, previews and notes matter). */
void ui_heard(struct ui *u, const struct state *s, const struct msg *m);
/* One key (PRESS_..., or a glyph): for the dialog, else the prompt, else an action. */
void ui_key(struct ui *u, const struct state *s, uint32_t key);
/* Pasted text goes into a prompt that is open, nowhere else. */
void ui_paste(struct ui *u, const char *text);
/* ui_act.c: what a key or a command stands for. */
void ui_act(struct ui *u, const struct state *s, enum action a);
/* A typed command: "skip 3", "arm 10m". Says in the message line what is wrong with it. */
void ui_command(struct ui *u, const struct state *s, const char *text);
/* Changes the view, and says what it shows. */
void ui_show(struct ui *u, enum view view);
/* ui_move.c: ACTION_NEXT to ACTION_LAST_ROW, ACTION_FIND_NEXT, ACTION_FIND_PREVIOUS. */
void ui_move(struct ui *u, const struct state *s, enum action a);
/* The next node where somebody waits. */
void ui_next_collision(struct ui *u, const struct state *s);
/* A click on a node's cell. */
void ui_select(struct ui *u, const struct state *s, uint16_t node);

/* When the selected node is not among those listed, the first that is. */
void ui_reselect(struct ui *u, const struct state *s);
/* Asks for the next plan of the Compare view that is not there; anew: for all of them again. */
void ui_ask_candidates(struct ui *u, const struct state *s, bool anew);

/* ui_send.c: says something in the message line for six seconds. */
void ui_say(struct ui *u, enum style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends a command with a fresh id; 0 when there is no room, it may not leave, or it waits for
 * the operator's lease, which is asked for first. */
uint64_t ui_send(struct ui *u, const struct state *s, struct msg_command c);
/* The controller's answer to a command of ours: said; where it grants the lease, what waited
 * for it leaves. */
void ui_take_reply(struct ui *u, const struct msg_see_reply *r);
/* The operator's lease is this console's now. */
bool ui_lease_is_ours(const struct ui *u, const struct state *s);
/* Why this console may not act; NULL: it may. */
const char *ui_only_watches(const struct ui *u);

/* dialog.c: opens the dialog for the selected node, or says why there is nothing to ask. */
void dialog_open(struct ui *u, const struct state *s, enum dialog_kind kind);
/* A key while a dialog is open. */
void dialog_key(struct ui *u, const struct state *s, uint32_t key);
/* A preview came; taken where the dialog asked for it. */
void dialog_heard(struct ui *u, const struct state *s, const struct msg_see_preview *p);
/* Another node than this, live or suspect, holds its stage. */
bool dialog_stage_has_others(const struct state *s, uint16_t node);

#endif
