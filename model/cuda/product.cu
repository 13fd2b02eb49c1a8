/* Matrix products by cuBLASLt. For each shape, cuBLASLt is asked once, and its descriptors and the
 * algorithm that it proposes are kept. The library is opened when the first GPU is found, so that
 * this program also starts on a machine without the CUDA toolkit. */
extern "C" {
#include "base/error.h" /* these headers are C, and are not written for C++ */
#include "model/cuda/cublas_library.h"
}

#include "model/cuda/product.cuh"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#define LIBRARY_FUNCTIONS(X) \
	X(GetVersion) X(Create) X(Destroy) X(Matmul) X(MatmulAlgoGetHeuristic) \
	X(MatmulDescCreate) X(MatmulDescDestroy) X(MatmulDescSetAttribute) \
	X(MatrixLayoutCreate) X(MatrixLayoutDestroy) \
	X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy) X(MatmulPreferenceSetAttribute)

struct library {
#define FIELD(name) decltype(&cublasLt##name) name;
	LIBRARY_FUNCTIONS(FIELD)
#undef FIELD
	bool open;
	struct error failure;
};

#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x

static struct library load_library(void)
{
#define NAME(name) "cublasLt" #name,
	static const char *const names[] = { LIBRARY_FUNCTIONS(NAME) };
#undef NAME
	void *functions[sizeof(names) / sizeof(names[0])], **next = functions;
	struct library l = {};

	l.open = cublas_library_open("libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR),
				     CUBLAS_VER_MAJOR, names, functions,
				     sizeof(names) / sizeof(names[0]), &l.failure) == 0;
	if (!l.open)
		return l;
#define TAKE(name) l.name = (decltype(l.name))*next++;
	LIBRARY_FUNCTIONS(TAKE)
#undef TAKE
	return l;
}

/* Returns the library. The first call, from any thread, loads it, and it stays loaded until the
 * process ends. */
static const struct library &library(void)
{
	static const struct library loaded = load_library();

	return loaded;
}

int products_look(unsigned number, struct error *err)
{
	const struct library &l = library();

	if (l.open)
		return 0;
	return error_set(err, -ENODEV, "device cuda:%u: %s", number, l.failure.text);
}

size_t products_version(void)
{
	return library().open ? library().GetVersion() : 0;
}

enum { WORKSPACE = 32 << 20 };

struct shape {
	enum device_product_kind kind;
	bool bf16, c_bf16, add, in_place; /* in_place: the product is added to c itself */
	size_t m, n, k, lda, ldb, ldc;
	/* Alignment of the matrices in bytes, because an algorithm may need 16. */
	uint32_t align_a, align_b, align_c, align_added;
};

struct product_plan {
	struct shape shape;
	cublasLtMatmulDesc_t matmul;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algorithm;
	bool usable;
	struct product_plan *next;
};

struct products {
	cublasLtHandle_t handle;
	void *workspace;
	struct product_plan *plans;
};

struct products *products_new(void)
{
	struct products *p = (struct products *)calloc(1, sizeof(*p));

	if (p && library().Create(&p->handle) == CUBLAS_STATUS_SUCCESS &&
	    cudaMalloc(&p->workspace, WORKSPACE) == cudaSuccess)
		return p;
	products_free(p);
	return NULL;
}

void products_free(struct products *p)
{
	if (!p)
		return;
	for (struct product_plan *l = p->plans, *next; l; l = next) {
		next = l->next;
		library().MatrixLayoutDestroy(l->a);
		library().MatrixLayoutDestroy(l->b);
		library().MatrixLayoutDestroy(l->c);
		library().MatmulDescDestroy(l->matmul);
		free(l);
	}
	cudaFree(p->workspace);
	if (p->handle)
		library().Destroy(p->handle);
	free(p);
}

static uint32_t alignment(const void *p)
{
	uintptr_t at = (uintptr_t)p;
	uint32_t align = 256;

	while (at % align)
		align /= 2;
	return align;
}

/* Describes a product's shape. Sets every byte of *s, so that shapes can be compared as bytes. */
static void shape_of(struct shape *s, const struct device_product *p)
{
	memset(s, 0, sizeof(*s));
	s->kind = p->kind;
	s->bf16 = p->bf16;
	s->c_bf16 = p->c_bf16;
	s->add = p->added != NULL;
	s->in_place = p->added == p->c;
	s->m = p->m;
	s->n = p->n;
	s->k = p->k;
	s->lda = p->lda;
	s->ldb = p->ldb;
	s->ldc = p->ldc;
	s->align_a = alignment(p->a);
	s->align_b = alignment(p->b);
	s->align_c = alignment(p->c);
	s->align_added = p->added ? alignment(p->added) : s->align_c;
}

/* Describes a matrix for cuBLASLt: a row-major matrix (rows, columns) is a column-major matrix
 * (columns, rows). */
static bool layout(cublasLtMatrixLayout_t *l, bool bf16, size_t rows, size_t columns, size_t ld)
{
	return library().MatrixLayoutCreate(l, bf16 ? CUDA_R_16BF : CUDA_R_32F, columns, rows,
					  (int64_t)ld) == CUBLAS_STATUS_SUCCESS;
}

static bool prefer(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
		   const void *value, size_t size)
{
	return library().MatmulPreferenceSetAttribute(p, what, value, size) ==
	       CUBLAS_STATUS_SUCCESS;
}

/* Takes cuBLASLt's first proposal. If a product is split along k, its parts must stay floats in the
 * workspace until a kernel adds them in a fixed order. Parts in the type of C would lose bits in
 * bf16, and parts added in place would have no fixed order. cuBLASLt's matrices are column-major,
 * so its first factor is our second. */
static bool choose(struct products *p, struct product_plan *l)
{
	uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	size_t workspace = WORKSPACE;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t result;
	int found = 0;
	bool ok;

	if (library().MatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
		return false;
	ok = prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
		    sizeof(workspace)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
		    sizeof(reductions)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &l->shape.align_b,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &l->shape.align_a,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &l->shape.align_added,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &l->shape.align_c,
		    sizeof(uint32_t)) &&
	     library().MatmulAlgoGetHeuristic(p->handle, l->matmul, l->b, l->a, l->c, l->c,
					    preference, 1, &result,
					    &found) == CUBLAS_STATUS_SUCCESS &&
	     found == 1 && result.state == CUBLAS_STATUS_SUCCESS;
	library().MatmulPreferenceDestroy(preference);
	if (ok)
		l->algorithm = result.algo;
	return ok;
}

static bool describe(struct product_plan *l)
{
	const struct shape *s = &l->shape;
	cublasOperation_t first = s->kind == PRODUCT_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasOperation_t second = s->kind == PRODUCT_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
	bool a_turned = s->kind == PRODUCT_TN, b_turned = s->kind == PRODUCT_NT;

	return library().MatmulDescCreate(&l->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
		       CUBLAS_STATUS_SUCCESS &&
	       library().MatmulDescSetAttribute(l->matmul, CUBLASLT_MATMUL_DESC_TRANSA, &first,
					      sizeof(first)) == CUBLAS_STATUS_SUCCESS &&
	       library().MatmulDescSetAttribute(l->matmul, CUBLASLT_MATMUL_DESC_TRANSB, &second,
					      sizeof(second)) == CUBLAS_STATUS_SUCCESS &&
	       layout(&l->a, s->bf16, a_turned ? s->k : s->m, a_turned ? s->m : s->k, s->lda) &&
	       layout(&l->b, s->bf16, b_turned ? s->n : s->k, b_turned ? s->k : s->n, s->ldb) &&
	       layout(&l->c, s->c_bf16, s->m, s->n, s->ldc);
}

static struct product_plan *find(struct products *p, const struct device_product *what)
{
	struct shape shape;
	struct product_plan *l;

	shape_of(&shape, what);
	for (l = p->plans; l; l = l->next)
		if (memcmp(&l->shape, &shape, sizeof(shape)) == 0)
			return l;
	l = (struct product_plan *)calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	memcpy(&l->shape, &shape, sizeof(shape));
	l->usable = describe(l) && choose(p, l);
	l->next = p->plans;
	p->plans = l;
	return l;
}

bool products_run(struct products *p, const struct device_product *what, cudaStream_t stream)
{
	struct product_plan *l = find(p, what);
	float one = 1, beta = what->added ? 1.0f : 0.0f;
	const void *added = what->added ? what->added : what->c;

	return l && l->usable &&
	       library().Matmul(p->handle, l->matmul, &one, what->b, l->b, what->a, l->a, &beta,
			      added, l->c, what->c, l->c, &l->algorithm, p->workspace,
			      WORKSPACE, stream) == CUBLAS_STATUS_SUCCESS;
}
