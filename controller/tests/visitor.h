/* visitor.h - for tests: a whole controller in a process of its own, and visitors that connect
 * to it.
 *
 * Every function fails the running cmocka test if an error occurs or if it waits longer than
 * TEST_PATIENCE_US. */
#ifndef CONTROLLER_TESTS_VISITOR_H
#define CONTROLLER_TESTS_VISITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

struct door {
	char folder[64], admitted[96], key[96];
	struct keys_identity *controller;
	struct keys_list *list;
	char address[LINK_ADDRESS_SIZE];
	pid_t pid;
};

/* Starts the controller. options: further options of the program, ended by NULL; this function adds
 * --run-dir and keys. */
struct door *door_new(const char *const *options);
int door_free(struct door *d); /* Ends the controller. */
/* Kills the controller and starts another controller, which resumes the run at the same address.
 * options: as for door_new. */
void door_restart(struct door *d, const char *const *options);
bool door_alive(const struct door *d);

struct visitor {
	struct keys_identity *id;
	bool borrows_id;
	struct post *post;
	post_peer_id to;
	bool up, synced, refused;
	/* number of times that the visitor has connected to a restarted controller */
	uint32_t restarts;
	enum link_reason reason;
	uint64_t answered;
	int32_t status;
	char journal[1 << 16]; /* the text of all journal lines received so far */
	uint64_t committed;    /* number of commits that the controller has reported to consoles */
	/* Called with every message; NULL: nothing is called */
	void (*hear)(void *context, const struct msg *m);
	void *context;
};

/* Makes a visitor. role 0: its key is not admitted. */
void visitor_new(struct visitor *v, struct door *d, enum keys_role role, const char *name);
/* Makes a visitor that acts as a second process with the key of v. */
void visitor_clone(struct visitor *clone, const struct visitor *v, struct door *d);
void visitor_free(struct visitor *v);
void visitor_turn(struct visitor *v);
/* Connects until the controller admits the visitor. other: another visitor that takes turns
 * meanwhile, or NULL. */
void visitor_come_in(struct visitor *v, struct visitor *other);
void visitor_send(struct visitor *v, const struct msg *m, enum post_flags flags);
void visitor_attach(struct visitor *v); /* Attaches as a console. */
/* Sends the command. Returns the status in the controller's reply. */
int32_t visitor_command(struct visitor *v, enum command_verb verb, int64_t value);

/* Makes v (and w, unless w is NULL) take turns until the condition holds. */
#define UNTIL(v, w, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US; \
		struct visitor *w_ = (w); \
		while (!(condition)) { \
			visitor_turn(v); \
			if (w_) \
				visitor_turn(w_); \
			if (clock_monotonic_us() > give_up_) \
				fail_msg("never came: %s", #condition); \
		} \
	} while (0)

#endif
