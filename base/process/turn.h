/* turn.h - a lock that the processes of one program share on a machine.
 *
 * Without this lock, agents that start together on one machine would all see the same unused
 * memory, and together allocate more than the machine has.
 */
#ifndef BASE_PROCESS_TURN_H
#define BASE_PROCESS_TURN_H

/* Waits until no other process or thread of this program holds the turn, but at most wait_ms.
 * Returns a descriptor for turn_end; the turn also ends with the process. Returns -1 if the time is
 * over or the system has no such locks; the caller then continues without the turn. */
int turn_begin(int wait_ms);
void turn_end(int turn); /* -1 is allowed */

#endif
