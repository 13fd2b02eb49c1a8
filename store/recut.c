/* Divides the model of a run into other stages, in one transaction. The transaction also deletes
 * the rows of the former stages' checkpoints, because the new stages cannot read them. After a
 * crash, the run has either the former stages with their checkpoints, or the new stages. */
#include <stdlib.h>

#include "base/alloc.h"
#include "store/db.h"
#include "store/store.h"

static int set_run(struct store *s, const struct store_recut *r, struct error *err)
{
	struct db_value stages[] = { db_text(r->model), db_int(s->run.batch),
				     db_int(r->n_shards), db_int(r->per_shard) };
	struct db_value cluster[] = { db_text(r->cluster) }, id[] = { db_u64(r->id) };
	int rc = db_run(s, DB_SET_STAGES, stages, DB_COUNT(stages), err);

	if (rc == 0)
		rc = db_run(s, DB_SET_CLUSTER, cluster, DB_COUNT(cluster), err);
	return rc ? rc : db_run(s, DB_SET_ID, id, DB_COUNT(id), err);
}

static int put_file(struct store *s, const struct store_shard *k, struct error *err)
{
	struct db_value v[] = { db_u64(k->iteration), db_int(k->stage), db_int(k->node),
				db_text(k->host),     db_u64(k->hash),  db_u64(k->bytes),
				db_int(k->wall_us) };

	return db_run(s, DB_PUT_SHARD, v, DB_COUNT(v), err);
}

static int try_recut(struct store *s, const struct store_recut *r, struct error *err)
{
	struct db_value all[] = { db_u64(0) };
	int rc = db_begin(s, true, err);

	if (rc != 0)
		return rc;
	rc = set_run(s, r, err);
	if (rc == 0)
		rc = db_run(s, DB_DROP_SHARDS, all, DB_COUNT(all), err);
	for (size_t i = 0; rc == 0 && i < r->n_files; i++)
		rc = put_file(s, &r->files[i], err);
	for (size_t i = 0; rc == 0 && i < r->n_values; i++) {
		const char *value = r->values[i].value;
		struct db_value v[] = { db_text(r->values[i].key), db_text(value) };

		rc = db_run(s, value ? DB_PUT_STATE : DB_DROP_STATE, v, value ? 2 : 1, err);
	}
	return db_end(s, rc, err);
}

int store_recut(struct store *s, const struct store_recut *r, struct error *err)
{
	int rc;

	write_forget(s);
	do
		rc = try_recut(s, r, err);
	while (db_again(s, rc));
	if (rc != 0)
		return rc;
	free((char *)s->run.model);
	free((char *)s->run.cluster);
	s->run.model = alloc_string(r->model);
	s->run.cluster = alloc_string(r->cluster);
	s->run.n_shards = r->n_shards;
	s->run.per_shard = r->per_shard;
	s->run.id = r->id;
	return 0;
}
