/* cut_links.h - which links are cut, and what was complained of. */
#ifndef CONTROLLER_NETWORK_CUT_LINKS_H
#define CONTROLLER_NETWORK_CUT_LINKS_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct cut;
struct member;
struct msg_heartbeat;

void cuts_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h);
struct cut *cuts_find(const struct controller *c, uint16_t a, uint16_t b); /* of that link; NULL: it never was cut */
bool cuts_between(const struct controller *c, uint16_t a, uint16_t b); /* that link is not there */
/* Not cut off, or no more: it may take part again. */
bool cuts_healed(const struct controller *c, const struct member *m);

#endif
