/* drill.h - writes the operator's acts to RUN-DIR/drill.json, for `skippipe drill`. */
#ifndef CONTROLLER_RUN_DRILL_H
#define CONTROLLER_RUN_DRILL_H

struct run;
struct msg_command;

/* Adds an act that was carried out. */
void drill_add(struct run *run, const struct msg_command *m);
/* Writes RUN-DIR/drill.json if there was any act and this is the run of an embedded cluster. */
void drill_save(struct run *run);
void drill_fini(struct run *run);

#endif
