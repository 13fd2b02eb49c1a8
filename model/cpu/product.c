/* Matrix products by oneDNN: in fp32 through its BLAS interface, in bf16 through primitives. A
 * primitive is made once for each shape and kept, because making it takes longer than a small
 * product. */
#include "model/cpu/product.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/cpu/onednn.h"
#include "model/vector/vector.h"

/* Declares a function of libgomp, because only gcc has libgomp's header. */
extern void omp_set_num_threads(int);

struct shape {
	char ta, tb; /* 'T': the factor a or b is stored transposed; 'N': it is not */
	size_t m, n, k, ldc;
	bool adds;
};

/* A matmul primitive for one shape, and memory handles, which each call sets to its arrays. */
struct kept {
	struct shape shape;
	/* The primitive; NULL: it could not be made, and is not tried again. */
	dnnl_primitive_t primitive;
	dnnl_memory_t a, b, c;
	struct kept *next;
};

struct product_thread {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct kept *kept;
	uint16_t *a, *b; /* the factors as bf16 */
	size_t a_room, b_room;
};

/* ---- fp32 ---- */

static dnnl_status_t multiply(const struct shape *s, const float *a, size_t lda, const float *b,
			      size_t ldb, float *c)
{
	return dnnl_sgemm(s->ta, s->tb, (dnnl_dim_t)s->m, (dnnl_dim_t)s->n, (dnnl_dim_t)s->k, 1.0f,
			  a, (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, s->adds ? 1 : 0, c,
			  (dnnl_dim_t)s->ldc);
}

static void product_float(const struct shape *s, const float *a, size_t lda, const float *b,
			  size_t ldb, float *c)
{
	dnnl_status_t status = multiply(s, a, lda, b, ldb, c);

	/* Once product_check has succeeded, the call fails only for wrong arguments, which would be
	 * our own bug.
	 */
	assert(status == dnnl_success);
	(void)status;
}

int product_check(struct error *err)
{
	enum { N = 16 };
	const struct shape s = { 'N', 'N', N, N, N, N, false };
	float a[N * N] = { 0 }, c[N * N];
	dnnl_status_t status;

	omp_set_num_threads(1);
	status = multiply(&s, a, N, a, N, c);
	if (status == dnnl_success)
		return 0;
	if (status == dnnl_out_of_memory)
		return error_set(err, -ENOMEM, "no memory for a small product");
	return error_set(err, -EPERM,
			 "oneDNN cannot compute: it writes code into memory and runs it, which "
			 "this process may not (MemoryDenyWriteExecute of systemd, SELinux)");
}

/* ---- bf16 ---- */

/* Returns true if the CPU has all instruction sets in `set`, a bit mask of oneDNN. */
static bool cpu_takes_set(unsigned set)
{
	return ((unsigned)dnnl_get_effective_cpu_isa() & set) == set;
}

bool product_has_bf16(void)
{
	return cpu_takes_set(dnnl_cpu_isa_avx512_core_bf16);
}

/* ---- instruction sets ---- */

const char *product_set(bool bf16)
{
	/* AMX is only used for bf16, because fp32 gains nothing from it. */
	if (bf16 && cpu_takes_set(dnnl_cpu_isa_avx512_core_amx))
		return "amx";
	if (cpu_takes_set(dnnl_cpu_isa_avx512_core))
		return "v4";
	return cpu_takes_set(dnnl_cpu_isa_avx2) ? "v3" : "plain";
}

int product_limit(const char *set, bool bf16, struct error *err)
{
	bool amx = strcmp(set, "amx") == 0, v4 = strcmp(set, "v4") == 0;

	/* oneDNN refuses a limit after its first product. This function then succeeds only if
	 * oneDNN already uses the wanted set. */
	if (strcmp(set, "plain") == 0)
		dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
	else if (strcmp(set, "v3") == 0)
		dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
	else if (v4 && bf16)
		dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
	if (strcmp(product_set(bf16), set) == 0 ||
	    (amx && !bf16 && strcmp(product_set(true), set) == 0))
		return 0;
	return error_set(err, -EBUSY,
			 "products with %s: oneDNN uses %s, because this CPU has no more, or this "
			 "process already uses it",
			 set, product_set(bf16));
}

void product_describe(bool bf16, char *text, size_t size)
{
	const dnnl_version_t *v = dnnl_version();
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	int n = snprintf(text, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);

	/* In bf16 the size of the L2 cache determines oneDNN's blocks, and with them the order of
	 * sums, so the text names this size. */
	if (bf16 && n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, " L2 %ld KiB", l2 / 1024);
}

/* Allocates memory and writes to it, so that a lack of memory is found now and not in the middle of
 * an iteration. */
static uint16_t *room_for(size_t n)
{
	size_t size = (n * sizeof(uint16_t) + 63) / 64 * 64;
	uint16_t *room = aligned_alloc(64, size);

	if (room)
		memset(room, 0, size);
	return room;
}

struct product_thread *product_thread_new(size_t a_room, size_t b_room)
{
	struct product_thread *t = alloc_new(sizeof(*t));

	t->a_room = a_room;
	t->b_room = b_room;
	t->a = room_for(a_room);
	t->b = room_for(b_room);
	if (t->a && t->b && dnnl_engine_create(&t->engine, dnnl_cpu, 0) == dnnl_success &&
	    dnnl_stream_create(&t->stream, t->engine, dnnl_stream_default_flags) ==
		    dnnl_success)
		return t;
	product_thread_free(t);
	return NULL;
}

static void kept_free(struct kept *k)
{
	dnnl_primitive_destroy(k->primitive);
	dnnl_memory_destroy(k->a);
	dnnl_memory_destroy(k->b);
	dnnl_memory_destroy(k->c);
	free(k);
}

void product_thread_free(struct product_thread *t)
{
	if (!t)
		return;
	for (struct kept *k = t->kept, *next; k; k = next) {
		next = k->next;
		kept_free(k);
	}
	dnnl_stream_destroy(t->stream);
	dnnl_engine_destroy(t->engine);
	free(t->a);
	free(t->b);
	free(t);
}

/* Sets the handle of a matrix rows x cols, stored transposed or not. ld: distance from the
 * beginning of a row to the beginning of the next row, in numbers. If there are gaps, ld is
 * greater than the length of a row. */
static bool make_memory(struct product_thread *t, dnnl_memory_t *m, size_t rows, size_t cols,
			bool transposed, size_t ld, dnnl_data_type_t type)
{
	dnnl_dims_t dims = { (dnnl_dim_t)rows, (dnnl_dim_t)cols };
	dnnl_dims_t strides = { transposed ? 1 : (dnnl_dim_t)ld,
				transposed ? (dnnl_dim_t)ld : 1 };

	return onednn_memory_create(m, dims, strides, type, t->engine) == dnnl_success;
}

static bool make_primitive(struct product_thread *t, struct kept *k)
{
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t described = NULL;
	dnnl_post_ops_t sum = NULL;
	bool ok = dnnl_primitive_attr_create(&attr) == dnnl_success &&
		  dnnl_post_ops_create(&sum) == dnnl_success;

	if (ok && k->shape.adds)
		ok = onednn_append_sum(sum) == dnnl_success &&
		     dnnl_primitive_attr_set_post_ops(attr, sum) == dnnl_success;
	ok = ok &&
	     onednn_matmul_describe(&described, k->a, k->b, k->c, attr, t->engine) ==
		     dnnl_success &&
	     dnnl_primitive_create(&k->primitive, described) == dnnl_success;
	dnnl_primitive_desc_destroy(described);
	dnnl_post_ops_destroy(sum);
	dnnl_primitive_attr_destroy(attr);
	return ok;
}

static struct kept *make_kept(struct product_thread *t, const struct shape *s)
{
	struct kept *k = alloc_new(sizeof(*k));
	bool ta = s->ta == 'T', tb = s->tb == 'T';

	k->shape = *s;
	k->next = t->kept;
	t->kept = k;
	if (!make_memory(t, &k->a, s->m, s->k, ta, ta ? s->m : s->k, dnnl_bf16) ||
	    !make_memory(t, &k->b, s->k, s->n, tb, tb ? s->k : s->n, dnnl_bf16) ||
	    !make_memory(t, &k->c, s->m, s->n, false, s->ldc, dnnl_f32) ||
	    !make_primitive(t, k)) {
		dnnl_primitive_destroy(k->primitive);
		k->primitive = NULL;
	}
	return k;
}

static struct kept *find_kept(struct product_thread *t, const struct shape *s)
{
	for (struct kept *k = t->kept; k; k = k->next)
		if (k->shape.ta == s->ta && k->shape.tb == s->tb && k->shape.m == s->m &&
		    k->shape.n == s->n && k->shape.k == s->k && k->shape.ldc == s->ldc &&
		    k->shape.adds == s->adds)
			return k;
	return make_kept(t, s);
}

/* Returns false if oneDNN cannot compute this product; the caller then computes in fp32. */
static bool product_bf16(struct product_thread *t, const struct shape *s, const float *a,
			 size_t lda, const float *b, size_t ldb, float *c)
{
	const struct vector_ops *v = vector_ops();
	struct kept *k = find_kept(t, s);
	dnnl_exec_arg_t args[3];

	assert(s->m * s->k <= t->a_room && s->n * s->k <= t->b_room);
	if (!k->primitive)
		return false;
	v->to_bf16(t->a, a, lda, s->ta == 'T' ? s->k : s->m, s->ta == 'T' ? s->m : s->k);
	v->to_bf16(t->b, b, ldb, s->tb == 'T' ? s->n : s->k, s->tb == 'T' ? s->k : s->n);
	dnnl_memory_set_data_handle(k->a, t->a);
	dnnl_memory_set_data_handle(k->b, t->b);
	dnnl_memory_set_data_handle(k->c, c);
	args[0] = (dnnl_exec_arg_t){ DNNL_ARG_SRC, k->a };
	args[1] = (dnnl_exec_arg_t){ DNNL_ARG_WEIGHTS, k->b };
	args[2] = (dnnl_exec_arg_t){ DNNL_ARG_DST, k->c };
	return dnnl_primitive_execute(k->primitive, t->stream, 3, args) == dnnl_success &&
	       dnnl_stream_wait(t->stream) == dnnl_success;
}

static void run_product(struct product_thread *t, const struct shape *s, const float *a,
			size_t lda, const float *b, size_t ldb, float *c)
{
	/* Without this call, oneDNN would divide the work among OpenMP's threads. The setting
	 * applies to the calling thread only.
	 */
	omp_set_num_threads(1);
	if (!t || !product_bf16(t, s, a, lda, b, ldb, c))
		product_float(s, a, lda, b, ldb, c);
}

void product_nt(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	run_product(t, &(struct shape){ 'N', 'T', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}

void product_nn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	run_product(t, &(struct shape){ 'N', 'N', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}

void product_tn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	run_product(t, &(struct shape){ 'T', 'N', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}
