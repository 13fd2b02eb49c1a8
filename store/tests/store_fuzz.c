/* Fuzzes a run's file: writes values of any type and size into any column of any row, then opens
 * the file as a reader or as the next writer, and reads everything. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/store.h"

#define COLUMNS 256

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char folder[] = "/tmp/skippipe-fuzz-XXXXXX", file[64];
static char *pristine;
static size_t pristine_size;
static struct {
	char table[48], column[48];
} columns[COLUMNS];
static int n_columns;
static volatile unsigned long sink; /* keeps the compiler from removing the reads */

static void must(int rc)
{
	if (rc != 0)
		abort();
}

static void clean_up(void)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "run.lock" };
	char path[96];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* Writes a row of each kind. */
static void fill(struct store *s)
{
	static const uint16_t nodes[] = { 0, 1 };
	static const struct store_counted counted[] = { { 0, 'L' }, { 0, 'B' } };
	const struct route routes[] = { { .attempt = 1, .n_hops = 2, .nodes = { 0, 1 },
					  .stages = { 0, 1 } } };
	const struct store_order orders[] = { { 0, 0, 2, counted, NULL },
					      { 1, 1, 1, counted + 1, NULL } };
	const struct store_reduction sums[] = { { 0, 1, nodes }, { 1, 1, nodes + 1 } };

	must(store_plan(s, &(struct store_plan){ 1, 1, "first", 2, "{}", 1, 1 }, NULL));
	for (uint64_t i = 1; i <= 3; i++) {
		struct store_commit c = { .iteration = i,
					  .epoch = 1,
					  .scale = 1,
					  .alive = 2,
					  .n_routes = 1,
					  .routes = routes,
					  .n_orders = 2,
					  .orders = orders,
					  .n_reductions = 2,
					  .reductions = sums };

		must(store_commit(s, &c, NULL));
		must(store_hashes(s, &(struct store_hash){ i, 7, 1, 1 }, 1, NULL));
		must(store_tasks(s, &(struct store_task){ i, 0, 1, 1, 'F', true, -1, 1, 2, 3 },
				 1, NULL));
	}
	must(store_validation(s, &(struct store_validation){ 3, 2.5, 9 }, NULL));
	must(store_note(s, &(struct store_note){ .iteration = 1, .kind = "log", .text = "t" },
			NULL));
	must(store_fault(s, &(struct store_fault){ .id = 1, .kind = "hang", .peer = -1 },
			 NULL));
	must(store_command(s,
			   &(struct store_command){ .id = 1,
						    .who = "w",
						    .verb = "skip",
						    .text = "",
						    .reply = "",
						    .undo = "x" },
			   NULL));
	must(store_moment(s,
			  &(struct store_moment){ .iteration = 1,
						  .kind = "node",
						  .word = "live",
						  .text = "",
						  .device = "cpu",
						  .host = "h" },
			  NULL));
	must(store_shard(s, &(struct store_shard){ 3, 1, 1, "h", 5, 6, 7 }, NULL));
	must(store_restore(s,
			   &(struct store_restore){ .iteration = 3,
						    .last = 3,
						    .stage = 1,
						    .node = 1,
						    .n_from = 2,
						    .from = { 0, 2 } },
			   1, NULL));
	must(store_set(s, "key", "value", NULL));
}

static void list_columns(void)
{
	sqlite3_stmt *q;
	sqlite3 *db;

	must(sqlite3_open(file, &db));
	must(sqlite3_prepare_v2(
		db,
		"SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
		"WHERE m.type = 'table'",
		-1, &q, NULL));
	while (sqlite3_step(q) == SQLITE_ROW && n_columns < COLUMNS) {
		snprintf(columns[n_columns].table, sizeof(columns[0].table), "%s",
			 sqlite3_column_text(q, 0));
		snprintf(columns[n_columns].column, sizeof(columns[0].column), "%s",
			 sqlite3_column_text(q, 1));
		n_columns++;
	}
	sqlite3_finalize(q);
	sqlite3_close(db);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct store_run run = { .name = "fuzz",
				 .version = "0",
				 .model = "{}",
				 .cluster = "{}",
				 .optimizer = "{}",
				 .hash = "sum",
				 .n_shards = 1,
				 .per_shard = 1,
				 .batch = 1,
				 .sequence = 8,
				 .threads = 1 };
	struct store *s;

	(void)argc;
	(void)argv;
	must(mkdtemp(folder) ? 0 : -1);
	atexit(clean_up);
	snprintf(file, sizeof(file), "%s/run.db", folder);
	must(store_create(&s, folder, &run, NULL));
	fill(s);
	store_close(s);
	list_columns();
	must(n_columns > 50 ? 0 : -1);
	must(file_read(file, 1 << 24, &pristine, &pristine_size, NULL));
	return 0;
}

/* Binds a text that consists of the letters that occur in lists. */
static void bind_list(sqlite3_stmt *q, const unsigned char *data, size_t n)
{
	static const char letters[] = "0123456789 ,:LB-";
	char text[256];

	for (size_t i = 0; i < n; i++)
		text[i] = letters[data[i] % 16];
	sqlite3_bind_text(q, 1, text, (int)n, SQLITE_TRANSIENT);
}

/* Changes columns as the input says. Each change takes bytes for the column, the rows, the type and
 * the size, and then the value: eight bytes for a number, or a text or blob of that size. */
static void change_columns(const unsigned char *data, size_t size)
{
	sqlite3 *db;

	must(sqlite3_open(file, &db));
	sqlite3_exec(db,
		     "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON; BEGIN",
		     NULL, NULL, NULL);
	while (size >= 12) {
		const char *table = columns[data[0] % n_columns].table;
		size_t n = data[3] < size - 4 ? data[3] : size - 4;
		char sql[256];
		sqlite3_stmt *q;
		int64_t number;
		double real;

		snprintf(sql, sizeof(sql), "UPDATE OR IGNORE %s SET %s = ?%s", table,
			 columns[data[0] % n_columns].column,
			 data[1] % 2 ? " WHERE iteration = 2" : "");
		if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK) {
			memcpy(&number, data + 4, 8);
			memcpy(&real, data + 4, 8);
			switch (data[2] % 6) {
			case 0:
				sqlite3_bind_int64(q, 1, number);
				break;
			case 1:
				sqlite3_bind_double(q, 1, real);
				break;
			case 2:
				sqlite3_bind_text(q, 1, (const char *)data + 4, (int)n,
						  SQLITE_TRANSIENT);
				break;
			case 4:
				bind_list(q, data + 4, n);
				break;
			case 3:
				sqlite3_bind_blob(q, 1, data + 4, (int)n, SQLITE_TRANSIENT);
				break;
			default:
				sqlite3_bind_null(q, 1);
				break;
			}
			sqlite3_step(q);
			sqlite3_finalize(q);
		}
		n = n > 8 ? n + 4 : 12;
		data += n;
		size -= n;
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void use(const char *text)
{
	sink += text ? strlen(text) : 0;
}

static int see_plan(void *context, const struct store_plan *p)
{
	(void)context;
	use(p->reason);
	use(p->plan);
	return 0;
}

static int see_commit(void *context, const struct store_commit *c)
{
	(void)context;
	sink += c->iteration;
	return 0;
}

static int see_hash(void *context, const struct store_hash *h)
{
	(void)context;
	sink += h->node;
	return 0;
}

static int see_task(void *context, const struct store_task *t)
{
	(void)context;
	sink += t->microbatch;
	return 0;
}

static int see_validation(void *context, const struct store_validation *v)
{
	(void)context;
	sink += v->iteration;
	return 0;
}

static int see_note(void *context, const struct store_note *n)
{
	(void)context;
	use(n->kind);
	use(n->text);
	return 0;
}

static int see_fault(void *context, const struct store_fault *f)
{
	(void)context;
	use(f->kind);
	return 0;
}

static int see_moment(void *context, const struct store_moment *m)
{
	(void)context;
	use(m->kind);
	use(m->word);
	use(m->text);
	use(m->device);
	use(m->host);
	return 0;
}

static int see_shard(void *context, const struct store_shard *k)
{
	(void)context;
	use(k->host);
	return 0;
}

static int see_restore(void *context, const struct store_restore *r)
{
	(void)context;
	for (uint32_t i = 0; i < r->n_from; i++)
		sink += r->from[i];
	return 0;
}

static void read_run(const struct store_run *r)
{
	use(r->name);
	use(r->version);
	use(r->model);
	use(r->cluster);
	use(r->optimizer);
	for (size_t i = 0; i < r->n_corpus; i++)
		use(r->corpus[i]);
}

static void read_commit(struct store *s, uint64_t iteration)
{
	struct store_commit c;

	if (store_read_commit(s, iteration, &c, NULL) != 0)
		return;
	for (size_t i = 0; i < c.n_routes; i++) {
		for (uint32_t h = 0; h < c.routes[i].n_hops; h++)
			sink += c.routes[i].nodes[h] + c.routes[i].stages[h];
	}
	for (size_t i = 0; i < c.n_orders; i++) {
		for (uint32_t k = 0; k < c.orders[i].n_counted; k++)
			sink += c.orders[i].counted[k].microbatch;
	}
	for (size_t i = 0; i < c.n_reductions; i++) {
		for (uint32_t k = 0; k < c.reductions[i].n_nodes; k++)
			sink += c.reductions[i].nodes[k];
	}
	store_commit_clear(&c);
}

static void read_all(struct store *s)
{
	uint64_t last;
	char *value;

	read_run(store_run_of(s));
	if (store_last_commit(s, &last, NULL) == 0)
		sink += last;
	for (uint64_t i = 1; i <= 3; i++) {
		read_commit(s, i);
		store_each_hash(s, i, see_hash, NULL, NULL);
		store_each_task(s, i, see_task, NULL, NULL);
	}
	store_each_commit(s, 0, UINT64_MAX, see_commit, NULL, NULL);
	store_each_plan(s, 0, see_plan, NULL, NULL);
	store_each_validation(s, see_validation, NULL, NULL);
	store_each_note(s, see_note, NULL, NULL);
	store_each_fault(s, see_fault, NULL, NULL);
	store_each_moment(s, 0, see_moment, NULL, NULL);
	store_each_shard(s, see_shard, NULL, NULL);
	store_each_restore(s, see_restore, NULL, NULL);
	if (store_get(s, "key", &value, NULL) == 0) {
		use(value);
		free(value);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct store *s;
	FILE *f = fopen(file, "wb");

	must(f && fwrite(pristine, 1, pristine_size, f) == pristine_size && fclose(f) == 0
		     ? 0
		     : -1);
	if (size == 0)
		return 0;
	change_columns(data + 1, size - 1);
	if ((data[0] % 2 ? store_resume(&s, folder, NULL) : store_open(&s, folder, NULL)) ==
	    0) {
		read_all(s);
		store_close(s);
	}
	return 0;
}
