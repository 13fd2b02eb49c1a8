/* cut_links.h - decides what a cut link costs the run, and routes the iteration around it. */
#ifndef CONTROLLER_ITERATION_CUT_LINKS_H
#define CONTROLLER_ITERATION_CUT_LINKS_H

struct iteration;

/* Uses healed links again, reroutes around links that are cut, and judges the first link that has
 * just been cut. */
void cut_links_check(struct iteration *it);

#endif
