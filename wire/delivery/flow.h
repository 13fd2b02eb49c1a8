/* flow.h - what the way to one peer carries, as measured by what is acknowledged, and how much may
 * be under way on it. Pure: no clock.
 *
 * Round trips are smoothed as in RFC 6298, and the least one of a sliding window is kept: it has no
 * queue in it. The delivery rate of something that left is what was acknowledged between its
 * leaving and its own acknowledgement, over the longer of that time and the time it took to leave
 * (Cheng, Cardwell, Yeganeh, Jacobson: Delivery Rate Estimation, draft-cheng-iccrg); the greatest
 * of the last rounds is the estimate, as in BBR. A round is the time until something that left at
 * its beginning is acknowledged. Samples taken while there was nothing more to send can only raise
 * the estimate: the link carries at least that.
 *
 * The window is for what can wait. It grows by half every round until no more is carried for it and
 * the shortest round trip of a round's probes exceeds the least one: the link is full and a queue begins. From
 * then on it is led to where that queue is FLOW_QUEUE_US long, as in LEDBAT (RFC 6817), but in steps
 * that follow the rate and the round trip: half of what is amiss, once a round. So what is urgent finds
 * a link that is used up and a queue that is short. Now and then it is less for a round than what is
 * carried in a round trip, to see the least round trip again (BBR's ProbeRTT). It only grows while it is what holds back.
 * On a way whose round trip varies by itself, as seen while nothing is under way, a queue of that length
 * cannot be seen. There the window follows what is carried instead: a quarter more than the rate times the
 * round trip, so that it grows where more is carried, and no queue is longer than that quarter.
 * Below us is TCP with congestion control of its own; the window keeps it from filling queues, and losses
 * are TCP's to answer. What it
 * holds back itself is no queue on the way, so it is probes that tell of that: small, and not behind bulk.
 */
#ifndef WIRE_FLOW_H
#define WIRE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A round trip after RFC 6298. All 0: not known. */
struct flow_round_trip {
	int64_t smoothed_us, deviation_us;
};
void flow_round_trip_add(struct flow_round_trip *r, int64_t took_us);
/* When an answer is overdue: smoothed + 4 deviations, and FLOW_BUSY_US for an end that is busy;
 * FLOW_FIRST_US while nothing is known. */
int64_t flow_overdue_us(const struct flow_round_trip *r);
#define FLOW_BUSY_US  INT64_C(100000)
#define FLOW_FIRST_US INT64_C(1000000)
#define FLOW_QUEUE_US INT64_C(15000)

/* Greatest or least of a sliding window, in two halves. */
struct flow_window {
	int64_t now, before; /* of this half and the last; -1 none */
	int64_t since;       /* this half began: a time, or a round */
};

/* What a way is like below us. */
enum flow_kind {
	FLOW_NEAR,  /* pushes back, without a queue worth a word: the window is what it is */
	FLOW_FAR,   /* pushes back, and has queues on its way */
	FLOW_DROPS  /* drops what does not fit its buffer: the window is for everything, and shrinks
	             * with losses */
};
struct flow_limits {
	enum flow_kind kind;
	size_t first_bytes, least_bytes, most_bytes; /* of the window */
};

struct flow {
	struct flow_limits limits;
	struct flow_round_trip round_trip;
	struct flow_round_trip idle; /* of probes while nothing was under way */
	struct flow_window least_us, rate; /* rate: bytes per second */
	int64_t least_seen_us; /* a round trip was not far from the least */
	bool limited;          /* nothing but samples with too little to send so far */
	uint64_t delivered;    /* bytes acknowledged, */
	int64_t delivered_us;  /* the last of them then, */
	int64_t first_us;      /* and it had left then */
	uint64_t limited_until; /* up to this many: there was nothing more to send */
	size_t under_way;      /* bytes that left and are not acknowledged */
	/* the window */
	size_t window;
	bool starting;         /* doubles */
	bool asked;            /* there was something that can wait in this round, */
	bool held;             /* and some of it was held back by the window */
	bool lost;             /* something was lost in this round */
	bool drains;           /* kept below what is carried, for this round; */
	size_t ramp;           /* then it grows back with what is acknowledged; 0: it has */
	unsigned free_rounds;  /* that there was no queue, though something was held back; at the start,
	                        * that the rate did not grow */
	uint64_t start_rate;   /* when it grew last */
	unsigned quiet_rounds; /* without a queue since the window grew, at the start */
	uint64_t round_ends;   /* with so much delivered */
	int64_t rounds, round_least_us; /* least of this one's probes; -1 none */
};
/* Nothing measured yet. */
void flow_init(struct flow *f);
/* For a session with another process: begins the window anew. What was measured stays. */
void flow_start(struct flow *f, const struct flow_limits *limits);

/* What is remembered of something that left. */
struct flow_mark {
	int64_t left_us, delivered_us, first_us;
	uint64_t delivered;
	bool limited;
};
/* Whether so much may leave now. */
bool flow_may_leave(struct flow *f, size_t bytes, bool urgent);
void flow_left(struct flow *f, struct flow_mark *mark, size_t bytes, int64_t now_us);
/* A frame was acknowledged. again: it left more than once, so nobody knows which of them it was. Gives
 * the round trip, or -1. */
int64_t flow_arrived(struct flow *f, const struct flow_mark *mark, size_t bytes, bool again,
	int64_t now_us);
/* flow_gone: the bytes are not under way any more, but lost or dropped. flow_back: they were not lost after all. */
void flow_gone(struct flow *f, size_t bytes);
void flow_back(struct flow *f, size_t bytes);
/* Something was lost, or is overdue. */
void flow_lost(struct flow *f);
/* Everything was handed over: what comes back until then says less than the link carries. */
void flow_idle(struct flow *f);
/* Whether probes are to be sent: there is bulk to be led. */
bool flow_wants_probes(const struct flow *f);
/* A probe's round trip. */
void flow_sample(struct flow *f, int64_t took_us, int64_t now_us);

int64_t flow_least_us(const struct flow *f);         /* 0: not known */
uint64_t flow_bytes_per_s(const struct flow *f);     /* 0: not known */
/* How long what is under way takes at that rate; 0 not known. */
int64_t flow_drain_us(const struct flow *f);

#endif
