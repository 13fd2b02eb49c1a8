#include "model/cpu/product.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "model/cpu/vector.h"

/* libgomp's; its header belongs to gcc alone. */
extern void omp_set_num_threads(int);

struct shape {
	char ta, tb; /* 'T': the factor is stored transposed */
	size_t m, n, k, ldc;
	bool adds;
};

/* A matmul primitive of one shape, and its handles on whatever memory a call brings. */
struct kept {
	struct shape shape;
	dnnl_primitive_t primitive; /* NULL: could not be made, and is not tried again */
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

/* fp32. */

static void product_float(const struct shape *s, const float *a, size_t lda, const float *b,
			  size_t ldb, float *c)
{
	dnnl_status_t status;

	status = dnnl_sgemm(s->ta, s->tb, (dnnl_dim_t)s->m, (dnnl_dim_t)s->n, (dnnl_dim_t)s->k,
			    1.0f, a, (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, s->adds ? 1 : 0, c,
			    (dnnl_dim_t)s->ldc);
	/* Refused only for wrong arguments, which are ours. */
	assert(status == dnnl_success);
	(void)status;
}

/* bf16. */

bool product_has_bf16(void)
{
	dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();

	return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

/* Touched, so that they are there when they are wanted. */
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
	struct product_thread *t = calloc(1, sizeof(*t));

	if (t) {
		t->a_room = a_room;
		t->b_room = b_room;
		t->a = room_for(a_room);
		t->b = room_for(b_room);
	}
	if (t && t->a && t->b && dnnl_engine_create(&t->engine, dnnl_cpu, 0) == dnnl_success &&
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

/* rows x cols, stored transposed or not, without gaps between rows unless ld says so. */
static bool describe(dnnl_memory_desc_t *d, size_t rows, size_t cols, bool transposed,
		     size_t ld, dnnl_data_type_t type)
{
	dnnl_dims_t dims = { (dnnl_dim_t)rows, (dnnl_dim_t)cols };
	dnnl_dims_t strides = { transposed ? 1 : (dnnl_dim_t)ld,
				transposed ? (dnnl_dim_t)ld : 1 };

	return dnnl_memory_desc_init_by_strides(d, 2, dims, type, strides) == dnnl_success;
}

static bool make_primitive(struct product_thread *t, struct kept *k,
			   const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b,
			   const dnnl_memory_desc_t *c)
{
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t described = NULL;
	dnnl_post_ops_t sum = NULL;
	dnnl_matmul_desc_t matmul;
	bool ok = dnnl_primitive_attr_create(&attr) == dnnl_success &&
		  dnnl_post_ops_create(&sum) == dnnl_success;

	if (ok && k->shape.adds)
		ok = dnnl_post_ops_append_sum(sum, 1.0f) == dnnl_success &&
		     dnnl_primitive_attr_set_post_ops(attr, sum) == dnnl_success;
	ok = ok && dnnl_matmul_desc_init(&matmul, a, b, NULL, c) == dnnl_success &&
	     dnnl_primitive_desc_create(&described, &matmul, attr, t->engine, NULL) ==
		     dnnl_success &&
	     dnnl_primitive_create(&k->primitive, described) == dnnl_success;
	dnnl_primitive_desc_destroy(described);
	dnnl_post_ops_destroy(sum);
	dnnl_primitive_attr_destroy(attr);
	return ok;
}

static struct kept *make(struct product_thread *t, const struct shape *s)
{
	struct kept *k = calloc(1, sizeof(*k));
	dnnl_memory_desc_t a, b, c;

	if (!k)
		return NULL;
	k->shape = *s;
	k->next = t->kept;
	t->kept = k;
	if (!describe(&a, s->m, s->k, s->ta == 'T', s->ta == 'T' ? s->m : s->k, dnnl_bf16) ||
	    !describe(&b, s->k, s->n, s->tb == 'T', s->tb == 'T' ? s->k : s->n, dnnl_bf16) ||
	    !describe(&c, s->m, s->n, false, s->ldc, dnnl_f32) ||
	    dnnl_memory_create(&k->a, &a, t->engine, DNNL_MEMORY_NONE) != dnnl_success ||
	    dnnl_memory_create(&k->b, &b, t->engine, DNNL_MEMORY_NONE) != dnnl_success ||
	    dnnl_memory_create(&k->c, &c, t->engine, DNNL_MEMORY_NONE) != dnnl_success ||
	    !make_primitive(t, k, &a, &b, &c)) {
		dnnl_primitive_destroy(k->primitive);
		k->primitive = NULL;
	}
	return k;
}

static struct kept *find(struct product_thread *t, const struct shape *s)
{
	for (struct kept *k = t->kept; k; k = k->next)
		if (k->shape.ta == s->ta && k->shape.tb == s->tb && k->shape.m == s->m &&
		    k->shape.n == s->n && k->shape.k == s->k && k->shape.ldc == s->ldc &&
		    k->shape.adds == s->adds)
			return k;
	return make(t, s);
}

/* false: not possible here, and fp32 must do. */
static bool product_bf16(struct product_thread *t, const struct shape *s, const float *a,
			 size_t lda, const float *b, size_t ldb, float *c)
{
	const struct vector_ops *v = vector_ops();
	struct kept *k = find(t, s);
	dnnl_exec_arg_t args[3];

	assert(s->m * s->k <= t->a_room && s->n * s->k <= t->b_room);
	if (!k || !k->primitive)
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

static void product(struct product_thread *t, const struct shape *s, const float *a, size_t lda,
		    const float *b, size_t ldb, float *c)
{
	/* Else oneDNN shares the work out with OpenMP. The setting is each thread's own. */
	omp_set_num_threads(1);
	if (!t || !product_bf16(t, s, a, lda, b, ldb, c))
		product_float(s, a, lda, b, ldb, c);
}

void product_nt(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	product(t, &(struct shape){ 'N', 'T', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}

void product_nn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	product(t, &(struct shape){ 'N', 'N', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}

void product_tn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	product(t, &(struct shape){ 'T', 'N', m, n, k, ldc, beta != 0 }, a, lda, b, ldb, c);
}
