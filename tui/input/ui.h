/* ui.h - the state of the operator's interaction: view, selection, dialogs, typed text.
 *
 * The functions are pure. Keys and clocks are arguments. Commands for the controller and requests
 * to the program are put into the struct, and console.c takes them from there. Tests therefore
 * exercise every dialog by keys and messages. Views only read the struct.
 */
#ifndef TUI_UI_H
#define TUI_UI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tensor_format.h"
#include "tui/input/keymap.h"
#include "tui/screen/colouring.h"
#include "tui/screen/curve.h"
#include "tui/screen/graph.h"
#include "tui/screen/screen.h"
#include "tui/run/costs.h"
#include "tui/run/link_groups.h"
#include "tui/run/map.h"
#include "tui/run/other_runs.h"
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
	VIEW_MAP,
	VIEWS
};

enum ui_link { UI_CONNECTING, UI_LIVE, UI_LOST, UI_REFUSED, UI_RECORDED };

/* The measure by which the Links view compares links. */
enum link_measure { LINK_BY_PLAN, LINK_BY_LATENCY, LINK_BY_BANDWIDTH, LINK_MEASURES };

enum scrub { SCRUB_NONE, SCRUB_BACK, SCRUB_ON, SCRUB_EVENT_BACK, SCRUB_EVENT_ON, SCRUB_LIVE };

enum prompt { PROMPT_NONE, PROMPT_COMMAND, PROMPT_FILTER };

enum dialog_kind {
	DIALOG_NONE,
	DIALOG_SKIP,
	DIALOG_WIRE, /* changes the format of activations */
	DIALOG_SUM_WIRE,
	DIALOG_FINISH, /* lets the learning rate fall and then ends the run */
	DIALOG_FAIL,
	DIALOG_RECOVER,
	DIALOG_FAULT,
	DIALOG_INJECT,
	DIALOG_HEAL,
	DIALOG_UNDO,
	DIALOG_CUT, /* cuts the model into other stages */
	DIALOG_BRANCH,
	DIALOG_QUIT
};

enum { DIALOG_FIELDS = 5, UI_OUTBOX = 16, UI_MOTION_ROWS = 128 };

enum field_unit {
	FIELD_NUMBER,
	FIELD_STAGES,
	FIELD_FORMAT, /* the field's value is an index of a format (dialog_format) */
	FIELD_NODE,
	FIELD_SECONDS,
	FIELD_TIMES,
	FIELD_PERCENT
};

/* A value that can be changed in a dialog. */
struct dialog_field {
	char label[24];
	int64_t value, least, most, step;
	enum field_unit unit;
};

enum { DIALOG_FINISH_MOST = 1 << 24 }; /* largest number of iterations of a decay */
enum { DIALOG_FORMATS = 4 }; /* that a dialog offers, for activations or for sums */

struct dialog {
	enum dialog_kind kind;
	enum fault_kind fault; /* kind of fault of DIALOG_INJECT */
	uint16_t node;
	uint32_t n_fields;
	struct dialog_field fields[DIALOG_FIELDS];
	/* Index of the focused element, in this order: fields, confirmation, Cancel, Apply. */
	uint32_t focus;
	uint32_t choice;   /* the selected line of DIALOG_FAULT or DIALOG_HEAL */
	bool needs_number; /* the operator must type the node's number to confirm */
	char typed[8];
	bool forbidden; /* Apply has no effect; `why` gives the reason */
	char why[128];
	/* Id of the command that requests the preview; 0: none was requested */
	uint64_t preview_id;
	bool has_preview;
	struct msg_see_preview preview;
	int64_t asked_us; /* time of the request on the local clock */
	uint64_t undo;    /* id of the command to undo; 0: the last command */
	char undo_text[96];
	char layers[96]; /* DIALOG_CUT: layers of each stage, as typed; "": as proposed */
};

/* A plan that the Compare view requests from the controller. */
struct ui_candidate {
	char name[32];    /* name that the answer will have, such as "best 2/6" or "sums q6" */
	char text[32];    /* text of the command that requests the plan */
	uint32_t skip;    /* number of stages that the plan skips */
	uint64_t id;      /* id of the command that requests the plan; 0: not requested */
	int64_t asked_us; /* time of the request on the local clock */
	uint32_t asked;   /* number of times that the plan was requested */
};

/* The Compare view: a plan for every skip ratio, a baseline, then a plan for every other format. */
struct ui_compare {
	struct ui_candidate candidates[STATE_CANDIDATES];
	/* n: number of plans; n_plans: number of plans before those for other formats */
	uint32_t n, n_plans;
	uint8_t wire, sum_wire; /* formats with which the candidates are compared */
	uint64_t epoch; /* epoch of the plan in force with which the candidates are compared */
	uint32_t shown; /* index of the candidate that is drawn beside the plan in force */
};

/* A what-if beside the iteration that is shown (branch.h). */
struct ui_branch {
	bool open;     /* the what-if is shown, or requested */
	bool has_plan; /* the answer has arrived */
	char name[32]; /* name that the answer will have */
	uint64_t id;   /* id of the command that requests the plan */
	uint32_t skip; /* skip ratio (skip_share_pack) */
	int32_t without;  /* the excluded node; -1: none */
	int64_t asked_us; /* time of the request on the local clock */
	char refused[96];
	enum view back;         /* the view to return to */
	struct state_plan plan; /* ui_fini frees it */
};

/* The rights of this console, and the operator's lease. ui_send.c owns it. */
struct ui_authority {
	char name[64];            /* the controller's name for this console; "": not known yet */
	bool readonly;            /* --readonly: no command leaves this console */
	bool admitted_to_watch;   /* the controller refuses commands of this console */
	bool owner;               /* quitting this console ends the run */
	uint64_t lease_request;   /* id of the unanswered COMMAND_ARM; 0: none */
	/* `waiting` is a command that is sent when the lease is granted */
	bool has_waiting;
	struct msg_command waiting;
};

/* The connection to the controller. ui.c owns it. */
struct ui_connection {
	enum ui_link state;
	int64_t since_us; /* when this state began, on the local clock */
	char reason[160]; /* reason why the state is not UI_LIVE */
	/* When the last message from the controller arrived, on the local clock; 0: none has. */
	int64_t last_message_us;
};

/* Two clocks: this machine's (`local`) and the controller's. ui_tick owns it, except for the
 * cursor in the past, which console_scrub moves. */
struct ui_clock {
	int64_t local_us;
	int64_t wall_us;
	/* Estimated time on the controller's clock; while the screen is frozen, the time at the
	 * cursor. */
	int64_t now_us;
	int64_t status_us;       /* time on the controller's clock in its newest status */
	int64_t status_local_us; /* local time when that status arrived */
	bool frozen;
	int64_t frozen_us; /* time on the controller's clock at the cursor */
	int64_t behind_us; /* distance from the cursor to now; 0: the cursor is at now */
	int64_t span_us;   /* how far back in time the cursor can go */
};

/* The objects that the operator has selected. ui_move.c owns it. */
struct ui_selection {
	uint16_t node;
	bool following; /* the view follows `microbatch` */
	uint32_t microbatch;
	uint64_t note;   /* id of the selected journal entry; 0: the newest entry */
	char filter[48]; /* text of the filter; "": none */
};

/* The line in which a command or a filter is typed. ui.c owns it. */
struct ui_prompt {
	enum prompt kind;
	char text[512];
	uint32_t choice; /* index of the chosen line in the list of commands */
};

/* How the run is drawn. */
struct ui_display {
	enum view view;
	enum graph graph;
	int help_page; /* 0: the help is closed; otherwise its page, counting on without end */
	/* Zoom of the timeline: 0 shows an iteration; each step halves or doubles the width. */
	int zoom;
	bool mouse;
	enum colouring colouring;
	enum loss_axis loss_axis;
	int loss_zoom; /* zoom of the loss: the newest 1 / 2^loss_zoom of the run is shown */
	uint64_t loss_cursor; /* place of the cursor on the axis; 0: the newest value */
	enum link_measure link_measure;
	enum link_grouping link_grouping;
	char theme[32];
	/* Id + 1 of the moving microbatch in each row; 0: the row is free. */
	uint32_t rows[UI_MOTION_ROWS];
};

/* The message line. ui_say owns it. */
struct ui_message {
	char text[224];
	enum style style;
	int64_t until_us; /* the message is shown until this time on the local clock */
};

/* Other runs whose losses are to be read. */
struct ui_comparison {
	bool is_requested;
	char folders[514]; /* folders with a space after each; "": none */
};

/* Work that the program has to do outside the picture. main.c and side_effects.c take it from
 * here. */
struct ui_requests {
	bool quit, theme, export, copy, mouse;
	enum scrub scrub;
	char theme_name[64];  /* name of the requested theme; "": the next theme */
	char export_name[16]; /* name of the requested export; "": the text form */
	struct ui_comparison compare;
};

/* Commands to the controller. ui_send.c fills it, console.c empties it. */
struct ui_outbox {
	struct msg_command commands[UI_OUTBOX];
	uint32_t n;
	uint64_t last_id; /* id of the newest command of this console */
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
	struct prices prices;     /* prices of the nodes, from --price */
	struct other_runs others; /* runs that are drawn beside the losses of this run */
	struct map places;        /* places of the nodes in the Map view and its panel */
};

/* Initialises the ui: it shows the overview and is connecting. ui_fini frees it. */
void ui_init(struct ui *u, enum graph graph);
void ui_fini(struct ui *u);
/* Updates the clocks; called before each picture. */
void ui_tick(struct ui *u, const struct state *s, int64_t local_us, int64_t wall_us);
/* Changes the state of the connection. why: the reason if it is not UI_LIVE; copied. */
void ui_set_connection(struct ui *u, enum ui_link link, const char *why);
/* Handles a message of the controller: replies, previews and what-ifs. */
void ui_take_message(struct ui *u, const struct state *s, const struct msg *m);
/* Handles a key: an open dialog gets it, otherwise an open prompt; otherwise it is an action. */
void ui_key(struct ui *u, const struct state *s, uint32_t key);
/* Adds pasted text to an open prompt; without one the text is ignored. */
void ui_paste(struct ui *u, const char *text);
/* ui_act.c: performs an action. */
void ui_act(struct ui *u, const struct state *s, enum action a);
/* ui_command.c: performs a typed command ("skip 3", "arm 10m"), or shows a message if it is
 * wrong. */
void ui_command(struct ui *u, const struct state *s, const char *text);
/* Changes the view. */
void ui_show(struct ui *u, enum view view);
/* ui_move.c: moves the selection by ACTION_NEXT to ACTION_LAST_ROW or ACTION_FIND_... */
void ui_move(struct ui *u, const struct state *s, enum action a);
/* Gives the losses as the Loss view shows them, or, in another view, as its panel does. */
struct curve_view ui_losses(const struct state *s, const struct ui *u);
/* Selects the next node at which a microbatch waits. */
void ui_next_collision(struct ui *u, const struct state *s);
/* Selects a node. */
void ui_select(struct ui *u, const struct state *s, uint16_t node);

/* Selects the first listed node if the selected node is not listed. */
void ui_reselect(struct ui *u, const struct state *s);
/* Requests the next missing plan of the Compare view. */
void ui_ask_candidates(struct ui *u, const struct state *s);

/* ui_send.c: shows a message for six seconds. */
void ui_say(struct ui *u, enum style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Queues a command and returns its id. Returns 0 if the command may not be sent, the queue is
 * full, or the command waits for the operator's lease, which is then requested. */
uint64_t ui_send(struct ui *u, const struct state *s, struct msg_command c);
/* Shows the controller's answer to a command. If it grants the lease, the waiting command is
 * queued. */
void ui_take_reply(struct ui *u, const struct msg_see_reply *r);
/* Returns true if this console has the operator's lease. */
bool ui_has_lease(const struct ui *u, const struct state *s);
/* Returns the reason why this console may not send commands; NULL: it may. */
const char *ui_watch_reason(const struct ui *u);

/* dialog.c: opens a dialog for the selected node, or shows why it cannot be opened. */
void dialog_open(struct ui *u, const struct state *s, enum dialog_kind kind);
/* Opens DIALOG_FINISH. iterations: length of the decay; 0: the dialog proposes a number. */
void dialog_open_finish(struct ui *u, const struct state *s, int64_t iterations);
/* Opens DIALOG_CUT. layers: shorter than the dialog's field; "": the stages proposed last. */
void dialog_open_cut(struct ui *u, const struct state *s, const char *layers);
/* Handles a key for the open dialog. */
void dialog_key(struct ui *u, const struct state *s, uint32_t key);
/* Takes a preview that the open dialog has requested. */
void dialog_take_preview(struct dialog *d, const struct msg_see_preview *p);
/* Return the format that a dialog offers at this index, and the format in force. kind: DIALOG_WIRE
 * or DIALOG_SUM_WIRE. */
enum tensor_format dialog_format(enum dialog_kind kind, int64_t index);
/* Returns the skip ratio in the fields of DIALOG_SKIP (skip_share_pack). */
int64_t dialog_ratio(const struct dialog *d);
enum tensor_format dialog_format_now(const struct state *s, enum dialog_kind kind);
/* Returns true if another live or suspect node has the node's stage. */
bool dialog_stage_has_others(const struct state *s, uint16_t node);

#endif
