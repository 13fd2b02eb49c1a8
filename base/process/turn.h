/* turn.h - lets processes of one program do something in turn on a machine.
 *
 * Agents of one machine that start together would otherwise all see the same free memory, and take
 * more than there is.
 */
#ifndef BASE_PROCESS_TURN_H
#define BASE_PROCESS_TURN_H

/* Waits at most wait_ms until no other process, or thread, of this program has the turn. Returns a
 * descriptor for turn_end, which also ends with the process; -1: the time is over, or the system
 * has no such locks, and the caller goes on without. */
int turn_begin(int wait_ms);
void turn_end(int turn); /* -1 is allowed */

#endif
