/* The table of actions: name, keys, group and help of each. The default keys, the help, the
 * manual and docs/console.md are made from this table. A key has one action only: binding the key
 * to another action takes the key from the first action. */
#include "tui/input/keymap.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tui/json_line.h"
#include "tui/screen/screen.h"

static const struct keymap_entry entries[] = {
	{ ACTION_VIEW_OVERVIEW, GROUP_VIEWS, "view-overview", "1", NULL,
	  "Overview: the nodes' tasks, waiting microbatches, progress" },
	{ ACTION_VIEW_NODES, GROUP_VIEWS, "view-nodes", "2", NULL,
	  "Nodes: the task and memory of each, and the cost of losing it" },
	{ ACTION_VIEW_LINKS, GROUP_VIEWS, "view-links", "3", NULL,
	  "Links: measured against planned transfer times, the worst first" },
	{ ACTION_VIEW_TIMELINE, GROUP_VIEWS, "view-timeline", "4", NULL,
	  "Timeline: past tasks left of now, planned tasks right of it" },
	{ ACTION_VIEW_MICROBATCHES, GROUP_VIEWS, "view-microbatches", "5", NULL,
	  "Microbatches: the tasks, waits and travels of each over time" },
	{ ACTION_VIEW_LOSS, GROUP_VIEWS, "view-loss", "6", NULL,
	  "Loss: training and validation loss, iteration times, and events" },
	{ ACTION_VIEW_COMPARE, GROUP_VIEWS, "view-compare", "7", NULL,
	  "Compare: the plan in force, other skip ratios, a plain pipeline" },
	{ ACTION_VIEW_JOURNAL, GROUP_VIEWS, "view-journal", "8", NULL,
	  "Journal: commands, alerts and events, newest first" },
	{ ACTION_VIEW_MAP, GROUP_VIEWS, "view-map", "9", NULL,
	  "Map: nodes by network distance, microbatches on their links" },
	{ ACTION_NEXT, GROUP_MOVE, "next", "tab", NULL, "select the next node" },
	{ ACTION_PREVIOUS, GROUP_MOVE, "previous", "backtab", NULL,
	  "select the previous node" },
	{ ACTION_UP, GROUP_MOVE, "up", "k up", NULL, "up" },
	{ ACTION_DOWN, GROUP_MOVE, "down", "j down", NULL, "down" },
	{ ACTION_LEFT, GROUP_MOVE, "left", "h left", NULL, "left: the previous stage" },
	{ ACTION_RIGHT, GROUP_MOVE, "right", "l right", NULL, "right: the next stage" },
	{ ACTION_PAGE_UP, GROUP_MOVE, "page-up", "pageup", NULL, "a page up" },
	{ ACTION_PAGE_DOWN, GROUP_MOVE, "page-down", "pagedown", NULL, "a page down" },
	{ ACTION_FIRST, GROUP_MOVE, "first", "home g", NULL, "to the start" },
	{ ACTION_LAST_ROW, GROUP_MOVE, "last", "end G", NULL, "to the end" },
	{ ACTION_DRILL, GROUP_MOVE, "drill-in", "enter", NULL,
	  "show details of the selection" },
	{ ACTION_BACK, GROUP_MOVE, "back", "escape", NULL,
	  "back; closes an open dialog or help" },
	{ ACTION_SKIP, GROUP_ACT, "skip", "s", "skip",
	  "change the skip ratio and its share, with a preview" },
	{ ACTION_FAIL, GROUP_ACT, "fail", "F", "fail",
	  "mark the selected node failed: the plan avoids it" },
	{ ACTION_RECOVER, GROUP_ACT, "recover", "R", "recover", "use the selected node again" },
	{ ACTION_INJECT, GROUP_ACT, "inject", "I", "inject",
	  "inject a failure at the selected node, from a list" },
	{ ACTION_HEAL, GROUP_ACT, "heal", "H", "heal", "heal one injected failure" },
	{ ACTION_HEAL_ALL, GROUP_ACT, "heal-all", "X", "HEAL ALL",
	  "heal every injected failure at once, without a dialog" },
	{ ACTION_PAUSE, GROUP_ACT, "pause", "P", "pause",
	  "pause the training after this iteration; again: continue" },
	{ ACTION_STEP, GROUP_ACT, "step", ".", "step", "while paused: run one iteration" },
	{ ACTION_UNDO, GROUP_ACT, "undo", "u", "undo",
	  "undo the last command or journal entry, with a preview" },
	{ ACTION_ACKNOWLEDGE, GROUP_ACT, "acknowledge", "a", "ack",
	  "acknowledge all alerts, or the selected journal entry" },
	{ ACTION_FREEZE, GROUP_TIME, "freeze", "space", "freeze",
	  "freeze the screen; the training continues" },
	{ ACTION_FOLLOW, GROUP_TIME, "follow", "f", "follow",
	  "follow the microbatch at the selected node; again: stop" },
	{ ACTION_WHY, GROUP_TIME, "why", "w", NULL,
	  "why the followed microbatch waits, and the best alternative" },
	{ ACTION_ZOOM_IN, GROUP_TIME, "zoom-in", "+ =", NULL, "timeline and loss: zoom in" },
	{ ACTION_ZOOM_OUT, GROUP_TIME, "zoom-out", "-", NULL, "timeline and loss: zoom out" },
	{ ACTION_NEXT_COLLISION, GROUP_TIME, "next-collision", "c", NULL,
	  "select the next node at which a microbatch waits" },
	{ ACTION_COLOUR, GROUP_TIME, "colour", "C", "colour",
	  "colour by microbatch, by data node, or by kind of task" },
	{ ACTION_AXIS, GROUP_TIME, "axis", "T", "axis",
	  "loss: the axis in iterations, tokens or time" },
	{ ACTION_MEASURE, GROUP_TIME, "measure", "v", "measure",
	  "links: transfer time against the plan, latency or bandwidth" },
	{ ACTION_GROUP, GROUP_TIME, "group", "V", "group",
	  "links: the map by node, by region or by stage" },
	{ ACTION_SCRUB_BACK, GROUP_TIME, "scrub-back", "[", NULL, "move the time cursor back" },
	{ ACTION_SCRUB_ON, GROUP_TIME, "scrub-on", "]", NULL, "move the time cursor forward" },
	{ ACTION_EVENT_BACK, GROUP_TIME, "event-back", "{", NULL,
	  "move the time cursor to the previous event" },
	{ ACTION_EVENT_ON, GROUP_TIME, "event-on", "}", NULL,
	  "move the time cursor to the next event" },
	{ ACTION_LIVE, GROUP_TIME, "live", "L", NULL, "return to now" },
	{ ACTION_BRANCH, GROUP_TIME, "branch", "B", "what if",
	  "what if: other skips, or without a node; again: back" },
	{ ACTION_FILTER, GROUP_FIND, "filter", "/", "find",
	  "list matches only: n12, S3, a place, slow; journal: n12 warning" },
	{ ACTION_FIND_NEXT, GROUP_FIND, "find-next", "n", NULL, "the next match" },
	{ ACTION_FIND_PREVIOUS, GROUP_FIND, "find-previous", "N", NULL, "the previous match" },
	{ ACTION_PALETTE, GROUP_FIND, "palette", ": ctrl-p", "cmd",
	  "type a command; the list shows each command's key" },
	{ ACTION_HELP, GROUP_CONSOLE, "help", "?", "help", "this help" },
	{ ACTION_THEME, GROUP_CONSOLE, "theme", "t", NULL, "the next theme" },
	{ ACTION_MOUSE, GROUP_CONSOLE, "mouse", "m", NULL,
	  "turn the mouse on or off (off: the terminal selects text)" },
	{ ACTION_EXPORT, GROUP_CONSOLE, "export", "e", NULL, "save this view as text" },
	{ ACTION_COPY, GROUP_CONSOLE, "copy", "y", NULL,
	  "copy this view, or the selected journal entry" },
	{ ACTION_QUIT, GROUP_CONSOLE, "quit", "q", "quit", "leave the console" },
};

enum { N_ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static const struct {
	const char *name, *shown;
	uint32_t key;
} named[] = {
	{ "tab", "Tab", PRESS_TAB },
	{ "enter", "Enter", PRESS_ENTER },
	{ "escape", "Esc", PRESS_ESCAPE },
	{ "space", "Spc", ' ' },
	{ "backspace", "Bksp", PRESS_DELETE_BACK },
	{ "up", "Up", PRESS_ARROW_UP },
	{ "down", "Down", PRESS_ARROW_DOWN },
	{ "left", "Left", PRESS_ARROW_LEFT },
	{ "right", "Right", PRESS_ARROW_RIGHT },
	{ "pageup", "PgUp", PRESS_PAGE_UP },
	{ "pagedown", "PgDn", PRESS_PAGE_DOWN },
	{ "home", "Home", PRESS_TO_START },
	{ "end", "End", PRESS_TO_END },
	{ "backtab", "S-Tab", PRESS_BACK_TAB },
};

enum { N_NAMED = sizeof(named) / sizeof(named[0]) };

const struct keymap_entry *keymap_find(enum action a)
{
	for (int i = 0; i < N_ENTRIES; i++)
		if (entries[i].action == a)
			return &entries[i];
	return NULL;
}

const char *keymap_group_name(enum keymap_group g)
{
	static const char *const names[GROUPS] = { "Views", "Move", "Act on the run",
						   "Time",  "Find", "Console" };

	return g < GROUPS ? names[g] : "?";
}

/* The console itself handles Ctrl with c, l and z, so no action can have these keys. Nor can an
 * action have a character that the console does not show in one column: utf8_next replaces it by
 * '?'. */
static int parse_key(const char *text, uint32_t *out)
{
	const char *at = text;

	for (int i = 0; i < N_NAMED; i++) {
		if (strcmp(text, named[i].name) == 0) {
			*out = named[i].key;
			return 0;
		}
	}
	if (strncmp(text, "ctrl-", 5) == 0 && text[5] >= 'a' && text[5] <= 'z' && !text[6]) {
		*out = (uint32_t)(text[5] - 'a' + 1);
		return strchr("clz", text[5]) ? -EINVAL : 0;
	}
	*out = utf8_next(&at);
	if (*out == '?' && text[0] != '?')
		return -EINVAL;
	return *out > ' ' && *out != 0x7f && !*at ? 0 : -EINVAL;
}

void keymap_show(uint32_t key, char text[16])
{
	for (int i = 0; i < N_NAMED; i++) {
		if (named[i].key == key) {
			snprintf(text, 16, "%s", named[i].shown);
			return;
		}
	}
	if (key < 27)
		snprintf(text, 16, "^%c", (int)key + '@');
	else
		text[utf8_put(text, key < PRESS_ARROW_UP ? key : '?')] = '\0';
}

void keymap_show_action(const struct keymap *map, enum action a, char text[16])
{
	text[0] = '\0';
	if (map->keys[a][0])
		keymap_show(map->keys[a][0], text);
}

/* Binds the action to these keys and no others. Takes the keys from other actions. */
static void bind(struct keymap *map, enum action a, const uint32_t *keys, int n)
{
	for (int i = 0; i < n; i++) {
		for (int o = 0; o < ACTIONS; o++) {
			uint32_t *had = map->keys[o];
			int to = 0;

			for (int k = 0; k < KEYMAP_EACH; k++)
				if (had[k] && had[k] != keys[i])
					had[to++] = had[k];
			while (to < KEYMAP_EACH)
				had[to++] = 0;
		}
	}
	for (int i = 0; i < KEYMAP_EACH; i++)
		map->keys[a][i] = i < n ? keys[i] : 0;
}

void keymap_default(struct keymap *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < N_ENTRIES; i++) {
		char text[64], *save, *word;
		uint32_t keys[KEYMAP_EACH];
		int n = 0;

		snprintf(text, sizeof(text), "%s", entries[i].keys);
		for (word = strtok_r(text, " ", &save); word && n < KEYMAP_EACH;
		     word = strtok_r(NULL, " ", &save))
			if (parse_key(word, &keys[n]) == 0)
				n++;
		bind(out, entries[i].action, keys, n);
	}
}

enum action keymap_action(const struct keymap *map, uint32_t key)
{
	for (int a = 1; a < ACTIONS; a++)
		for (int k = 0; k < KEYMAP_EACH; k++)
			if (map->keys[a][k] && map->keys[a][k] == key)
				return (enum action)a;
	return ACTION_NONE;
}

static int bind_json(struct keymap *map, const char *name, const char *json, const char *key,
		     const json_t *v, struct error *err)
{
	uint32_t keys[KEYMAP_EACH];
	size_t n = json_is_array(v) ? json_array_size(v) : 1;
	enum action a = ACTION_NONE;

	for (int i = 0; i < N_ENTRIES; i++)
		if (strcmp(entries[i].name, key) == 0)
			a = entries[i].action;
	if (a == ACTION_NONE)
		return error_set(err, -EINVAL, "%s:%d: %s: there is no such action", name,
				 json_line(json, key), key);
	if (n > KEYMAP_EACH)
		return error_set(err, -EINVAL, "%s:%d: %s: at most %d keys", name,
				 json_line(json, key), key, KEYMAP_EACH);
	for (size_t i = 0; i < n; i++) {
		const char *text =
			json_string_value(json_is_array(v) ? json_array_get(v, i) : v);

		if (!text || parse_key(text, &keys[i]) != 0)
			return error_set(err, -EINVAL,
					 "%s:%d: %s: expected a key such as \"x\", "
					 "\"ctrl-x\" (not c, l, z), \"space\", \"pageup\", "
					 "or a list of them",
					 name, json_line(json, key), key);
	}
	bind(map, a, keys, (int)n);
	return 0;
}

int keymap_parse_json(struct keymap *map, const char *name, const char *json, struct error *err)
{
	struct keymap changed = *map;
	json_error_t where;
	json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &where), *v;
	const char *key;
	int rc = 0;

	if (!root)
		return error_set(err, -EINVAL, "%s:%d: %s", name, where.line, where.text);
	if (!json_is_object(root))
		rc = error_set(err, -EINVAL,
			       "%s: an object was expected: { \"action\": \"key\" }", name);
	else
		json_object_foreach(root, key, v) if (rc == 0) rc =
			bind_json(&changed, name, json, key, v, err);
	json_decref(root);
	if (rc == 0)
		*map = changed;
	return rc;
}
