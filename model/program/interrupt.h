/* interrupt.h - Ctrl-C and SIGTERM end the current work in an orderly way. */
#ifndef MODEL_PROGRAM_INTERRUPT_H
#define MODEL_PROGRAM_INTERRUPT_H

#include <stdbool.h>

enum { EXIT_INTERRUPTED = 130 };

/* Call it on the thread that computes. From now on the first signal is only recorded, and signals
 * within the next 3 seconds are ignored. A signal after these 3 seconds ends the process. If a
 * mapped file is cut short, the process ends with a message. */
void interrupt_catch(void);
/* Returns true if Ctrl-C was pressed or SIGTERM has arrived. */
bool interrupt_seen(void);

#endif
