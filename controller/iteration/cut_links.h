/* cut_links.h - decides what a cut link costs the run, and routes the iteration around it. */
#ifndef CONTROLLER_ITERATION_CUT_LINKS_H
#define CONTROLLER_ITERATION_CUT_LINKS_H

struct iteration;

/* Uses healed links again, reroutes around cut links, and decides what the first newly cut link
 * costs the run. */
void cut_links_check(struct iteration *it);

#endif
