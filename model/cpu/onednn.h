/* onednn.h - hides the differences between oneDNN 2 and 3. Three calls have different arguments.
 *
 * In version 2 a description of memory is a struct, and an operation is described before its
 * primitive is made. In version 3 a description of memory is a handle, and one call describes the
 * operation and makes its primitive description. Statuses are oneDNN's own; outputs are written
 * only on success. A memory object keeps its description, so callers need not keep it.
 */
#ifndef MODEL_CPU_ONEDNN_H
#define MODEL_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
#endif

/* Makes a matrix whose data is set later (dnnl_memory_set_data_handle). */
static inline dnnl_status_t onednn_memory_create(dnnl_memory_t *m, const dnnl_dims_t dims,
						 const dnnl_dims_t strides,
						 dnnl_data_type_t type, dnnl_engine_t engine)
{
	dnnl_memory_desc_t d;
	dnnl_status_t status;

#if DNNL_VERSION_MAJOR < 3
	status = dnnl_memory_desc_init_by_strides(&d, 2, dims, type, strides);
	if (status != dnnl_success)
		return status;
	return dnnl_memory_create(m, &d, engine, DNNL_MEMORY_NONE);
#else
	status = dnnl_memory_desc_create_with_strides(&d, 2, dims, type, strides);
	if (status != dnnl_success)
		return status;
	status = dnnl_memory_create(m, d, engine, DNNL_MEMORY_NONE);
	dnnl_memory_desc_destroy(d);
	return status;
#endif
}

/* Makes the operation add its result to the present contents of the output. */
static inline dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR < 3
	return dnnl_post_ops_append_sum(ops, 1.0f);
#else
	return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#endif
}

/* c = a b. The caller owns *out (dnnl_primitive_desc_destroy). */
static inline dnnl_status_t onednn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_memory_t a,
						   dnnl_memory_t b, dnnl_memory_t c,
						   dnnl_primitive_attr_t attr,
						   dnnl_engine_t engine)
{
	const_dnnl_memory_desc_t da, db, dc;
	dnnl_status_t status;

	if ((status = dnnl_memory_get_memory_desc(a, &da)) != dnnl_success ||
	    (status = dnnl_memory_get_memory_desc(b, &db)) != dnnl_success ||
	    (status = dnnl_memory_get_memory_desc(c, &dc)) != dnnl_success)
		return status;
#if DNNL_VERSION_MAJOR < 3
	dnnl_matmul_desc_t matmul;

	status = dnnl_matmul_desc_init(&matmul, da, db, NULL, dc);
	return status == dnnl_success ?
		       dnnl_primitive_desc_create(out, &matmul, attr, engine, NULL) :
		       status;
#else
	return dnnl_matmul_primitive_desc_create(out, engine, da, db, NULL, dc, attr);
#endif
}

#endif
