/* cut_links.h - decides what a cut link costs the run, and routes the iteration around it. */
#ifndef CONTROLLER_ITERATION_CUT_LINKS_H
#define CONTROLLER_ITERATION_CUT_LINKS_H

struct iteration;

/* Looks at the links that are cut, and at the first one that is cut now. */
void cut_links_check(struct iteration *it);

#endif
