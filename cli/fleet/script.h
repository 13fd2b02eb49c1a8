/* script.h - the shell script that works on each host (cli/fleet/host.sh). */
#ifndef CLI_FLEET_SCRIPT_H
#define CLI_FLEET_SCRIPT_H

/* The text of the script. It contains no single quote: ssh gets the text in single quotes, and a
 * quote inside would need a backslash. */
extern const char script_text[];

#endif
