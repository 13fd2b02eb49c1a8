/* outcome.h - the outcome of an operator's command, which its console receives as the answer. */
#ifndef CONTROLLER_RUN_OUTCOME_H
#define CONTROLLER_RUN_OUTCOME_H

struct outcome {
	int status; /* 0: done; otherwise a negative errno */
	char text[192];
};

void outcome_set(struct outcome *o, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
