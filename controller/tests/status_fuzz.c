/* status_fuzz.c - libFuzzer target: arbitrary bytes as a controller's answer to skippipe status,
 * which prints the status on a screen. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/monitor/fetch.h"
#include "controller/monitor/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *screen = NULL;
	json_t *status = NULL;
	struct error err;
	size_t n;
	FILE *to;

	memcpy(text, data, size);
	text[size] = '\0';
	if (fetch_body(text, &size) && report_read(&status, text, size, &err) == 0) {
		to = open_memstream(&screen, &n);
		report_print(to, status);
		fclose(to);
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)screen[i] < 0x20 && screen[i] != '\n')
				abort(); /* a control character has reached the terminal */
		free(screen);
		(void)report_health(status);
		json_decref(status);
	}
	free(text);
	return 0;
}
