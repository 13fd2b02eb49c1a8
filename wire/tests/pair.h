/* pair.h - for tests: two posts in one process, and a loop that turns both. */
#ifndef WIRE_TESTS_PAIR_H
#define WIRE_TESTS_PAIR_H

#include "wire/post.h"

struct seen {
	post_peer_id peer;  /* of the last event or message */
	unsigned up, restarted, down, refused, data, lossy;
	uint64_t lost;
	enum link_reason reason;
};

struct end {
	struct keys_identity *id;
	struct keys_list *list;
	struct post *post;
	struct seen seen;
	/* called for every POST_DATA; may be NULL */
	void (*on_data)(struct end *end, struct post_message *m);
	void *context;
};

struct pair {
	struct end a, b;      /* a listens, b dials */
	char address[LINK_ADDRESS_SIZE];
	post_peer_id to_a;    /* b's number for a */
};

/* Zero options: the defaults. b is admitted at a as an agent named "b". */
void pair_open(struct pair *p, struct post_options a, struct post_options b);
/* The same, but as if a were on another machine: b takes it for one, by its address. */
void pair_open_far(struct pair *p, struct post_options a, struct post_options b);
void pair_close(struct pair *p);
void end_new(struct end *e, struct post_options options);
void end_free(struct end *e);
/* Ends the process as far as the other can tell, and starts it again. */
void pair_restart_a(struct pair *p, struct post_options a);
void pair_restart_b(struct pair *p, struct post_options b);

/* Turns both ends once, waiting up to a millisecond. */
void pair_turn(struct pair *p);
void end_turn(struct end *e);
/* Turns until the condition holds; fails the test after 20 s. */
#define PAIR_UNTIL(pair, condition)                                                  \
	do {                                                                         \
		int64_t give_up_ = clock_monotonic_us() + 20000000;                  \
		while (!(condition)) {                                               \
			pair_turn(pair);                                             \
			if (clock_monotonic_us() > give_up_)                         \
				fail_msg("never came: %s", #condition);              \
		}                                                                    \
	} while (0)

int send_text(struct post *post, post_peer_id peer, const char *text, enum post_flags flags);
struct post_counters counters_of(const struct post *post);

#endif
