/* previews.h - what commands would do: answers that change nothing. */
#ifndef CONTROLLER_OPERATOR_PREVIEWS_H
#define CONTROLLER_OPERATOR_PREVIEWS_H

struct console;
struct controller;
struct msg_command;
struct outcome;
struct planned;

/* Of a command with the text "preview": answered at once where no plan is needed, else when it is there. */
void previews_ask(struct controller *c, struct console *to, const struct msg_command *m);
/* A candidate for the console's Compare view: harmless, so anyone may ask. */
void previews_ask_candidate(struct controller *c, struct console *to, const struct msg_command *m, struct outcome *o);
void previews_answered(struct controller *c, struct planned *answer); /* by the planner; takes it */
void previews_fini(struct controller *c);

#endif
