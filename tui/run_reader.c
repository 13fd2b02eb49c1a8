/* Reads losses of a recorded run, for the Loss view. */
#include "tui/run_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/store.h"

enum { ITERATIONS_A_TURN = 4000 };

struct run_reader {
	struct store *store;
	uint64_t next, last; /* next iteration to read; last iteration of the record */
	struct other_point newest, newest_validation;
	struct other_run *to; /* receives the losses; valid only during a call */
};

/* Copies the folder's name, or the end of a long name, because names of runs differ at their
 * ends. */
static void name_run(struct other_run *to, const char *folder)
{
	size_t n = strlen(folder), most = sizeof(to->name) - 1;

	while (n > 1 && folder[n - 1] == '/')
		n--;
	snprintf(to->name, sizeof(to->name), "%.*s", (int)(n > most ? most : n),
		 n > most ? folder + n - most : folder);
}

int run_reader_open(struct run_reader **out, const char *folder, struct other_run *to,
		    struct error *err)
{
	const char *home = getenv("HOME");
	struct run_reader *r = alloc_new(sizeof(*r));
	char *path = home && home[0] == '/' && strncmp(folder, "~/", 2) == 0
			     ? alloc_format("%s%s", home, folder + 1)
			     : alloc_string(folder);
	int rc = store_open(&r->store, path, err);

	if (rc == 0)
		rc = store_last_commit(r->store, &r->last, err);
	if (rc == 0) {
		const struct store_run *run = store_run_of(r->store);

		r->next = 1;
		name_run(to, folder);
		to->n_expected = r->last;
		to->tokens_per_iteration =
			(uint64_t)run->n_shards * run->per_shard * run->batch * run->sequence;
		*out = r;
	} else {
		run_reader_close(r);
	}
	free(path);
	return rc;
}

/* Limits a time from the file, so that the difference of two times cannot overflow. */
static int64_t bound_us(int64_t wall_us)
{
	return wall_us < 0 ? 0 : wall_us > INT64_MAX / 4 ? INT64_MAX / 4 : wall_us;
}

static int take_commit(void *context, const struct store_commit *c)
{
	struct run_reader *r = context;

	if (r->to->n_read == 0)
		r->to->began_us =
			bound_us(c->wall_us) -
			(c->real_s > 0 && c->real_s < 1e9 ? (int64_t)(c->real_s * 1e6) : 0);
	r->newest = (struct other_point){ c->iteration, bound_us(c->wall_us) - r->to->began_us,
					  c->loss };
	other_curve_add(&r->to->train, r->newest);
	r->to->n_read++;
	return 0;
}

static int take_validation(void *context, const struct store_validation *v)
{
	struct run_reader *r = context;

	r->newest_validation =
		(struct other_point){ v->iteration, bound_us(v->wall_us) - r->to->began_us,
				      (float)v->loss };
	other_curve_add(&r->to->validation, r->newest_validation);
	return 0;
}

int run_reader_turn(struct run_reader *r, struct other_run *to, struct error *err)
{
	uint64_t until = r->next + ITERATIONS_A_TURN - 1;
	int rc = 0;

	until = until < r->last ? until : r->last;
	r->to = to;
	if (r->next <= until)
		rc = store_each_commit(r->store, r->next, until, take_commit, r, err);
	r->next = until + 1;
	if (rc != 0 || r->next <= r->last)
		return rc != 0 ? rc : 1;
	rc = store_each_validation(r->store, take_validation, r, err);
	if (rc == 0 && to->n_read > 0)
		other_curve_end(&to->train, r->newest);
	if (rc == 0 && to->validation.n_added > 0)
		other_curve_end(&to->validation, r->newest_validation);
	return rc;
}

void run_reader_close(struct run_reader *r)
{
	if (!r)
		return;
	store_close(r->store);
	free(r);
}
