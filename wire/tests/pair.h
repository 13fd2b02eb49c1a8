/* pair.h - for tests: two posts in one process, and a loop that drives both. */
#ifndef WIRE_TESTS_PAIR_H
#define WIRE_TESTS_PAIR_H

#include "wire/post.h"

struct seen {
	post_peer_id peer;  /* the peer that the last event or message was from */
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
	struct end a, b;      /* end a listens, end b dials */
	char address[LINK_ADDRESS_SIZE];
	post_peer_id to_a;    /* b's number for the peer a */
};

/* Opens a pair. Options that are zero have their defaults. a admits b as an agent named "b". */
void pair_open(struct pair *p, struct post_options a, struct post_options b);
/* Opens a pair in which b takes a for another machine, because of its address. */
void pair_open_far(struct pair *p, struct post_options a, struct post_options b);
void pair_close(struct pair *p);
void end_new(struct end *e, struct post_options options);
void end_free(struct end *e);
/* Ends one end as if its process had died, and starts it again. */
void pair_restart_a(struct pair *p, struct post_options a);
void pair_restart_b(struct pair *p, struct post_options b);

/* Runs the loop of both ends once, and waits up to a millisecond. */
void pair_turn(struct pair *p);
void end_turn(struct end *e);
/* Runs both loops until the condition holds; fails the test after 20 s. */
#define PAIR_UNTIL(pair, condition)                                                  \
	do {                                                                         \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US;                  \
		while (!(condition)) {                                               \
			pair_turn(pair);                                             \
			if (clock_monotonic_us() > give_up_)                         \
				fail_msg("never came: %s", #condition);              \
		}                                                                    \
	} while (0)

/* Fills a message that can be checked: its number, then bytes that are computed from the number. */
void pair_fill_message(uint8_t *to, size_t size, uint64_t number);
/* A link_hook whose context is a struct rng. Loses, doubles, delays or flips a bit of one frame in
 * five. */
int pair_mischief(void *context, uint8_t *frame, size_t size);
int send_text(struct post *post, post_peer_id peer, const char *text, enum post_flags flags);
struct post_counters counters_of(const struct post *post);

#endif
