/* text_files.c - reads a corpus as agents do, and compares its hash. A node whose corpus differs
 * from that of the majority is excluded from a run. */
#include "doctor/text_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "model/text/corpus.h"

enum { SEQUENCE = 32 /* tokens of a sequence; real runs use longer sequences */ };

void text_files_check(struct findings *f, char *const *paths, size_t n, const char *expected)
{
	struct corpus *c = NULL;
	struct error err = { "" };
	char hash[17];

	if (corpus_new(&c, paths, n, SEQUENCE, 0, &err) != 0) {
		finding_add(f, "corpus", FINDING_ERROR, "%s", err.text);
		finding_remedy(f, "copy the corpus of the controller's machine here, or leave "
				  "--corpus out: agents fetch missing files");
		return;
	}
	snprintf(hash, sizeof(hash), "%016" PRIx64, corpus_hash(c));
	if (!expected || strcasecmp(hash, expected) == 0) {
		finding_add(f, "corpus", FINDING_OK, "hash %s, %s", hash,
			    corpus_is_text(c) ? "text" : "tokens");
	} else {
		finding_add(f, "corpus", FINDING_ERROR, "its hash is %s, and %.16s was expected",
			    hash, expected);
		finding_remedy(f, "copy the corpus of the controller's machine here: the bytes and "
				  "the order of the files must be the same");
	}
	corpus_free(c);
}
