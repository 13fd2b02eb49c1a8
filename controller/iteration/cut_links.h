/* cut_links.h - routes the iteration around cut links, or removes a node at one end of a cut
 * link. */
#ifndef CONTROLLER_ITERATION_CUT_LINKS_H
#define CONTROLLER_ITERATION_CUT_LINKS_H

struct iteration;

/* Uses healed links again, and reroutes microbatches around cut links. For the first newly cut
 * link, also decides whether a node must be removed. */
void cut_links_check(struct iteration *it);

#endif
