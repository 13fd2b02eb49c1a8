/* seen_links.h - what consoles are shown of each link: as its sender last told, or as it was measured. */
#ifndef CONTROLLER_NETWORK_SEEN_LINKS_H
#define CONTROLLER_NETWORK_SEEN_LINKS_H

#include <stdint.h>

struct controller;
struct member;
struct seen_link;

/* Of a link from m; NULL: out of memory. */
struct seen_link *seen_link(struct member *m, uint16_t to);
void members_link_seen(struct controller *c, struct member *m, uint16_t to); /* c->links has changed */

#endif
