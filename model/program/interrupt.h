/* interrupt.h - Ctrl-C and SIGTERM end the work in hand, not the process. */
#ifndef MODEL_PROGRAM_INTERRUPT_H
#define MODEL_PROGRAM_INTERRUPT_H

#include <stdbool.h>

enum { EXIT_INTERRUPTED = 130 };

/* From the thread that computes. From now on the first signal is only noted; a second one ends
 * the process. */
void interrupt_catch(void);
/* Ctrl-C or SIGTERM came. */
bool interrupt_seen(void);

#endif
