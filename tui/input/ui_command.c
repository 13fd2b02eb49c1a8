/* Performs commands typed after ':'. A command that has a dialog opens it with the typed values. A
 * command without arguments does what its key does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/input/branch.h"
#include "tui/input/command.h"
#include "tui/input/ui.h"

enum { WORDS = 8 };

/* Parses "9" or "n09" into a number. If the word is not a number, shows a message and returns
 * false. */
static bool parse_number_word(struct ui *u, const char *word, long most, long *out)
{
	char *end;

	if (word && (word[0] == 'n' || word[0] == 'm' || word[0] == '#') && word[1])
		word++;
	*out = word ? strtol(word, &end, 10) : -1;
	if (word && end != word && !*end && *out >= 0 && *out <= most)
		return true;
	ui_say(u, STYLE_ALERT, "%s%s: expected a number from 0 to %ld", word ? word : "",
	       word ? "" : "nothing", most);
	return false;
}

static bool select_typed_node(struct ui *u, const struct state *s, const char *word)
{
	long n;

	if (!word)
		return true; /* without a number, the command is about the selected node */
	if (!parse_number_word(u, word, (long)s->n_nodes - 1, &n))
		return false;
	ui_select(u, s, (uint16_t)n);
	if (u->selection.node == n)
		return true;
	ui_say(u, STYLE_ALERT, "n%02ld is not known", n);
	return false;
}

static void set_field(struct dialog *d, uint32_t i, long v)
{
	if (i >= d->n_fields)
		return;
	if (v < d->fields[i].least)
		v = (long)d->fields[i].least;
	if (v > d->fields[i].most)
		v = (long)d->fields[i].most;
	d->fields[i].value = v;
}

/* Handles `inject KIND NODE [>PEER] [xFACTOR|PERCENT%] [TIME]`: opens its dialog with these
 * values. */
static void type_inject(struct ui *u, const struct state *s, char **word, int n)
{
	int kind = n > 1 ? fault_named(word[1]) : FAULT_NONE;

	if (kind <= FAULT_NONE) {
		ui_say(u, STYLE_ALERT, "inject what? %s", FAULT_NAMES);
		return;
	}
	if (!select_typed_node(u, s, n > 2 ? word[2] : NULL))
		return;
	u->dialog.fault = (enum fault_kind)kind;
	dialog_open(u, s, DIALOG_INJECT);
	for (int i = 3; i < n; i++) {
		struct dialog *d = &u->dialog;
		size_t length = strlen(word[i]);
		long v;

		for (uint32_t f = 0; f < d->n_fields; f++) {
			if (d->fields[f].unit == FIELD_TIMES && word[i][0] == 'x')
				set_field(d, f, atol(word[i] + 1));
			else if (d->fields[f].unit == FIELD_PERCENT &&
				 word[i][length - 1] == '%')
				set_field(d, f, atol(word[i]));
			else if (d->fields[f].unit == FIELD_NODE && f > 0 && word[i][0] == '>')
				set_field(d, f, atol(word[i] + 1 + (word[i][1] == 'n')));
			else if (d->fields[f].unit == FIELD_SECONDS &&
				 command_seconds(word[i], &v) == 0)
				set_field(d, f, v);
		}
	}
}

static void type_skip(struct ui *u, const struct state *s, const char *word)
{
	uint32_t share = 0, skip = 0;
	struct error err = { "" };
	long v = 0;

	if (word && strchr(word, '%')) {
		if (skip_share_parse(":skip", word, (uint32_t)state_most_skipped(s), &share, &skip,
				     &err) != 0) {
			ui_say(u, STYLE_ALERT, "%s", err.text);
			return;
		}
		v = skip;
	} else if (word && !parse_number_word(u, word, (long)state_most_skipped(s), &v)) {
		return;
	}
	dialog_open(u, s, DIALOG_SKIP);
	if (!word || u->dialog.kind != DIALOG_SKIP)
		return;
	set_field(&u->dialog, 1, share > 0 ? (long)share : 100);
	if (skip_share_pack(share, (uint32_t)v) != state_skip_ratio(s)) {
		u->dialog.fields[0].value = v > 0 ? v - 1 : 1;
		/* Steps to the typed value with a key, because the key requests the preview. */
		dialog_key(u, s, v > 0 ? '+' : '-');
	} else {
		set_field(&u->dialog, 0, v);
	}
}

static void type_format(struct ui *u, const struct state *s, enum dialog_kind kind,
			const char *word)
{
	enum tensor_format format = FORMAT_COUNT;
	long v = 0;

	if (word && tensor_format_parse(word, &format) == 0)
		while (v < DIALOG_FORMATS && dialog_format(kind, v) != format)
			v++;
	if (word && (format == FORMAT_COUNT || v == DIALOG_FORMATS)) {
		ui_say(u, STYLE_ALERT, "%s: expected %s", word,
		       kind == DIALOG_WIRE ? "fp32, bf16, q8 or q6" : "fp32, q8, q6 or q4");
		return;
	}
	dialog_open(u, s, kind);
	if (!word || u->dialog.kind != kind || u->dialog.fields[0].value == v)
		return;
	u->dialog.fields[0].value = v > 0 ? v - 1 : 1;
	/* Steps to the typed value with a key, because the key requests the preview. */
	dialog_key(u, s, v > 0 ? '+' : '-');
}

/* Handles `finish N`: opens the dialog with N iterations. `finish 0` withdraws an earlier
 * `finish`. */
static void type_finish(struct ui *u, const struct state *s, const char *word)
{
	struct msg_command back = { .verb = COMMAND_FINISH, .node = -1, .peer = -1 };
	long v = 0;

	if (word && !parse_number_word(u, word, DIALOG_FINISH_MOST, &v))
		return;
	if (word && v == 0)
		ui_send(u, s, back);
	else
		dialog_open_finish(u, s, v);
}

static void type_branch(struct ui *u, const struct state *s, const char *stages,
			const char *node)
{
	long skip, n = -1;

	if (!stages)
		ui_act(u, s, ACTION_BRANCH);
	else if (parse_number_word(u, stages, (long)state_most_skipped(s), &skip) &&
		 (!node || parse_number_word(u, node, (long)s->n_nodes - 1, &n)))
		branch_ask(u, s, (uint32_t)skip, (int32_t)n);
}

static void type_arm(struct ui *u, const struct state *s, const char *word)
{
	struct msg_command c = { .verb = COMMAND_ARM, .node = -1, .peer = -1, .value = 600 };
	long v;

	if (word && strcmp(word, "off") == 0) {
		c.value = 0;
	} else if (word) {
		if (command_seconds(word, &v) != 0 || v == 0) {
			ui_say(u, STYLE_ALERT,
			       "arm %s: expected a time such as 10m, or off", word);
			return;
		}
		c.value = v;
	}
	ui_send(u, s, c);
}

static void type_compare(struct ui *u, char **folders, int n)
{
	size_t at = 0;

	if (n > OTHER_RUNS) {
		ui_say(u, STYLE_ALERT, "compare: at most %d runs", OTHER_RUNS);
		return;
	}
	u->requests.compare.folders[0] = '\0';
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(u->requests.compare.folders + at,
				       sizeof(u->requests.compare.folders) - at, "%s ", folders[i]);
	u->requests.compare.is_requested = true;
	if (n > 0)
		ui_show(u, VIEW_LOSS);
}

static void type_view(struct ui *u, const char *word)
{
	static const char *const names[] = { "overview",     "nodes", "links",   "timeline",
					     "microbatches", "loss",  "compare", "journal",
					     "map" };

	for (int i = 0; word && i < 9; i++) {
		if (strcmp(word, names[i]) == 0 || (word[0] == '1' + i && !word[1])) {
			ui_show(u, (enum view)(VIEW_OVERVIEW + i));
			return;
		}
	}
	ui_say(u, STYLE_ALERT, "which view? 1 to 9, or its name");
}

static void type_one_number(struct ui *u, const struct state *s, enum command_verb verb,
			    const char *word)
{
	struct msg_command c = { .verb = (uint8_t)verb, .node = -1, .peer = -1 };
	long v;

	if (!parse_number_word(u, word, 1000000000, &v))
		return;
	c.value = v;
	ui_send(u, s, c);
}

static void type_follow(struct ui *u, const char *word)
{
	long v;

	if (word && strcmp(word, "off") == 0) {
		u->selection.following = false;
	} else if (parse_number_word(u, word, MSG_MICROBATCHES - 1, &v)) {
		u->selection.following = true;
		u->selection.microbatch = (uint32_t)v;
	}
}

static void type_find(struct ui *u, const struct state *s, char **word, int n)
{
	char *filter = u->selection.filter;
	size_t at = 0, room = sizeof(u->selection.filter);

	*filter = '\0';
	for (int i = 0; i < n && at < room; i++)
		at += (size_t)snprintf(filter + at, room - at, i > 0 ? " %s" : "%s", word[i]);
	if (*filter)
		ui_reselect(u, s);
}

static void type_stop(struct ui *u, const struct state *s)
{
	u->authority.owner = true;
	dialog_open(u, s, DIALOG_QUIT);
}

static void type_speed(struct ui *u, const struct state *s, const char *word)
{
	struct msg_command c = { .verb = COMMAND_SPEED, .node = -1, .peer = -1 };

	c.factor = word ? (float)atof(word) : 1;
	if (!s->run.replay)
		ui_say(u, STYLE_ALERT, "only a replay has a speed");
	else if (!(c.factor >= 0 && c.factor <= 10000))
		ui_say(u, STYLE_ALERT, "speed %s: expected a number from 0 to 10000", word);
	else
		ui_send(u, s, c);
}

/* Returns the verb of a typed command that needs no dialog; -1 for any other command. */
static int verb_of(int command)
{
	switch (command) {
	case TYPED_PAUSE:
		return COMMAND_PAUSE;
	case TYPED_RESUME:
		return COMMAND_RESUME;
	case TYPED_STAGES:
		return COMMAND_STAGES;
	default:
		return -1;
	}
}

/* Opens the dialog of a change of stages. If no layers were typed, the dialog has the stages that
 * the controller has proposed. */
static void type_cut(struct ui *u, const struct state *s, const char *layers)
{
	if (strlen(layers) >= sizeof(u->dialog.layers))
		ui_say(u, STYLE_ALERT, "cut: expected at most %zu characters",
		       sizeof(u->dialog.layers) - 1);
	else
		dialog_open_cut(u, s, layers);
}

/* Requests an export or another theme; the console carries out the request after it has handled the
 * key. one: name of the format or of the theme; NULL: none. */
static void request_named(struct ui *u, int command, const char *one)
{
	const char *name = one ? one : "";

	if (command == TYPED_EXPORT) {
		u->requests.export = true;
		snprintf(u->requests.export_name, sizeof(u->requests.export_name), "%.15s", name);
	} else {
		u->requests.theme = true;
		snprintf(u->requests.theme_name, sizeof(u->requests.theme_name), "%.60s", name);
	}
}

/* Performs a command that was typed with arguments. Returns false if there are no arguments; the
 * caller then performs the action of the command's key. */
static bool run_words(struct ui *u, const struct state *s, int command, char **word, int n)
{
	const char *one = n > 1 ? word[1] : NULL;
	int verb = verb_of(command);

	if (verb >= 0) {
		ui_send(u, s,
			(struct msg_command){ .verb = (uint8_t)verb, .node = -1, .peer = -1 });
		return true;
	}
	switch (command) {
	case TYPED_SKIP:
		type_skip(u, s, one);
		break;
	case TYPED_WIRE:
	case TYPED_SUM_WIRE:
		type_format(u, s, command == TYPED_WIRE ? DIALOG_WIRE : DIALOG_SUM_WIRE, one);
		break;
	case TYPED_CUT:
		type_cut(u, s, one ? one : "");
		break;
	case TYPED_FINISH:
		type_finish(u, s, one);
		break;
	case TYPED_FAIL:
	case TYPED_RECOVER:
		if (select_typed_node(u, s, one))
			dialog_open(u, s, command == TYPED_FAIL ? DIALOG_FAIL : DIALOG_RECOVER);
		break;
	case TYPED_INJECT:
		type_inject(u, s, word, n);
		break;
	case TYPED_HEAL:
	case TYPED_UNDO:
	case TYPED_HOURS:
		if (!one)
			return false;
		type_one_number(u, s,
				command == TYPED_HEAL	? COMMAND_HEAL
				: command == TYPED_UNDO ? COMMAND_UNDO
							: COMMAND_HOURS,
				one);
		break;
	case TYPED_ARM:
		type_arm(u, s, one);
		break;
	case TYPED_BRANCH:
		type_branch(u, s, one, n > 2 ? word[2] : NULL);
		break;
	case TYPED_FOLLOW:
		type_follow(u, one);
		break;
	case TYPED_NODE:
		select_typed_node(u, s, one);
		break;
	case TYPED_COMPARE:
		type_compare(u, word + 1, n - 1);
		break;
	case TYPED_VIEW:
		type_view(u, one);
		break;
	case TYPED_FIND:
		type_find(u, s, word + 1, n - 1);
		break;
	case TYPED_SPEED:
		type_speed(u, s, one);
		break;
	case TYPED_STOP:
		type_stop(u, s);
		break;
	case TYPED_EXPORT:
	case TYPED_THEME:
		request_named(u, command, one);
		break;
	default:
		return false;
	}
	return true;
}

void ui_command(struct ui *u, const struct state *s, const char *text)
{
	char copy[sizeof(u->prompt.text)], *word[WORDS], *save, *at;
	int n = 0, command;

	snprintf(copy, sizeof(copy), "%s", text);
	for (at = strtok_r(copy, " ", &save); at && n < WORDS; at = strtok_r(NULL, " ", &save))
		word[n++] = at;
	if (n == 0)
		return;
	command = command_named(word[0]);
	if (run_words(u, s, command, word, n))
		return;
	if (command >= 0 && command_at((size_t)command)->action != ACTION_NONE)
		ui_act(u, s, command_at((size_t)command)->action);
	else
		ui_say(u, STYLE_ALERT, "%s: there is no such command (: lists them)", word[0]);
}
