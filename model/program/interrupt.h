/* interrupt.h - Ctrl-C and SIGTERM end the current work in an orderly way. */
#ifndef MODEL_PROGRAM_INTERRUPT_H
#define MODEL_PROGRAM_INTERRUPT_H

#include <stdbool.h>

enum { EXIT_INTERRUPTED = 130 };

/* Called by the thread that computes. From now on the first signal is only noted; a second one ends
 * the process. */
void interrupt_catch(void);
/* Returns true after Ctrl-C or SIGTERM. */
bool interrupt_seen(void);

#endif
