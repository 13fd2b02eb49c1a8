/* complaints.c - a table for troubleshooting. Each entry recognises one kind of journal line that
 * reports a problem, and says what an operator can do. */
#include "doctor/run/complaints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const struct kind {
	/* If a line of the journal contains these words, it is a complaint of this kind. */
	const char *words;
	enum finding_level level;
	const char *remedy;
} kinds[] = {
	{ "MTU?", FINDING_ERROR,
	  "large packets are lost on the way: ip link set dev ETH mtu 1400 at both ends, or sysctl "
	  "-w "
	  "net.ipv4.tcp_mtu_probing=1" },
	{ "two processes have its key", FINDING_ERROR,
	  "a machine was cloned with its key: delete the key there, and join again" },
	{ "an agent was refused", FINDING_WARNING,
	  "the reason is in the line; use the same version on all machines" },
	{ "reads another corpus", FINDING_ERROR,
	  "give that agent --corpus with the same bytes as on the controller's machine, or no "
	  "--corpus: it fetches the files" },
	{ "machine is shared", FINDING_WARNING,
	  "end other programs there, start fewer agents, or expect slower iterations" },
	{ "GPU is throttled", FINDING_WARNING,
	  "see nvidia-smi -q -d PERFORMANCE there: cooling, power limit, or another tenant" },
	{ "on the CPU instead", FINDING_WARNING, "run skippipe doctor --device cuda there" },
	{ "did not save", FINDING_WARNING, "run skippipe doctor --run-dir DIR there" },
	{ "the disk is full", FINDING_ERROR, "free some space; the run then continues by itself" },
	{ "has locked", FINDING_ERROR,
	  "end the program that has run.db open, such as a backup or a shell" },
	{ "no plan:", FINDING_ERROR, "the reason is in the line: fewer stages or more nodes" },
	{ "did not report its link", FINDING_WARNING,
	  "the network is slow or loses packets: measure again (--measure-only)" },
	{ "nothing came through", FINDING_WARNING,
	  "the link failed while it was in use: look at both machines' networks and firewalls" },
	{ "a port closed, or one direction", FINDING_ERROR,
	  "open the agents' ports in both machines' firewalls" },
	{ "times as long as planned", FINDING_WARNING,
	  "another program uses that machine or its network; plans are corrected" },
	{ "hold different weights", FINDING_ERROR,
	  "run skippipe doctor --device DEVICE on both machines, and test their memory" },
	{ "weights changed outside a commit", FINDING_ERROR,
	  "that machine's memory is faulty: take another machine" },
	{ "has another sum of", FINDING_ERROR,
	  "run skippipe doctor --device DEVICE there, and test its memory" },
	{ "exceeded its quota", FINDING_WARNING,
	  "see what that process sends; withdraw its key if it is a stranger's (skippipe expel)" },
	{ "too few open files", FINDING_ERROR, "run skippipe doctor there: ulimit -n 8192" },
	{ "means the machine itself", FINDING_ERROR,
	  "give that agent --advertise with an address that other machines can dial" },
	{ "out of memory", FINDING_ERROR,
	  "give that machine more memory, or more stages to the "
	  "model" },
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int kind_of(const struct picture_note *n)
{
	for (int k = 0; k < N_KINDS; k++)
		if (strstr(n->text, kinds[k].words))
			return k;
	return -1;
}

/* Returns the index in a table with one entry for each node and kind. The first N_KINDS entries are
 * for lines without a node (node -1). */
static size_t place_of(const struct picture *p, const struct picture_note *n, int kind)
{
	const bool has_node = n->node >= 0 && (uint32_t)n->node < p->n;

	return (has_node ? (size_t)n->node + 1 : 0) * N_KINDS + (size_t)kind;
}

void complaints_check(struct findings *f, const struct picture *p)
{
	unsigned *times = alloc_array((p->n + 1) * (size_t)N_KINDS, sizeof(*times));
	const size_t before = f->all.n;

	for (size_t i = 0; i < p->notes.n; i++) {
		const int kind = kind_of(&p->notes.list[i]);

		if (kind >= 0)
			times[place_of(p, &p->notes.list[i], kind)]++;
	}
	/* Starts from the newest line. Older complaints of the same kind and node are only
	 * counted. */
	for (size_t i = p->notes.n; i-- > 0;) {
		const struct picture_note *n = &p->notes.list[i];
		const int kind = kind_of(n);
		unsigned *here = kind >= 0 ? &times[place_of(p, n, kind)] : NULL;

		if (!here || *here == 0)
			continue;
		finding_add(f, "journal", p->is_running ? kinds[kind].level : FINDING_WARNING,
			    "it%" PRIu64 ": %s%s", n->iteration, n->text,
			    *here > 1 ? " (and earlier)" : "");
		finding_remedy(f, "%s", kinds[kind].remedy);
		*here = 0;
	}
	if (f->all.n == before)
		finding_add(f, "journal", FINDING_OK, "no complaint with a known remedy");
	free(times);
}
