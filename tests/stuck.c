/* stuck.c - a matrix product that never returns while the file named by the variable STUCK exists.
 * Thus it behaves like a thread that waits for a hung GPU. The library is loaded with
 * LD_PRELOAD. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int dnnl_sgemm(char a, char b, long m, long n, long k, float alpha, const float *x, long ldx,
	       const float *y, long ldy, float beta, float *z, long ldz)
{
	static int (*real)(char, char, long, long, long, float, const float *, long,
			   const float *, long, float, float *, long);
	const char *file = getenv("STUCK");

	while (file && access(file, F_OK) == 0)
		pause();
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dnnl_sgemm");
	return real(a, b, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz);
}
