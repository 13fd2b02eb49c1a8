/* dispersion.h - computes a link's bandwidth from the times between the packets of a train. Pure
 * functions.
 *
 * Packets sent back to back arrive separated by the time that the slowest part of the link needs
 * for one packet. A train shows the bandwidth in a tenth of a second; a TCP connection needs many
 * round trips to reach it (Dovrolis, Ramanathan, Moore: Packet-Dispersion Techniques and a
 * Capacity-Estimation Methodology, 2004). This module differs in two ways. The result of a train is
 * the median over windows of a quarter of the train, so that a pause of the sender, or a queue
 * behind a late packet, changes the result little. Trains are sent until two of them agree.
 */
#ifndef WIRE_DISPERSION_H
#define WIRE_DISPERSION_H

#include <stdbool.h>
#include <stdint.h>

/* A train with fewer packets gives no result. A queue that is shorter than the train drops the
 * train's end, and the queue of a slow link may hold few packets: nine fill a queue of 100 ms at 1
 * Mbit/s. A train of fewer than DISPERSION_FEW packets counts only if it took DISPERSION_LONG_NS,
 * as on a link below 5 MB/s. A few packets that arrive in less time may be the burst that a rate
 * limiter lets pass at full speed. */
#define DISPERSION_LEAST 4
#define DISPERSION_FEW 16
#define DISPERSION_LONG_NS 4000000

/* Returns bytes per second for packets of this size that arrived at these times, ascending. Times
 * of lost packets are left out. 0: too few packets. */
double dispersion_rate(const int64_t *at_ns, uint32_t n, uint32_t packet_bytes);

/* Combines the rates of n trains. If the last two rates agree, it sets *settled and returns their
 * mean. Otherwise it returns the median of all rates. 0 if n is 0. */
double dispersion_settle(const double *rates, uint32_t n, bool *settled);

#endif
