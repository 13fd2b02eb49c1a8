/* requests.h - work that a module requests from the loop, or from a module of a higher
 * subfolder. */
#ifndef AGENT_REQUESTS_H
#define AGENT_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct requests {
	bool look_again; /* the loop checks again whether tensors that arrived early can be used */
	/* The worker zeroes the gradient, because the attempt that computed it is void. */
	bool zero;
	bool step;        /* the worker makes the optimizer's step of the last COMMIT */
	uint32_t hang_ms; /* milliseconds for which an injected fault suspends the process */
};

#endif
