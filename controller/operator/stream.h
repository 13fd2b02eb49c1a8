/* stream.h - messages to consoles, numbered for each of them: who loses one gets a fresh snapshot (consoles.c). */
#ifndef CONTROLLER_OPERATOR_STREAM_H
#define CONTROLLER_OPERATOR_STREAM_H

#include "wire/post.h"

struct controller;
struct console;
struct msg;

struct console *console_of_peer(struct controller *c, post_peer_id peer);
void consoles_tell(struct controller *c, struct msg *m); /* to all that are live */
void console_send(struct controller *c, struct console *to, struct msg *m);

#endif
