/* requests.h - work that a module asks the loop, or a module of a higher subfolder, to do. */
#ifndef AGENT_REQUESTS_H
#define AGENT_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct requests {
	bool look_again;  /* the loop looks again at tensors that arrived early */
	bool zero;        /* the worker zeroes the gradient, because its attempt is void */
	bool step;        /* the worker applies `commit` to the weights */
	uint32_t hang_ms; /* milliseconds for which an injected fault suspends the process */
};

#endif
