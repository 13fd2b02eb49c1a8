/* script.h - the shell script that works on each host (cli/fleet/host.sh). */
#ifndef CLI_FLEET_SCRIPT_H
#define CLI_FLEET_SCRIPT_H

/* The text of the script. It has no single quote. */
extern const char script_text[];

#endif
