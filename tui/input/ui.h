/* ui.h - the state of the operator's interaction: view, selection, dialogs, typed text.
 *
 * The functions have no side effects outside the struct: keys and clocks are arguments, and
 * console.c fetches commands and requests from the struct. Therefore tests can exercise every
 * dialog by keys and messages. Views only read the struct.
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
	DIALOG_FINISH, /* lets the learning rate fall, and then ends the run */
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
	FIELD_FORMAT, /* the value is the index of a format in the dialog's list (dialog_format) */
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

/* Largest number of iterations over which the learning rate may fall. */
enum { DIALOG_FINISH_MOST = 1 << 24 };
enum { DIALOG_FORMATS = 4 }; /* number of formats that a dialog offers */

struct dialog {
	enum dialog_kind kind;
	enum fault_kind fault; /* kind of fault of DIALOG_INJECT */
	uint16_t node;
	uint32_t n_fields;
	struct dialog_field fields[DIALOG_FIELDS];
	/* Index of the focused element; the order is: fields, typed number, Cancel, Apply. */
	uint32_t focus;
	uint32_t choice;   /* the selected line of DIALOG_FAULT or DIALOG_HEAL */
	bool needs_number; /* the operator must type the node's number before Apply */
	char typed[8];
	bool forbidden; /* the action is not possible, for the reason in `why` */
	char why[128];
	/* Id of the command that requested the preview; 0: none was requested. */
	uint64_t preview_id;
	bool has_preview;
	struct msg_see_preview preview;
	int64_t asked_us; /* time at which the preview was requested, on the local clock */
	uint64_t undo;    /* id of the command that will be undone; 0: the newest command */
	char undo_text[96];
	char layers[96]; /* DIALOG_CUT: layers of each stage, as typed; "": as proposed */
};

/* A plan for comparison, which the Compare view requests from the controller. */
struct ui_candidate {
	/* Name of the plan in the controller's answer, such as "best 2/6" or "sums q6". */
	char name[32];
	char text[32];    /* text of the command that requests the plan */
	uint32_t skip;    /* number of stages that the plan skips */
	uint64_t id;      /* id of the command that requests the plan; 0: not requested */
	int64_t asked_us; /* time at which the plan was requested, on the local clock */
	uint32_t asked;   /* number of requests so far */
};

/* The Compare view's candidates: a plan for every skip ratio, a published baseline, then a plan for
 * every format that is not in use. */
struct ui_compare {
	struct ui_candidate candidates[STATE_CANDIDATES];
	/* n: number of candidates. n_plans: number without the candidates for other formats, which
	 * come last. */
	uint32_t n, n_plans;
	uint8_t wire, sum_wire; /* formats in use when the candidates were listed */
	uint64_t epoch; /* epoch of the plan that was in force when the candidates were listed */
	uint32_t shown; /* index of the candidate that is drawn next to the plan in force */
};

/* The what-if that is drawn together with the iteration on the screen (branch.h). */
struct ui_branch {
	bool open;     /* the what-if is drawn, or the answer is still awaited */
	bool has_plan; /* the answer has arrived */
	char name[32]; /* name of the plan in the controller's answer */
	uint64_t id;   /* id of the command that requests the plan */
	uint32_t skip; /* skip ratio (skip_share_pack) */
	int32_t without;  /* the excluded node; -1: none */
	int64_t asked_us; /* time at which the what-if was requested, on the local clock */
	char refused[96];
	enum view back;         /* the view to return to */
	struct state_plan plan; /* ui_fini frees it */
};

/* The rights of this console, and the operator's lease. Only ui_send.c writes this struct. */
struct ui_authority {
	/* Name of this console at the controller; "": the controller has not sent it yet. */
	char name[64];
	bool readonly; /* true: option --readonly; the console sends no command */
	/* The controller refuses this console's commands, because its key may only watch. */
	bool admitted_to_watch;
	bool owner;               /* quitting this console ends the run */
	uint64_t lease_request;   /* id of the COMMAND_ARM that is not answered yet; 0: none */
	/* True: `waiting` is sent as soon as the controller grants the lease. */
	bool has_waiting;
	struct msg_command waiting;
};

/* The connection to the controller. Only ui.c writes it. */
struct ui_connection {
	enum ui_link state;
	int64_t since_us; /* time at which the state began, on the local clock */
	char reason[160]; /* why the state is not UI_LIVE */
	/* Time at which the newest message from the controller arrived, on the local clock; 0: no
	 * message has arrived. */
	int64_t last_message_us;
};

/* Two clocks: this machine's (`local`) and the controller's. ui_tick writes them. console_scrub
 * writes the fields about the cursor, the point in time that a frozen screen shows. */
struct ui_clock {
	int64_t local_us;
	int64_t wall_us;
	/* Estimated present time on the controller's clock; on a frozen screen, the time at the
	 * cursor. */
	int64_t now_us;
	int64_t status_us;       /* controller's time in its newest status message */
	int64_t status_local_us; /* local time at which that status message arrived */
	bool frozen;
	int64_t frozen_us; /* controller's time at the cursor */
	/* Time from the cursor to the present; 0: the screen shows the present. */
	int64_t behind_us;
	int64_t span_us;   /* time by which the cursor can go back from the present */
};

/* The objects that the operator has selected. Only ui_move.c writes it. */
struct ui_selection {
	uint16_t node;
	bool following; /* the view follows `microbatch` */
	uint32_t microbatch;
	uint64_t note;   /* id of the selected journal entry; 0: always the newest entry */
	char filter[48]; /* text of the filter; "": none */
};

/* The line in which a command or a filter is typed. Only ui.c writes it. */
struct ui_prompt {
	enum prompt kind;
	char text[512];
	uint32_t choice; /* index of the chosen line in the list of commands */
};

/* The settings for drawing the run. */
struct ui_display {
	enum view view;
	enum graph graph;
	/* 0: the help is closed. 1: its first page is shown. When the number rises above that of
	 * the last page, the first page is shown again. */
	int help_page;
	/* Width of the timeline: 0 shows one iteration, and each step up or down halves or doubles
	 * it. */
	int zoom;
	bool mouse;
	enum colouring colouring;
	enum loss_axis loss_axis;
	int loss_zoom; /* the loss curve shows the newest 1 / 2^loss_zoom of the run */
	/* Position on the x axis at which runs are compared; 0: the newest value. */
	uint64_t loss_cursor;
	enum link_measure link_measure;
	enum link_grouping link_grouping;
	char theme[32];
	/* Id + 1 of the moving microbatch in each row; 0: the row is unused. */
	uint32_t rows[UI_MOTION_ROWS];
};

/* The message line. Only ui_say writes it. */
struct ui_message {
	char text[224];
	enum style style;
	int64_t until_us; /* the message is shown until this time on the local clock */
};

/* The runs whose losses the operator wants to compare with those of this run. */
struct ui_comparison {
	bool is_requested;
	char folders[514]; /* folders of the runs, each followed by a space; "": none */
};

/* Requests of the operator that go beyond the screen. main.c and side_effects.c carry them out and
 * reset them. */
struct ui_requests {
	bool quit, theme, export, copy, mouse;
	enum scrub scrub;
	char theme_name[64];  /* name of the requested theme; "": the next theme */
	char export_name[16]; /* name of the export's format; "": text */
	struct ui_comparison compare;
};

/* Commands for the controller. ui_send.c appends them; console.c sends and removes them. */
struct ui_outbox {
	struct msg_command commands[UI_OUTBOX];
	uint32_t n;
	uint64_t last_id; /* id of the newest command */
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
	/* runs whose losses are drawn together with this run's losses */
	struct other_runs others;
	/* Positions of the nodes for the Map view and the map in other views. */
	struct map places;
};

/* Initialises *u with the overview as view and the state "connecting". ui_fini frees its memory. */
void ui_init(struct ui *u, enum graph graph);
void ui_fini(struct ui *u);
/* Updates the clocks. Call it before drawing. */
void ui_tick(struct ui *u, const struct state *s, int64_t local_us, int64_t wall_us);
/* Sets the state of the connection. why: the reason if the state is not UI_LIVE; copied. */
void ui_set_connection(struct ui *u, enum ui_link link, const char *why);
/* Handles a message of the controller: a reply, a preview or an answer to a what-if. */
void ui_take_message(struct ui *u, const struct state *s, const struct msg *m);
/* Handles a key: gives it to the open dialog, otherwise to the open prompt, otherwise performs its
 * action. */
void ui_key(struct ui *u, const struct state *s, uint32_t key);
/* Adds pasted text to the open prompt. Ignores it if no prompt is open. */
void ui_paste(struct ui *u, const char *text);
/* ui_act.c: performs an action. */
void ui_act(struct ui *u, const struct state *s, enum action a);
/* ui_command.c: performs a typed command, such as "skip 3" or "arm 10m". Shows a message if the
 * command is wrong. */
void ui_command(struct ui *u, const struct state *s, const char *text);
/* Changes the view. */
void ui_show(struct ui *u, enum view view);
/* ui_move.c: moves the selection as an action says: ACTION_NEXT to ACTION_LAST_ROW, or one of
 * ACTION_FIND_... */
void ui_move(struct ui *u, const struct state *s, enum action a);
/* Describes the loss curve for the Loss view or, in another view, for the panel with the loss. */
struct curve_view ui_losses(const struct state *s, const struct ui *u);
/* Selects the next node at which a microbatch waits. */
void ui_next_collision(struct ui *u, const struct state *s);
/* Selects a node. */
void ui_select(struct ui *u, const struct state *s, uint16_t node);

/* If the filter hides the selected node, selects the first node that is listed. */
void ui_reselect(struct ui *u, const struct state *s);
/* Requests the next plan that the Compare view lacks. */
void ui_ask_candidates(struct ui *u, const struct state *s);

/* ui_send.c: shows a message for six seconds. */
void ui_say(struct ui *u, enum style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Queues a command for the controller and returns its id. Returns 0 if this console may not send
 * the command or the queue is full. Also returns 0 if the command needs the operator's lease and
 * this console does not have it. In this case, requests the lease, and sends the command when the
 * controller grants it. */
uint64_t ui_send(struct ui *u, const struct state *s, struct msg_command c);
/* Shows the controller's answer to a command. If the answer grants the lease, queues the command
 * that waited for it. */
void ui_take_reply(struct ui *u, const struct msg_see_reply *r);
/* Returns true if this console has the operator's lease. */
bool ui_has_lease(const struct ui *u, const struct state *s);
/* Returns why this console may not send commands; NULL if it may. */
const char *ui_watch_reason(const struct ui *u);

/* dialog.c: opens a dialog for the selected node, or shows a message that says why it cannot. */
void dialog_open(struct ui *u, const struct state *s, enum dialog_kind kind);
/* Opens DIALOG_FINISH. iterations: number of iterations during which the learning rate falls; 0:
 * the dialog proposes a number. */
void dialog_open_finish(struct ui *u, const struct state *s, int64_t iterations);
/* Opens DIALOG_CUT. layers: the layers of each stage, as typed, shorter than dialog.layers; "":
 * the stages that the controller has proposed. */
void dialog_open_cut(struct ui *u, const struct state *s, const char *layers);
/* Handles a key while a dialog is open. */
void dialog_key(struct ui *u, const struct state *s, uint32_t key);
/* Takes a preview if the open dialog has requested it. */
void dialog_take_preview(struct dialog *d, const struct msg_see_preview *p);
/* Returns the format at an index of the dialog's list. kind: DIALOG_WIRE or DIALOG_SUM_WIRE. */
enum tensor_format dialog_format(enum dialog_kind kind, int64_t index);
/* Returns the skip ratio that the fields of DIALOG_SKIP give (skip_share_pack). */
int64_t dialog_ratio(const struct dialog *d);
enum tensor_format dialog_format_now(const struct state *s, enum dialog_kind kind);
/* Returns true if the stage of the node has another node that is live or suspect. */
bool dialog_stage_has_others(const struct state *s, uint16_t node);

#endif
