/* The bytes of host.sh. The script is a file of its own, so that editors and checkers read it as a
 * shell script. The assembler includes its bytes here, so the program needs no file at run time. */
#include "cli/fleet/script.h"

__asm__(".section .rodata\n"
	".globl script_text\n"
	"script_text:\n"
	".incbin \"cli/fleet/host.sh\"\n"
	".byte 0\n"
	".text\n");
