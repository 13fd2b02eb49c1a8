/* picture.c - keeps what a run is known to consist of. */
#include "doctor/picture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

void picture_size(struct picture *p, uint32_t n)
{
	free(p->nodes);
	free(p->links);
	p->n = n;
	p->nodes = alloc_array(n, sizeof(*p->nodes));
	p->links = alloc_array((size_t)n * n, sizeof(*p->links));
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
