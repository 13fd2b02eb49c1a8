/* dispersion.h - how fast a way is, from how far apart the packets of a train arrive on it.
 *
 * Packets that leave back to back arrive as far apart as the slowest part of the way needs for each:
 * a train shows in a tenth of a second what a connection needs many round trips to rise to (Dovrolis,
 * Ramanathan, Moore: Packet-Dispersion Techniques and a Capacity-Estimation Methodology, 2004).
 * Ours differs: of one train the median over windows of a quarter of it counts, so that neither a
 * pause of the sender nor packets that waited for a late one before them make much of a difference, and
 * trains are sent until two say the same. Pure: no clock, no sockets.
 */
#ifndef WIRE_DISPERSION_H
#define WIRE_DISPERSION_H

#include <stdbool.h>
#include <stdint.h>

/* Fewer packets of a train say nothing. */
#define DISPERSION_LEAST 32

/* Bytes per second of packets of that size that arrived at these times, in the order of their arrival;
 * those that were lost are not among them. 0: too few. */
double dispersion_rate(const int64_t *at_ns, uint32_t n, uint32_t packet_bytes);

/* What several trains say together: the rates of two that came one after the other are alike, then
 * it is settled and what they say counts; else the median. 0: n is 0. */
double dispersion_settle(const double *rates, uint32_t n, bool *settled);

#endif
