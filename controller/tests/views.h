/* views.h - for tests: a view of a run of four nodes, one of them dead and one with a GPU. */
#ifndef CONTROLLER_TESTS_VIEWS_H
#define CONTROLLER_TESTS_VIEWS_H

#include "controller/monitor/view.h"

/* Fills *v. view_fini frees it. */
void views_fill(struct view *v);

#endif
