/* flow.h - measures the link to one peer from its acknowledgements, and limits the bytes under way
 * on it. Pure functions without a clock.
 *
 * Measurements. Round trips are smoothed as in RFC 6298. The least round trip of a sliding window
 * is kept, because it contains no waiting in queues. Each acknowledged chunk gives a sample of the
 * delivery rate: the bytes acknowledged between its sending and its acknowledgement, divided by
 * that time or by the time that sending them took, whichever is longer (Cheng, Cardwell, Yeganeh,
 * Jacobson: Delivery Rate Estimation, draft-cheng-iccrg). The greatest sample of the last rounds is
 * the estimate, as in BBR. A round lasts until a chunk sent at its beginning is acknowledged. A
 * sample taken while there was too little to send may raise the estimate but never lower it.
 *
 * The window limits messages that can wait. At the start it grows by half every round, until the
 * delivery rate stops growing and the probes show a queue: their shortest round trip in a round
 * exceeds the least one. Afterwards the window is steered so that the queue is FLOW_QUEUE_US long,
 * as in LEDBAT (RFC 6817) but in larger steps: half of the error, once a round. Urgent messages
 * therefore find a link that is used fully and a queue that is short. The window grows only while
 * it holds messages back. From time to time it shrinks for one round below the delivery rate times
 * the least round trip, so that the queue empties and the least round trip is seen again (BBR's
 * ProbeRTT).
 *
 * Urgent messages need no window, but large ones leave one after the other. If two of them shared
 * the link, the first would arrive as late as the second.
 *
 * On some links the round trip varies even while nothing is under way, and probes cannot show a
 * queue as short as this variation. Every link is treated as such a link until FLOW_IDLE_SAMPLES
 * probes have found it idle. Its window is 1.25 times the product of delivery rate and round trip:
 * the window follows the rate upwards, and the queue stays below a quarter of the product. With
 * fewer probes the window is twice the product.
 *
 * Below this module TCP has its own congestion control and repairs losses. This window only keeps
 * TCP from filling long queues. Chunks that it holds back itself are not in the link's queue.
 * Therefore small probes, which do not wait behind bulk, measure that queue.
 */
#ifndef WIRE_FLOW_H
#define WIRE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A smoothed round trip and its deviation (RFC 6298). All 0: not known. */
struct flow_round_trip {
	int64_t smoothed_us, deviation_us;
};
void flow_round_trip_add(struct flow_round_trip *r, int64_t took_us);
/* Returns the time after which an answer is overdue: smoothed + 4 deviations + FLOW_BUSY_US for a
 * busy peer. FLOW_FIRST_US while nothing is known. */
int64_t flow_overdue_us(const struct flow_round_trip *r);
#define FLOW_BUSY_US  INT64_C(100000)
#define FLOW_FIRST_US INT64_C(1000000)
#define FLOW_QUEUE_US INT64_C(15000)
/* Rate assumed while the rate is unknown. It is below that of the slowest links on which training
 * is useful, so that no chunk of a first large message counts as lost while the message is still
 * being sent. */
#define FLOW_SLOW_BYTES_PER_S 100000
#define FLOW_IDLE_SAMPLES 4

/* The greatest or least value of a sliding window, kept in two halves. */
struct flow_window {
	int64_t now, before; /* values of this half and of the previous half; -1: none */
	int64_t since;       /* when this half began, as a time or as a round */
};

enum flow_kind {
	FLOW_NEAR, /* TCP pushes back, and the link has no queue to measure: the window is fixed */
	FLOW_FAR,  /* TCP pushes back, and the link has queues */
	/* The link drops what does not fit a buffer: the window limits all messages and shrinks
	 * with losses. */
	FLOW_DROPS
};
struct flow_limits {
	enum flow_kind kind;
	/* First, least and largest size of the window. */
	size_t first_bytes, least_bytes, most_bytes;
};

/* Phases of the window. Only FLOW_FAR links drain and refill.
 *
 *     phase      the window                            event                           next phase
 *     STARTING   grows quickly                         the link is full (or a loss)    STEADY
 *     STEADY     follows the queue or the losses       no round trip near the least
 *                                                      one was seen for 5 s            DRAINING
 *     DRAINING   `ramp`: less than the link carries    the round ends                  REFILLING
 *     REFILLING  `ramp`, grows with acknowledgements   ramp reaches the window         STEADY
 *
 * flow_start enters STARTING from any phase.
 */
enum flow_phase { FLOW_STARTING, FLOW_STEADY, FLOW_DRAINING, FLOW_REFILLING };

struct flow {
	struct flow_limits limits;
	struct flow_round_trip round_trip;
	/* Round trips of probes that were sent while nothing was under way: running averages,
	 * which begin as plain averages of the first samples. */
	struct flow_round_trip idle;
	unsigned idle_samples; /* number of probes in `idle` */
	/* Windows of the least round trip and of the greatest rate in bytes per second. */
	struct flow_window least_us, rate;
	int64_t least_seen_us; /* when a round trip close to the least one was last seen */
	/* Every sample of the rate so far was taken while there was too little to send. */
	bool limited;
	size_t sampled_bytes;  /* bytes of the largest sample of the rate */
	uint64_t delivered;    /* bytes acknowledged */
	int64_t delivered_us;  /* when the last of the delivered bytes were acknowledged */
	int64_t first_us;      /* when the chunk was sent that was acknowledged last */
	uint64_t limited_until; /* samples count as limited until this many bytes are delivered */
	size_t under_way;      /* bytes sent and not acknowledged */
	/* The window and its state: */
	size_t window;
	enum flow_phase phase;
	bool had_bulk;         /* in this round there were messages that can wait */
	bool held_back;        /* in this round the window held some of them back */
	bool had_loss;         /* in this round a chunk was lost */
	bool urgent_waits;     /* an urgent message waits until the link has room for it */
	size_t ramp;           /* limit of the window while DRAINING and REFILLING; otherwise 0 */
	unsigned free_rounds;  /* rounds in a row without a queue although the window held messages
				* back; while STARTING: rounds in a row in which the rate did not
				* grow */
	uint64_t start_rate;   /* the rate when it last grew while STARTING */
	unsigned quiet_rounds; /* while STARTING: rounds without a queue since the window grew */
	uint64_t round_ends;   /* the round ends when this number of bytes is delivered */
	int64_t rounds;
	int64_t round_least_us; /* shortest round trip of a probe in this round; -1: none */
};
/* Initialises f with nothing measured. */
void flow_init(struct flow *f);
/* Restarts the window for a session with another process. The measurements stay. */
void flow_start(struct flow *f, const struct flow_limits *limits);

/* The state of the measurement when a chunk was sent. */
struct flow_mark {
	int64_t left_us, delivered_us, first_us;
	uint64_t delivered;
	bool limited;
};
/* Returns true if this many bytes may be sent now. While an urgent message waits (flow_may_follow),
 * only urgent messages may be sent. */
bool flow_may_leave(struct flow *f, size_t bytes, bool urgent);
/* Returns true if a message of this size fills the link for two round trips. Returns false while
 * that is unknown: a rate that was measured while there was little to send is only a lower bound,
 * and says nothing about much larger messages. */
bool flow_fills(const struct flow *f, size_t bytes);
/* Returns true if an urgent message of this size may leave although older urgent messages are under
 * way. The message must wait if both are true: it fills the link for two round trips, and the older
 * messages still fill the link for one. */
bool flow_may_follow(struct flow *f, size_t bytes);
/* Records that a chunk was sent, and fills its mark. */
void flow_left(struct flow *f, struct flow_mark *mark, size_t bytes, int64_t now_us);
/* Records that a chunk was acknowledged. again: the chunk was sent more than once, so its round
 * trip is ambiguous. Returns the round trip, or -1. */
int64_t flow_arrived(struct flow *f, const struct flow_mark *mark, size_t bytes, bool again,
	int64_t now_us);
/* Subtracts lost or dropped bytes from the bytes under way. */
void flow_gone(struct flow *f, size_t bytes);
/* Adds bytes to the bytes under way again, because they were not lost after all. */
void flow_back(struct flow *f, size_t bytes);
/* Records that a chunk was lost or is overdue. */
void flow_lost(struct flow *f);
/* Records that no data waits to be sent, because samples of the rate may therefore be too low. */
void flow_idle(struct flow *f);
/* Returns true if the caller should send probes, because messages that can wait are limited by the
 * window. */
bool flow_wants_probes(const struct flow *f);
/* Records a probe's round trip. */
void flow_sample(struct flow *f, int64_t took_us, int64_t now_us);

int64_t flow_least_us(const struct flow *f);     /* returns the least round trip; 0: unknown */
uint64_t flow_bytes_per_s(const struct flow *f); /* returns the delivery rate; 0: unknown */
/* Returns the time that the bytes under way need at the delivery rate. If the rate is unknown, a
 * FLOW_FAR link counts as having FLOW_SLOW_BYTES_PER_S; 0: unknown. */
int64_t flow_drain_us(const struct flow *f);

#endif
