/* flow.h - measures the link to one peer from its acknowledgements, and limits the bytes under way
 * on it. Pure functions without a clock.
 *
 * Measurements. Round trips are smoothed as in RFC 6298. The least round trip of a sliding window
 * is kept, because it contains no waiting in queues. Each acknowledged chunk gives a sample of
 * the delivery rate. The sample is a number of bytes divided by a time. The bytes are those that
 * were acknowledged while the chunk was under way. The time is the longer of two times: the time
 * in which these bytes were sent, and the time in which they were acknowledged (Cheng, Cardwell,
 * Yeganeh, Jacobson: Delivery Rate Estimation, draft-cheng-iccrg). The greatest sample of the
 * last rounds is the estimate, as in BBR. A round lasts until a chunk sent at its beginning is
 * acknowledged. A sample taken while there was too little to send may raise the estimate but
 * never lower it.
 *
 * Bulk consists of the messages that can wait. The window limits how many bytes of bulk are under
 * way. At the start the window grows by half every round. The start ends when the delivery rate
 * has stopped growing and probes show a queue. Probes show a queue if their shortest round trip
 * in this round exceeds the least round trip. Afterwards the window is steered so that bytes wait
 * FLOW_QUEUE_US in the queue, as in LEDBAT (RFC 6817) but in larger steps. Each round corrects
 * half of the error. Urgent messages therefore find a link that is used fully and a queue that is
 * short. The window grows only while it holds messages back. From time to time, for one round,
 * the window is smaller than the delivery rate times the least round trip. In this round the
 * queue empties, and a probe can measure the least round trip again (BBR's ProbeRTT).
 *
 * Urgent messages need no window, but large urgent messages are sent one after the other. If two
 * large urgent messages shared the link, the first message would arrive as late as the second.
 *
 * On an unsteady link the round trip varies even while nothing is under way. Probes cannot show a
 * queue that is shorter than this variation. The window of such a link is 1.25 times the product
 * of delivery rate and round trip. The window follows the rate upwards, and the queue stays below
 * a quarter of the product. Until FLOW_IDLE_SAMPLES probes have measured the idle link, the link
 * counts as unsteady, and its window is twice the product.
 *
 * TCP, below this module, has its own congestion control and repairs losses. The window of this
 * module has a single purpose: TCP must not fill long queues. Acknowledged chunks cannot show the
 * link's queue, because TCP itself may have held them back. Therefore small probes, which do not
 * wait behind bulk, measure the queue.
 */
#ifndef WIRE_FLOW_H
#define WIRE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A smoothed round trip and its mean deviation (RFC 6298). All 0: nothing was measured. */
struct flow_round_trip {
	int64_t smoothed_us, deviation_us;
};
void flow_round_trip_add(struct flow_round_trip *r, int64_t took_us);
/* Returns the time after which an answer is overdue. The time is the smoothed round trip + 4
 * deviations + FLOW_BUSY_US. The last term allows for a busy peer. If nothing was measured, the
 * time is FLOW_FIRST_US. */
int64_t flow_overdue_us(const struct flow_round_trip *r);
#define FLOW_BUSY_US  INT64_C(100000)
#define FLOW_FIRST_US INT64_C(1000000)
#define FLOW_QUEUE_US INT64_C(15000)
/* Rate assumed while the rate is unknown. Slower links are useless for training. The rate is low so
 * that no chunk of a first large message counts as lost while TCP still sends the message. */
#define FLOW_SLOW_BYTES_PER_S 100000
#define FLOW_IDLE_SAMPLES 4

/* The greatest or least value in a sliding window, stored as one value for each half of the
 * window. */
struct flow_window {
	int64_t now, before; /* values of the present half and of the previous half; -1: none */
	/* Start of the present half, as a time or as the number of a round. */
	int64_t since;
};

enum flow_kind {
	/* TCP blocks a sender whose buffer is full, and the link has no queue to measure. The
	 * window is fixed. */
	FLOW_NEAR,
	FLOW_FAR, /* TCP blocks a sender whose buffer is full, and the link has queues */
	/* Frames that do not fit a buffer are dropped. Therefore the window limits all messages
	 * and shrinks with losses. */
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
	/* Round trips of probes that were sent while nothing was under way, as running averages.
	 * The first samples are averaged plainly. */
	struct flow_round_trip idle;
	unsigned idle_samples; /* number of samples in `idle`, counted up to 8 */
	/* Sliding windows of the least round trip, and of the greatest rate in bytes per second. */
	struct flow_window least_us, rate;
	/* Time at which a round trip near the least round trip was last seen. */
	int64_t least_seen_us;
	/* True: every sample of the rate so far was taken while there was too little to send. */
	bool limited;
	size_t sampled_bytes;  /* largest number of bytes in one sample of the rate */
	uint64_t delivered;    /* bytes acknowledged */
	int64_t delivered_us;  /* time at which bytes were last acknowledged */
	int64_t first_us;      /* time at which the most recently acknowledged chunk was sent */
	/* While `delivered` is at most limited_until, there is too little to send. A chunk that
	 * is sent in this time may give a sample of the rate that is too low. */
	uint64_t limited_until;
	size_t under_way;      /* bytes sent and not acknowledged */
	/* The window in bytes, and its state: */
	size_t window;
	enum flow_phase phase;
	bool had_bulk;         /* in this round, a message of bulk was ready to be sent */
	bool held_back;        /* in this round the window held a chunk back */
	bool had_loss;         /* in this round a chunk was lost */
	bool urgent_waits;     /* an urgent message waits until the link has room for it */
	/* Limit that replaces the window while DRAINING and REFILLING; 0 in the other phases. */
	size_t ramp;
	/* While STARTING: number of rounds in a row in which the rate did not grow. Later: number
	 * of rounds in a row in which there was no queue and the window held messages back. */
	unsigned free_rounds;
	uint64_t start_rate;   /* the rate that last counted as grown while STARTING */
	/* While STARTING: number of rounds in a row in which there was no queue, and the window
	 * held messages back and did not grow. */
	unsigned quiet_rounds;
	/* Value of `delivered` at which this round began. The round ends when a chunk that was
	 * sent since then is acknowledged. */
	uint64_t round_ends;
	int64_t rounds;
	int64_t round_least_us; /* shortest round trip of a probe in this round; -1: none */
};
/* Initialises f. Nothing is measured yet. */
void flow_init(struct flow *f);
/* Restarts the window for a session with another process. The measurements stay. */
void flow_start(struct flow *f, const struct flow_limits *limits);

/* The counters of a flow, as they were when a chunk was sent. flow_arrived compares them with the
 * counters at the time of the acknowledgement. */
struct flow_mark {
	int64_t left_us, delivered_us, first_us;
	uint64_t delivered;
	bool limited;
};
/* Returns true if this many bytes may be sent now. While an urgent message waits (flow_may_follow),
 * no other message may be sent. */
bool flow_may_leave(struct flow *f, size_t bytes, bool urgent);
/* Returns true if a message of this size occupies the link for more than two round trips. Returns
 * false while the rate is unknown. A rate that was measured while there was little to send is
 * only a lower bound, so it shows nothing about much larger messages. */
bool flow_fills(const struct flow *f, size_t bytes);
/* Returns true if an urgent message of this size may be sent although older urgent messages are
 * under way. Returns false if the message must wait. It must wait if it fills the link for two
 * round trips, and the bytes under way fill the link for one round trip. */
bool flow_may_follow(struct flow *f, size_t bytes);
/* Records that a chunk was sent, and fills its mark. */
void flow_left(struct flow *f, struct flow_mark *mark, size_t bytes, int64_t now_us);
/* Records that a chunk was acknowledged. again: true if the chunk was sent more than once, which
 * makes its round trip ambiguous. Returns the round trip, or -1 if it is ambiguous. */
int64_t flow_arrived(struct flow *f, const struct flow_mark *mark, size_t bytes, bool again,
	int64_t now_us);
/* Subtracts lost or dropped bytes from the bytes under way. */
void flow_gone(struct flow *f, size_t bytes);
/* A chunk that was declared lost has arrived: adds its bytes to the bytes under way again. */
void flow_back(struct flow *f, size_t bytes);
/* Records that a chunk was lost or is overdue. */
void flow_lost(struct flow *f);
/* Records that no data waits to be sent. Samples of the rate may therefore be too low. */
void flow_idle(struct flow *f);
/* Returns true if the window limits messages that can wait. The caller should then send
 * probes. */
bool flow_wants_probes(const struct flow *f);
/* Records a probe's round trip. */
void flow_sample(struct flow *f, int64_t took_us, int64_t now_us);

int64_t flow_least_us(const struct flow *f);     /* returns the least round trip; 0: unknown */
uint64_t flow_bytes_per_s(const struct flow *f); /* returns the delivery rate; 0: unknown */
/* Returns the time that the bytes under way need at the delivery rate; 0: unknown. While the rate
 * of a FLOW_FAR link is unknown, the rate counts as FLOW_SLOW_BYTES_PER_S. */
int64_t flow_drain_us(const struct flow *f);

#endif
