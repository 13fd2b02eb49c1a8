/* Lists the instruction sets that this machine has, best first. */
#include "model/vector/vector.h"

#include <string.h>

#include "model/vector/vector_sets.h"

const struct vector_ops *vector_ops_at(size_t i)
{
	const struct vector_ops *runs[3];
	size_t n = 0;

#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		runs[n++] = &vector_ops_v4;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("bmi2"))
		runs[n++] = &vector_ops_v3;
#endif
	runs[n++] = &vector_ops_plain;
	return i < n ? runs[i] : NULL;
}

const struct vector_ops *vector_ops_named(const char *name)
{
	const struct vector_ops *v = NULL;

	for (size_t i = 0; (v = vector_ops_at(i)) && strcmp(v->name, name) != 0; i++)
		;
	return v;
}

const struct vector_ops *vector_ops(void)
{
	return vector_ops_at(0);
}
