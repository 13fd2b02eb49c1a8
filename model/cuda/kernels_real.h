/* kernels_real.h - kernels over reals, included by kernels.h once for each precision: REAL is
 * what lies in memory, GET makes a float of it and PUT one of a float. */

KERNEL(TYPED(norm), norm_args)
{
	const float *x = a.x + (size_t)BLOCK_X * a.n;
	REAL *y = (REAL *)a.y + (size_t)BLOCK_X * a.n;
	float sum = 0, k;

	if (a.again) {
		k = a.rstd[BLOCK_X];
	} else {
		for (unsigned i = THREAD; i < a.n; i += THREADS)
			sum += x[i] * x[i];
		k = 1.0f / sqrtf(block_sum(sum) / (float)a.n + a.eps);
		if (THREAD == 0)
			a.rstd[BLOCK_X] = k;
	}
	for (unsigned i = THREAD; i < a.n; i += THREADS)
		y[i] = PUT(x[i] * k * a.w[i]);
}

KERNEL(TYPED(norm_backward), norm_backward_args)
{
	size_t at = (size_t)BLOCK_X * a.n;
	const REAL *dy = (const REAL *)a.dy + at;
	float k = a.rstd[BLOCK_X], sum = 0, along;

	for (unsigned i = THREAD; i < a.n; i += THREADS)
		sum += GET(dy[i]) * a.w[i] * a.x[at + i];
	along = block_sum(sum) * k * k * k / (float)a.n;
	for (unsigned i = THREAD; i < a.n; i += THREADS)
		a.dx[at + i] += k * a.w[i] * GET(dy[i]) - along * a.x[at + i];
}

KERNEL(TYPED(norm_weight), norm_weight_args)
{
	unsigned column = BLOCK_X * COLUMNS + THREAD % COLUMNS, group = THREAD / COLUMNS;
	const REAL *dy = (const REAL *)a.dy;
	float sum = 0;

	for (unsigned r = BLOCK_Y * GROUPS + group; r < a.rows && column < a.n;
	     r += GROUPS * NORM_PARTS)
		sum += GET(dy[(size_t)r * a.n + column]) * a.x[(size_t)r * a.n + column] *
		       a.rstd[r];
	SHARED[THREAD] = sum;
	BARRIER();
	if (group == 0 && column < a.n) {
		for (unsigned g = 1; g < GROUPS; g++)
			sum += SHARED[g * COLUMNS + THREAD];
		a.parts[(size_t)BLOCK_Y * a.n + column] = sum;
	}
}

KERNEL(TYPED(rotate), rotate_args)
{
	unsigned position = BLOCK_X % a.period;

	for (unsigned i = THREAD; i < a.heads * a.half; i += THREADS) {
		REAL *p = (REAL *)a.x + (size_t)BLOCK_X * a.stride + i / a.half * 2 * a.half +
			  i % a.half;
		float c = a.cosines[position * a.half + i % a.half];
		float s = a.sign * a.sines[position * a.half + i % a.half];
		float low = GET(p[0]), high = GET(p[a.half]);

		p[0] = PUT(low * c - high * s);
		p[a.half] = PUT(high * c + low * s);
	}
}

KERNEL(TYPED(swiglu), swiglu_args)
{
	const REAL *gate = (const REAL *)a.gu + (size_t)BLOCK_X * 2 * a.f;
	REAL *h = (REAL *)a.h + (size_t)BLOCK_X * a.f;

	for (unsigned i = THREAD; i < a.f; i += THREADS) {
		float g = GET(gate[i]), sigma = 1 / (1 + expf(-g));

		h[i] = PUT(g * sigma * GET(gate[a.f + i]));
	}
}

KERNEL(TYPED(swiglu_backward), swiglu_backward_args)
{
	size_t at = (size_t)BLOCK_X * 2 * a.f;
	const REAL *gu = (const REAL *)a.gu + at;
	const REAL *dh = (const REAL *)a.dh + (size_t)BLOCK_X * a.f;
	REAL *dgu = (REAL *)a.dgu + at;

	for (unsigned i = THREAD; i < a.f; i += THREADS) {
		float g = GET(gu[i]), u = GET(gu[a.f + i]), d = GET(dh[i]);
		float sigma = 1 / (1 + expf(-g)), silu = g * sigma;

		if (a.h)
			((REAL *)a.h)[(size_t)BLOCK_X * a.f + i] = PUT(silu * u);
		dgu[i] = PUT(d * u * (sigma + silu * (1 - sigma)));
		dgu[a.f + i] = PUT(d * silu);
	}
}

KERNEL(TYPED(cross_entropy), cross_entropy_args)
{
	const float *x = a.logits + (size_t)BLOCK_X * a.vocab;
	REAL *gradient = (REAL *)a.gradient + (size_t)BLOCK_X * a.vocab;
	float own = -INFINITY, most, sum = 0;
	int32_t target = a.targets[BLOCK_X];

	/* Maximum and sum in one go: memory is what it waits for. */
	for (unsigned i = THREAD; i < a.vocab; i += THREADS) {
		if (x[i] > own) {
			sum = sum * expf(own - x[i]) + 1;
			own = x[i];
		} else {
			sum += expf(x[i] - own);
		}
	}
	most = block_most(own);
	sum = block_sum(sum * expf(own - most));
	if (THREAD == 0)
		a.losses[BLOCK_X] = target < 0 ? 0 : logf(sum) - (x[target] - most);
	BARRIER(); /* the target's logit has been read: the gradient may lie over it */
	if (a.scale == 0)
		return;
	for (unsigned i = THREAD; i < a.vocab; i += THREADS) {
		float p = expf(x[i] - most) / sum - ((int32_t)i == target ? 1.0f : 0.0f);

		gradient[i] = PUT(target < 0 ? 0 : p * a.scale);
	}
}

KERNEL(TYPED(attention_dot), attention_dot_args)
{
	unsigned b = BLOCK_X / a.length, t = BLOCK_X % a.length;

	for (unsigned h = THREAD; h < a.heads; h += THREADS) {
		size_t at = ((size_t)BLOCK_X * a.heads + h) * a.size;
		const REAL *out = (const REAL *)a.out + at, *dout = (const REAL *)a.dout + at;
		float sum = 0;

		for (unsigned i = 0; i < a.size; i++)
			sum += GET(out[i]) * GET(dout[i]);
		a.dot[((size_t)b * a.heads + h) * a.length + t] = sum;
	}
}

KERNEL(TYPED(cast), cast_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;

	if (i < a.n)
		((REAL *)a.y)[i] = PUT(a.x[i]);
}
