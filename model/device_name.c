/* Parses and prints device names. The parser has no table, because the parts after the first depend
 * on the kind of device. */
#include "model/device_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Moves past ":word" and returns true if the text continues with exactly that word. */
static bool take_word(const char **at, const char *word)
{
	size_t n = strlen(word);

	if (**at != ':' || strncmp(*at + 1, word, n) != 0 ||
	    ((*at)[1 + n] != ':' && (*at)[1 + n] != '\0'))
		return false;
	*at += 1 + n;
	return true;
}

int device_name_parse(struct device_name *out, const char *text, struct error *err)
{
	static const char *const sets[] = { "plain", "v3", "v4", "amx" };
	const char *at = text ? text : "cpu";
	struct device_name n = { .cuda = strncmp(at, "cuda", 4) == 0 };
	bool cpu = strncmp(at, "cpu", 3) == 0;

	n.pretend = strcmp(at, "pretend") == 0;
	if (n.pretend) {
		*out = n;
		return 0;
	}
	at += n.cuda ? 4 : cpu ? 3 : 0;
	if (n.cuda && at[0] == ':' && at[1] >= '0' && at[1] <= '9')
		n.number = (uint32_t)strtoul(at + 1, (char **)&at, 10);
	for (size_t i = 0; cpu && i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!n.set[0] && take_word(&at, sets[i]))
			snprintf(n.set, sizeof(n.set), "%s", sets[i]);
	n.bf16 = take_word(&at, "bf16");
	if (!(cpu || n.cuda) || *at)
		return error_set(err, -EINVAL,
				 "device \"%s\": expected cpu or cuda, then :plain, :v3, :v4 or "
				 ":amx for a CPU's instruction set, or :N for a GPU's number, then "
				 ":bf16; or pretend, for a rehearsal",
				 text);
	*out = n;
	return 0;
}

void device_name_print(const struct device_name *n, char text[DEVICE_NAME_SIZE])
{
	char which[16] = "";

	if (n->cuda)
		snprintf(which, sizeof(which), ":%u", n->number);
	else if (n->set[0])
		snprintf(which, sizeof(which), ":%s", n->set);
	snprintf(text, DEVICE_NAME_SIZE, "%s%s%s",
		 n->pretend ? "pretend"
		 : n->cuda  ? "cuda"
			    : "cpu",
		 which, n->bf16 ? ":bf16" : "");
}

bool device_texts_alike(const char *a, const char *b)
{
	struct device_name x, y;
	char name[2][DEVICE_NAME_SIZE];
	size_t n = strcspn(a, " "), m = strcspn(b, " ");

	if (strcmp(a + n, b + m) != 0)
		return false;
	snprintf(name[0], sizeof(name[0]), "%.*s", (int)n, a);
	snprintf(name[1], sizeof(name[1]), "%.*s", (int)m, b);
	if (device_name_parse(&x, name[0], NULL) || device_name_parse(&y, name[1], NULL))
		return strcmp(a, b) == 0;
	return x.cuda == y.cuda && x.bf16 == y.bf16 && x.pretend == y.pretend &&
	       strcmp(x.set, y.set) == 0;
}
