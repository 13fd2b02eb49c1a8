/* Matrix products by cuBLASLt. For each shape, the descriptors and the algorithm are kept. The
 * algorithm comes from a table (product_table.h), or is the first that cuBLASLt proposes. The
 * library is opened when the first GPU is found, so that this program also starts on a machine
 * without the CUDA toolkit. */
extern "C" {
#include "base/clock.h" /* these headers are C, and are not written for C++ */
#include "base/error.h"
#include "base/file.h"
#include "model/cuda/library.h"
#include "model/cuda/product_table.h"
#include "model/hash.h"
}

#include "model/cuda/product.cuh"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	static const struct nvidia_library cublas = {
		"libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR), "cuBLAS", "cublas",
		"install the CUDA toolkit's libcublas, version " TEXT_OF(CUBLAS_VER_MAJOR), names,
		sizeof(names) / sizeof(names[0])
	};
	struct library l = {};

	l.open = nvidia_library_open(&cublas, functions, &l.failure) == 0;
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

size_t products_version(void)
{
	return library().open ? library().GetVersion() : 0;
}

enum { WORKSPACE = 32 << 20, TABLE_MOST = 16 << 20 };

/* The table of algorithms, as it was when the process first needed it. Later changes of the file
 * have no effect, because the device's text has already named the table. */
struct listed {
	struct product_table table; /* empty: no table was given */
	int rc;
	struct error failure;
};

static struct listed read_table(void)
{
	const char *file = getenv("SKIPPIPE_GPU_TABLE");
	struct listed l = {};
	char *text = NULL;
	size_t size;

	if (file && !(l.rc = file_read_text(file, TABLE_MOST, &text, &size, &l.failure)))
		l.rc = product_table_parse(&l.table, text, file, &l.failure);
	free(text);
	return l;
}

static const struct listed &listed(void)
{
	static const struct listed read = read_table();

	return read;
}

int products_look(unsigned number, struct error *err)
{
	const struct library &l = library();

	if (!l.open)
		return error_set(err, -ENODEV, "device cuda:%u: %s", number, l.failure.text);
	if (listed().rc)
		return error_set(err, -EINVAL, "device cuda:%u: SKIPPIPE_GPU_TABLE: %s", number,
				 listed().failure.text);
	return 0;
}

/* Names the process in the device's text while algorithms are timed, because another process may
 * choose other algorithms. */
void products_describe(const char *card, char *text, size_t size)
{
	size_t used = strlen(text);

	product_table_describe(&listed().table, card, text, size);
	if (getenv("SKIPPIPE_GPU_TUNE"))
		snprintf(text + used, size - used, " tuning %d", (int)getpid());
}

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
	char *card;
};

struct products *products_new(const char *card)
{
	struct products *p = (struct products *)calloc(1, sizeof(*p));

	if (p && (p->card = strdup(card)) &&
	    library().Create(&p->handle) == CUBLAS_STATUS_SUCCESS &&
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
	free(p->card);
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

/* Asks cuBLASLt for algorithms, the most promising first, and returns their number. If a product is
 * split along k, its parts must stay floats in the workspace until a kernel adds them in a fixed
 * order. Parts in the type of C would lose bits in bf16, and parts added in place would have no
 * fixed order. cuBLASLt's matrices are column-major, so cuBLASLt's first factor is the second
 * factor here. */
static int ask(struct products *p, const struct product_plan *l, const struct shape *s,
	       cublasLtMatmulHeuristicResult_t *results, int most)
{
	uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	size_t workspace = WORKSPACE;
	cublasLtMatmulPreference_t preference;
	int found = 0;
	bool ok;

	if (library().MatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
		return 0;
	ok = prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
		    sizeof(workspace)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
		    sizeof(reductions)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &s->align_b,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &s->align_a,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &s->align_added,
		    sizeof(uint32_t)) &&
	     prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &s->align_c,
		    sizeof(uint32_t)) &&
	     library().MatmulAlgoGetHeuristic(p->handle, l->matmul, l->b, l->a, l->c, l->c,
					      preference, most, results,
					      &found) == CUBLAS_STATUS_SUCCESS;
	library().MatmulPreferenceDestroy(preference);
	return ok ? found : 0;
}

static bool multiply(struct products *p, const struct product_plan *l,
		     const cublasLtMatmulAlgo_t *algorithm, const struct device_product *what,
		     cudaStream_t stream)
{
	float one = 1, beta = what->added ? 1.0f : 0.0f;
	const void *added = what->added ? what->added : what->c;

	return library().Matmul(p->handle, l->matmul, &one, what->b, l->b, what->a, l->a, &beta,
				added, l->c, what->c, l->c, algorithm, p->workspace, WORKSPACE,
				stream) == CUBLAS_STATUS_SUCCESS;
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

/* ---- tuning ---- */

enum { CANDIDATES = 32, TIMED_RUNS = 20, EQUAL_RUNS = 20 };

/* Returns the microseconds of TIMED_RUNS products; INT64_MAX if cuBLASLt refuses the algorithm. */
static int64_t time_of(struct products *p, const struct product_plan *l,
		       const cublasLtMatmulAlgo_t *algorithm, const struct device_product *what,
		       cudaStream_t stream)
{
	int64_t begin;
	bool ok = multiply(p, l, algorithm, what, stream); /* loads the code */

	cudaStreamSynchronize(stream);
	begin = clock_monotonic_us();
	for (int i = 0; i < TIMED_RUNS && ok; i++)
		ok = multiply(p, l, algorithm, what, stream);
	ok = cudaStreamSynchronize(stream) == cudaSuccess && ok;
	return ok ? clock_monotonic_us() - begin : INT64_MAX;
}

/* Returns true if the algorithm gives the same bits each time that it computes the same product.
 * what->c: device memory of `size` bytes; host: `size` bytes of host memory. */
static bool repeats(struct products *p, const struct product_plan *l,
		    const cublasLtMatmulAlgo_t *algorithm, const struct device_product *what,
		    void *host, size_t size, cudaStream_t stream)
{
	uint64_t first = 0, hash;
	bool same = true;

	for (int i = 0; i < EQUAL_RUNS && same; i++) {
		same = cudaMemsetAsync(what->c, 0, size, stream) == cudaSuccess &&
		       multiply(p, l, algorithm, what, stream) &&
		       cudaMemcpyAsync(host, what->c, size, cudaMemcpyDefault, stream) ==
			       cudaSuccess &&
		       cudaStreamSynchronize(stream) == cudaSuccess;
		hash = hash_bytes(host, size);
		first = i == 0 ? hash : first;
		same = same && hash == first;
	}
	return same;
}

/* Times the algorithms that ask() allows. Takes the quickest one that repeats its bits, and appends
 * it to the file that SKIPPIPE_GPU_TUNE names. The products are made in memory of their own, so the
 * caller's arrays do not change. */
static bool tune(struct products *p, struct product_plan *l, const struct device_product *what,
		 cudaStream_t stream)
{
	size_t size = what->m * what->ldc * (what->c_bf16 ? sizeof(uint16_t) : sizeof(float));
	cublasLtMatmulHeuristicResult_t results[CANDIDATES];
	struct device_product trial = *what;
	struct shape asked = l->shape;
	FILE *to = fopen(getenv("SKIPPIPE_GPU_TUNE"), "a");
	void *host = malloc(size);
	int64_t least = INT64_MAX;
	int best = -1, n = 0;

	if (!to) {
		free(host);
		return false;
	}
	asked.align_a = asked.align_b = asked.align_c = asked.align_added = PRODUCT_ALIGNMENT;
	trial.c = NULL;
	if (host && cudaMalloc(&trial.c, size) == cudaSuccess)
		n = ask(p, l, &asked, results, CANDIDATES);
	trial.added = what->added == what->c ? trial.c : what->added;
	for (int i = 0; i < n; i++) {
		const cublasLtMatmulAlgo_t *algorithm = &results[i].algo;
		int64_t us = results[i].state == CUBLAS_STATUS_SUCCESS
				     ? time_of(p, l, algorithm, &trial, stream)
				     : INT64_MAX;

		if (us < least && repeats(p, l, algorithm, &trial, host, size, stream)) {
			least = us;
			best = i;
		}
	}
	if (best >= 0) {
		l->algorithm = results[best].algo;
		product_table_print(to, p->card, what, l->algorithm.data);
	}
	cudaFree(trial.c);
	free(host);
	return fclose(to) == 0 && best >= 0;
}

/* Takes the table's algorithm or, if the table lacks the product, cuBLASLt's first proposal. */
static bool choose(struct products *p, struct product_plan *l, const struct device_product *what,
		   cudaStream_t stream)
{
	const uint64_t *words = product_table_find(&listed().table, p->card, what);
	cublasLtMatmulHeuristicResult_t result;

	static_assert(sizeof(l->algorithm) == PRODUCT_ALGORITHM * sizeof(*words),
		      "a row of the table has a whole algorithm");
	if (!words && getenv("SKIPPIPE_GPU_TUNE") && product_table_allows(what))
		return tune(p, l, what, stream);
	if (words)
		memcpy(&l->algorithm, words, sizeof(l->algorithm));
	else if (ask(p, l, &l->shape, &result, 1) == 1 && result.state == CUBLAS_STATUS_SUCCESS)
		l->algorithm = result.algo;
	else
		return false;
	return true;
}

static struct product_plan *find(struct products *p, const struct device_product *what,
				 cudaStream_t stream)
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
	l->usable = describe(l) && choose(p, l, what, stream);
	l->next = p->plans;
	p->plans = l;
	return l;
}

bool products_run(struct products *p, const struct device_product *what, cudaStream_t stream)
{
	struct product_plan *l = find(p, what, stream);

	return l && l->usable && multiply(p, l, &l->algorithm, what, stream);
}
