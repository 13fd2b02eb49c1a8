/* pair.h - for tests: two posts in one process, and a loop that drives both. */
#ifndef WIRE_TESTS_PAIR_H
#define WIRE_TESTS_PAIR_H

#include "wire/post.h"

struct seen {
	post_peer_id peer; /* the peer that the newest event or message came from */
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
	struct end a, b; /* a listens, b dials */
	char address[LINK_ADDRESS_SIZE];
	post_peer_id to_a; /* number of the peer a in b's post */
};

/* Opens a pair. End a admits end b as an agent named "b". Options that are zero get their default
 * values. */
void pair_open(struct pair *p, struct post_options a, struct post_options b);
/* Opens a pair. End b treats end a as a peer on another machine, because of the address of end
 * a. */
void pair_open_far(struct pair *p, struct post_options a, struct post_options b);
void pair_close(struct pair *p);
void end_new(struct end *e, struct post_options options);
void end_free(struct end *e);
/* Close one end and open it again, as if the end's process had died and was restarted. */
void pair_restart_a(struct pair *p, struct post_options a);
void pair_restart_b(struct pair *p, struct post_options b);

/* Runs the loop of both ends once. Waits for at most a millisecond. */
void pair_turn(struct pair *p);
void end_turn(struct end *e);
/* Runs the loops of both ends until `condition` is true. Fails the test after
 * TEST_PATIENCE_US. */
#define PAIR_UNTIL(pair, condition)                                                  \
	do {                                                                         \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US;                  \
		while (!(condition)) {                                               \
			pair_turn(pair);                                             \
			if (clock_monotonic_us() > give_up_)                         \
				fail_msg("never came: %s", #condition);              \
		}                                                                    \
	} while (0)

/* Fills a message with its number and with bytes that follow from the number, so that the receiver
 * can check it. */
void pair_fill_message(uint8_t *to, size_t size, uint64_t number);
/* A link_hook with a struct rng as context. The hook loses, repeats or delays one frame in five,
 * or flips a bit of the frame. */
int pair_mischief(void *context, uint8_t *frame, size_t size);
int send_text(struct post *post, post_peer_id peer, const char *text, enum post_flags flags);
struct post_counters counters_of(const struct post *post);

#endif
