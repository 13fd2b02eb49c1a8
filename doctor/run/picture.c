/* picture.c - keeps a run's nodes, links and lines of the journal, which the checks examine. */
#include "doctor/run/picture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { NOTES_MOST = 20000 };

void picture_size(struct picture *p, uint32_t n)
{
	free(p->nodes);
	free(p->links);
	p->n = n;
	p->nodes = alloc_array(n, sizeof(*p->nodes));
	p->links = alloc_array((size_t)n * n, sizeof(*p->links));
}

void picture_add_note(struct picture *p, const struct picture_note *note)
{
	p->notes.n = array_keep_newest(p->notes.list, p->notes.n, NOTES_MOST, sizeof(*note));
	*LIST_ADD(&p->notes) = *note;
}

void picture_free(struct picture *p)
{
	free(p->nodes);
	free(p->links);
	free(p->notes.list);
	*p = (struct picture){ .n = 0 };
}

char *picture_label(const struct picture *p, uint32_t node, char out[PICTURE_LABEL])
{
	const struct picture_node *m = &p->nodes[node];

	if (m->name[0])
		snprintf(out, PICTURE_LABEL, "n%02u (%s%s%s)", node, m->name,
			 m->place[0] ? ", " : "", m->place);
	else
		snprintf(out, PICTURE_LABEL, "n%02u", node);
	return out;
}
