/* dispersion.h - computes a link's bandwidth from the times between the packets of a train. Pure
 * functions.
 *
 * Two packets that are sent back to back arrive with a gap. The gap is the time that the slowest
 * part of the link needs for one packet. A train shows the bandwidth in a tenth of a second. A
 * TCP connection needs many round trips to reach the bandwidth (Dovrolis, Ramanathan, Moore:
 * Packet-Dispersion Techniques and a Capacity-Estimation Methodology, 2004). This module differs
 * from that publication in two ways. First, this module slides a window of a quarter of the
 * packets over the train and takes the median time. A pause of the sender, or a queue behind a
 * late packet, therefore changes the result little. Second, more trains are sent until the rates
 * of two trains agree.
 */
#ifndef WIRE_DISPERSION_H
#define WIRE_DISPERSION_H

#include <stdbool.h>
#include <stdint.h>

/* Minimum number of packets with which a train gives a result. A router drops the end of a train
 * that is longer than the router's queue. The queue of a slow link may hold few packets. For
 * example, nine packets fill a queue of 100 ms at 1 Mbit/s.
 *
 * A train of fewer than DISPERSION_FEW packets counts only if it took at least
 * DISPERSION_LONG_NS, which is the case on a link below 5 MB/s. A rate limiter lets a short burst
 * of packets pass at full speed, and a faster train may be such a burst. */
#define DISPERSION_LEAST 4
#define DISPERSION_FEW 16
#define DISPERSION_LONG_NS 4000000

/* Returns the rate in bytes per second of n packets of packet_bytes each; 0: too few packets.
 * at_ns: the ascending arrival times of the packets that were not lost. */
double dispersion_rate(const int64_t *at_ns, uint32_t n, uint32_t packet_bytes);

/* Combines the rates of n trains, given in the order in which the trains were sent. If the last
 * two rates agree, sets *settled and returns their mean. Otherwise returns the median of all
 * rates. Returns 0 if n is 0. */
double dispersion_settle(const double *rates, uint32_t n, bool *settled);

#endif
