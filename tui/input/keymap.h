/* keymap.h - the console's actions and their keys. The help, the palette, the line of keys and the
 * manual page are made from one table.
 */
#ifndef TUI_KEYMAP_H
#define TUI_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tui/screen/decoder.h"

enum action {
	ACTION_NONE,
	ACTION_VIEW_OVERVIEW,
	ACTION_VIEW_NODES,
	ACTION_VIEW_LINKS,
	ACTION_VIEW_TIMELINE,
	ACTION_VIEW_MICROBATCHES,
	ACTION_VIEW_LOSS,
	ACTION_VIEW_COMPARE,
	ACTION_VIEW_JOURNAL,
	ACTION_VIEW_MAP,
	ACTION_NEXT,
	ACTION_PREVIOUS,
	ACTION_UP,
	ACTION_DOWN,
	ACTION_LEFT,
	ACTION_RIGHT,
	ACTION_PAGE_UP,
	ACTION_PAGE_DOWN,
	ACTION_FIRST,
	ACTION_LAST_ROW,
	ACTION_DRILL,
	ACTION_BACK,
	ACTION_SKIP,
	ACTION_FAIL,
	ACTION_RECOVER,
	ACTION_INJECT,
	ACTION_HEAL,
	ACTION_HEAL_ALL,
	ACTION_PAUSE,
	ACTION_STEP,
	ACTION_UNDO,
	ACTION_ACKNOWLEDGE,
	ACTION_FREEZE,
	ACTION_FOLLOW,
	ACTION_WHY,
	ACTION_ZOOM_IN,
	ACTION_ZOOM_OUT,
	ACTION_NEXT_COLLISION,
	ACTION_COLOUR,
	ACTION_AXIS,
	ACTION_MEASURE,
	ACTION_GROUP,
	/* The next five actions must keep this order, because act_time uses the differences of
	 * their numbers. */
	ACTION_SCRUB_BACK,
	ACTION_SCRUB_ON,
	ACTION_EVENT_BACK,
	ACTION_EVENT_ON,
	ACTION_LIVE,
	ACTION_BRANCH,
	ACTION_FILTER,
	ACTION_FIND_NEXT,
	ACTION_FIND_PREVIOUS,
	ACTION_PALETTE,
	ACTION_HELP,
	ACTION_THEME,
	ACTION_MOUSE,
	ACTION_EXPORT,
	ACTION_COPY,
	ACTION_QUIT,
	ACTIONS
};

enum keymap_group {
	GROUP_VIEWS,
	GROUP_MOVE,
	GROUP_ACT,
	GROUP_TIME,
	GROUP_FIND,
	GROUP_CONSOLE,
	GROUPS
};

struct keymap_entry {
	enum action action;
	enum keymap_group group;
	/* Name of the action in keys.json and in the palette, such as "heal-all". */
	const char *name;
	const char *keys;  /* default keys, separated by blanks, such as "X" or "j down" */
	/* Word next to the key in the line of keys; NULL: the action is not shown there. */
	const char *label;
	const char *help;  /* one line that describes the action */
};

/* Returns the table's row for an action; NULL if the table has none. */
const struct keymap_entry *keymap_find(enum action a);
const char *keymap_group_name(enum keymap_group g);

enum { KEYMAP_EACH = 4 };

/* Maps keys to actions: lists the keys of each action. */
struct keymap {
	uint32_t keys[ACTIONS][KEYMAP_EACH]; /* keys of each action; 0: no further key */
};

/* Initialises the map with the default keys. */
void keymap_default(struct keymap *out);
/* Returns the action of a key; ACTION_NONE if the key has none. */
enum action keymap_action(const struct keymap *map, uint32_t key);
/* Writes a key's name as the console shows it: "^P", "Spc", "F". */
void keymap_show(uint32_t key, char text[16]);
/* Writes the name of the action's first key; "" if the action has no key. */
void keymap_show_action(const struct keymap *map, enum action a, char text[16]);
/* Changes the map by a JSON text such as { "heal-all": "ctrl-x", "down": ["j", "down"] }. `name` is
 * for messages. On error the map is unchanged. */
int keymap_parse_json(struct keymap *map, const char *name, const char *json,
		      struct error *err);

#endif
