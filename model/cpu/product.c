#include "model/cpu/product.h"

#include <assert.h>

#include <oneapi/dnnl/dnnl.h>

/* libgomp's; its header belongs to gcc alone. */
extern void omp_set_num_threads(int);

static void product(char ta, char tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
		    const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	dnnl_status_t status;

	/* Else oneDNN shares the work out with OpenMP. The setting is each thread's own. */
	omp_set_num_threads(1);
	status = dnnl_sgemm(ta, tb, (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1.0f, a,
			    (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, beta, c, (dnnl_dim_t)ldc);
	/* Refused only for wrong arguments, which are ours. */
	assert(status == dnnl_success);
	(void)status;
}

void product_nt(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc)
{
	product('N', 'T', m, n, k, a, lda, b, ldb, beta, c, ldc);
}

void product_nn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc)
{
	product('N', 'N', m, n, k, a, lda, b, ldb, beta, c, ldc);
}

void product_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc)
{
	product('T', 'N', m, n, k, a, lda, b, ldb, beta, c, ldc);
}
