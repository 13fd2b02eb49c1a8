/* kernels_real.h - kernels for numbers that are float or bf16 in memory. kernels.h includes this
 * file once for float and once for bf16. REAL is the type in memory. GET converts a REAL to float,
 * and PUT converts a float to REAL.
 *
 * The speed of memory limits all these kernels. A thread therefore reads and writes eight numbers
 * at a time (GET_EIGHT, PUT_EIGHT) if the row begins at a multiple of 16 bytes and its length is a
 * multiple of eight. Other rows are read number by number. The choice depends on sizes and
 * addresses alone, so the order of a sum is always the same.
 */

KERNEL(TYPED(norm), norm_args)
{
	const float *x = a.x + (size_t)BLOCK_X * a.n;
	REAL *y = (REAL *)a.y + (size_t)BLOCK_X * a.n;
	bool eights = whole_eights(a.n) && in_place(x) && in_place(y) && in_place(a.w);
	float sum = 0, k, own[8], w[8];

	for (unsigned i = 8 * THREAD; eights && i < a.n; i += 8 * THREADS) {
		get_eight_float(x + i, own);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			sum += own[e] * own[e];
	}
	for (unsigned i = THREAD; !eights && i < a.n; i += THREADS)
		sum += x[i] * x[i];
	k = 1.0f / sqrtf(block_sum(sum) / (float)a.n + a.eps);
	if (THREAD == 0)
		a.rstd[BLOCK_X] = k;
	for (unsigned i = 8 * THREAD; eights && i < a.n; i += 8 * THREADS) {
		get_eight_float(x + i, own);
		get_eight_float(a.w + i, w);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			own[e] = own[e] * k * w[e];
		PUT_EIGHT(y + i, own);
	}
	for (unsigned i = THREAD; !eights && i < a.n; i += THREADS)
		y[i] = PUT(x[i] * k * a.w[i]);
}

/* Returns this thread's part of the sum of dy w x over a row. */
DEVICE float TYPED(norm_along)(const struct norm_backward_args *a, size_t at, bool eights)
{
	const REAL *dy = (const REAL *)a->dy + at;
	float sum = 0, w[8], is[8], up[8];

	for (unsigned i = 8 * THREAD; eights && i < a->n; i += 8 * THREADS) {
		GET_EIGHT(dy + i, up);
		get_eight_float(a->w + i, w);
		get_eight_float(a->x + at + i, is);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			sum += up[e] * w[e] * is[e];
	}
	for (unsigned i = THREAD; !eights && i < a->n; i += THREADS)
		sum += GET(dy[i]) * a->w[i] * a->x[at + i];
	return sum;
}

/* Computes eight numbers of a row. sums: the block's sums of these columns. */
DEVICE void TYPED(norm_eight)(const struct norm_backward_args *a, size_t at, unsigned i, float k,
			      float along, float *sums)
{
	float w[8], is[8], up[8], to[8];

	GET_EIGHT((const REAL *)a->dy + at + i, up);
	get_eight_float(a->w + i, w);
	get_eight_float(a->x + at + i, is);
	get_eight_float(a->dx + at + i, to);
	UNROLL
	for (unsigned e = 0; e < 8; e++)
		to[e] += k * w[e] * up[e] - along * is[e];
	put_eight_float(a->dx + at + i, to);
	if (a->rounded)
		PUT_EIGHT((REAL *)a->rounded + at + i, to);
	if (a->parts) {
		get_eight_float(sums + i, to);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			to[e] += up[e] * is[e] * k;
		put_eight_float(sums + i, to);
	}
	if (a->y) {
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			is[e] = is[e] * k * w[e];
		PUT_EIGHT((REAL *)a->y + at + i, is);
	}
}

DEVICE void TYPED(norm_one)(const struct norm_backward_args *a, size_t at, unsigned i, float k,
			    float along, float *sums)
{
	float up = GET(((const REAL *)a->dy)[at + i]), is = a->x[at + i];
	float to = a->dx[at + i] + (k * a->w[i] * up - along * is);

	a->dx[at + i] = to;
	if (a->rounded)
		((REAL *)a->rounded)[at + i] = PUT(to);
	if (a->parts)
		sums[i] += up * is * k;
	if (a->y)
		((REAL *)a->y)[at + i] = PUT(is * k * a->w[i]);
}

/* A thread has the same columns in every row, so it needs no barrier for its sums. */
KERNEL(TYPED(norm_backward), norm_backward_args)
{
	bool eights = whole_eights(a.n) && in_place(a.dy) && in_place(a.x) && in_place(a.dx) &&
		      in_place(a.w) && in_place(a.rounded) && in_place(a.y);
	unsigned step = eights ? 8 : 1;
	float *sums = SHARED + THREADS;
	float *part = a.parts ? a.parts + (size_t)BLOCK_X * a.n : NULL;

	for (unsigned i = step * THREAD; a.parts && i < a.n; i += step * THREADS)
		for (unsigned e = 0; e < step; e++)
			sums[i + e] = 0;
	for (unsigned row = BLOCK_X; row < a.rows; row += NORM_PARTS) {
		size_t at = (size_t)row * a.n;
		float k = a.rstd[row];
		float along = block_sum(TYPED(norm_along)(&a, at, eights)) * k * k * k / (float)a.n;

		for (unsigned i = 8 * THREAD; eights && i < a.n; i += 8 * THREADS)
			TYPED(norm_eight)(&a, at, i, k, along, sums);
		for (unsigned i = THREAD; !eights && i < a.n; i += THREADS)
			TYPED(norm_one)(&a, at, i, k, along, sums);
	}
	for (unsigned i = step * THREAD; a.parts && i < a.n; i += step * THREADS)
		for (unsigned e = 0; e < step; e++)
			part[i + e] = sums[i + e];
}

KERNEL(TYPED(rotate), rotate_args)
{
	const float *cosines = a.cosines + (size_t)(BLOCK_X % a.period) * a.half;
	const float *sines = a.sines + (size_t)(BLOCK_X % a.period) * a.half;
	REAL *x = (REAL *)a.x + (size_t)BLOCK_X * a.stride;
	bool eights = whole_eights(a.half) && in_place(x) && in_place(cosines) && in_place(sines);
	float c8[8], s8[8], low8[8], high8[8], x8[8], y8[8];

	for (unsigned i = 8 * THREAD; eights && i < a.heads * a.half; i += 8 * THREADS) {
		REAL *p = x + i / a.half * 2 * a.half + i % a.half;

		get_eight_float(cosines + i % a.half, c8);
		get_eight_float(sines + i % a.half, s8);
		GET_EIGHT(p, low8);
		GET_EIGHT(p + a.half, high8);
		UNROLL
		for (unsigned e = 0; e < 8; e++) {
			float s = a.sign * s8[e];

			x8[e] = low8[e] * c8[e] - high8[e] * s;
			y8[e] = high8[e] * c8[e] + low8[e] * s;
		}
		PUT_EIGHT(p, x8);
		PUT_EIGHT(p + a.half, y8);
	}
	for (unsigned i = THREAD; !eights && i < a.heads * a.half; i += THREADS) {
		REAL *p = x + i / a.half * 2 * a.half + i % a.half;
		float c = cosines[i % a.half];
		float s = a.sign * sines[i % a.half];
		float low = GET(p[0]), high = GET(p[a.half]);

		p[0] = PUT(low * c - high * s);
		p[a.half] = PUT(high * c + low * s);
	}
}

KERNEL(TYPED(swiglu), swiglu_args)
{
	const REAL *gate = (const REAL *)a.gu + (size_t)BLOCK_X * 2 * a.f;
	REAL *h = (REAL *)a.h + (size_t)BLOCK_X * a.f;
	bool eights = whole_eights(a.f) && in_place(gate) && in_place(h);
	float g8[8], u8[8];

	for (unsigned i = 8 * THREAD; eights && i < a.f; i += 8 * THREADS) {
		GET_EIGHT(gate + i, g8);
		GET_EIGHT(gate + a.f + i, u8);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			u8[e] = g8[e] * (1 / (1 + expf(-g8[e]))) * u8[e];
		PUT_EIGHT(h + i, u8);
	}
	for (unsigned i = THREAD; !eights && i < a.f; i += THREADS) {
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
	REAL *h = a.h ? (REAL *)a.h + (size_t)BLOCK_X * a.f : (REAL *)0;
	bool eights = whole_eights(a.f) && in_place(gu) && in_place(dh) && in_place(dgu) &&
		      (!a.h || in_place(h));
	float g8[8], u8[8], d8[8], h8[8];

	for (unsigned i = 8 * THREAD; eights && i < a.f; i += 8 * THREADS) {
		GET_EIGHT(gu + i, g8);
		GET_EIGHT(gu + a.f + i, u8);
		GET_EIGHT(dh + i, d8);
		UNROLL
		for (unsigned e = 0; e < 8; e++) {
			float sigma = 1 / (1 + expf(-g8[e])), silu = g8[e] * sigma;

			h8[e] = silu * u8[e];
			g8[e] = d8[e] * u8[e] * (sigma + silu * (1 - sigma));
			u8[e] = d8[e] * silu;
		}
		if (a.h)
			PUT_EIGHT(h + i, h8);
		PUT_EIGHT(dgu + i, g8);
		PUT_EIGHT(dgu + a.f + i, u8);
	}
	for (unsigned i = THREAD; !eights && i < a.f; i += THREADS) {
		float g = GET(gu[i]), u = GET(gu[a.f + i]), d = GET(dh[i]);
		float sigma = 1 / (1 + expf(-g)), silu = g * sigma;

		if (a.h)
			h[i] = PUT(silu * u);
		dgu[i] = PUT(d * u * (sigma + silu * (1 - sigma)));
		dgu[a.f + i] = PUT(d * silu);
	}
}

/* Return one logit of this block's row, or eight consecutive logits. */
DEVICE float TYPED(logit)(const struct cross_entropy_args *a, unsigned i)
{
	size_t at = (size_t)BLOCK_X * a->stride + i;

	return a->rounded ? GET(((const REAL *)a->logits)[at]) : ((const float *)a->logits)[at];
}

DEVICE void TYPED(logit_eight)(const struct cross_entropy_args *a, unsigned i, float to[8])
{
	size_t at = (size_t)BLOCK_X * a->stride + i;

	if (a->rounded)
		GET_EIGHT((const REAL *)a->logits + at, to);
	else
		get_eight_float((const float *)a->logits + at, to);
}

KERNEL(TYPED(cross_entropy), cross_entropy_args)
{
	REAL *gradient = (REAL *)a.gradient + (size_t)BLOCK_X * a.stride;
	float own = -INFINITY, most, sum = 0, inverse, scale, eight[8];
	int32_t target = a.targets[BLOCK_X];
	bool eights = whole_eights(a.vocab) && whole_eights(a.stride) && in_place(a.logits) &&
		      in_place(gradient);

	/* Computes maximum and sum in one pass. For a row that does not begin at a multiple of 16
	 * bytes, four loads are under way at a time. */
	for (unsigned i = 8 * THREAD; eights && i < a.vocab; i += 8 * THREADS) {
		float top = own;

		TYPED(logit_eight)(&a, i, eight);
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			top = fmaxf(top, eight[e]);
		if (top > own)
			sum *= expf(own - top);
		own = top;
		UNROLL
		for (unsigned e = 0; e < 8; e++)
			sum += expf(eight[e] - own);
	}
	for (unsigned i = THREAD; !eights && i < a.vocab; i += 4 * THREADS) {
		float four[4], top = own;

		UNROLL
		for (unsigned e = 0; e < 4; e++)
			four[e] = i + e * THREADS < a.vocab ? TYPED(logit)(&a, i + e * THREADS)
							    : -INFINITY;
		UNROLL
		for (unsigned e = 0; e < 4; e++)
			top = fmaxf(top, four[e]);
		if (top > own)
			sum *= expf(own - top);
		own = top;
		UNROLL
		for (unsigned e = 0; e < 4; e++)
			sum += expf(four[e] - own);
	}
	most = block_most(own);
	sum = block_sum(sum * expf(own - most));
	if (THREAD == 0)
		a.losses[BLOCK_X] =
			target < 0 ? 0 : logf(sum) - (TYPED(logit)(&a, (unsigned)target) - most);
	/* All threads have now read the target's logit, so the gradient may overwrite it. */
	BARRIER();
	if (!a.scale)
		return;
	scale = *a.scale;
	inverse = 1 / sum;
	for (unsigned i = 8 * THREAD; eights && i < a.vocab; i += 8 * THREADS) {
		TYPED(logit_eight)(&a, i, eight);
		UNROLL
		for (unsigned e = 0; e < 8; e++) {
			float p = expf(eight[e] - most) * inverse -
				  ((int32_t)(i + e) == target ? 1.0f : 0.0f);

			eight[e] = target < 0 ? 0 : p * scale;
		}
		PUT_EIGHT(gradient + i, eight);
	}
	for (unsigned first = THREAD; !eights && first < a.vocab; first += 4 * THREADS) {
		float four[4];

		UNROLL
		for (unsigned e = 0; e < 4; e++)
			four[e] = first + e * THREADS < a.vocab
					  ? TYPED(logit)(&a, first + e * THREADS)
					  : 0;
		UNROLL
		for (unsigned e = 0; e < 4; e++) {
			unsigned i = first + e * THREADS;
			float p = expf(four[e] - most) * inverse -
				  ((int32_t)i == target ? 1.0f : 0.0f);

			if (i < a.vocab)
				gradient[i] = PUT(target < 0 ? 0 : p * scale);
		}
	}
}

KERNEL(TYPED(attention_dot), attention_dot_args)
{
	unsigned b = BLOCK_X / a.length, t = BLOCK_X % a.length;
	unsigned share = THREAD % DOT_SHARE, heads = THREADS / DOT_SHARE;
	const REAL *out = (const REAL *)a.out + (size_t)BLOCK_X * a.heads * a.size;
	const REAL *dout = (const REAL *)a.dout + (size_t)BLOCK_X * a.heads * a.size;
	bool eights = whole_eights(a.size) && in_place(out) && in_place(dout);
	float x[8], y[8];

	/* Every thread of a warp must run this loop equally often, even if no head is left for it,
	 * because the warp's threads add up their sums together. */
	for (unsigned first = 0; first < a.heads; first += heads) {
		unsigned h = first + THREAD / DOT_SHARE, at = h * a.size;
		unsigned n = h < a.heads ? a.size : 0;
		float sum = 0;

		for (unsigned i = 8 * share; eights && i < n; i += 8 * DOT_SHARE) {
			GET_EIGHT(out + at + i, x);
			GET_EIGHT(dout + at + i, y);
			UNROLL
			for (unsigned e = 0; e < 8; e++)
				sum += x[e] * y[e];
		}
		for (unsigned i = share; !eights && i < n; i += DOT_SHARE)
			sum += GET(out[at + i]) * GET(dout[at + i]);
		for (unsigned other = 1; other < DOT_SHARE; other *= 2)
			sum += ACROSS(sum, other);
		if (share == 0 && h < a.heads)
			a.dot[((size_t)b * a.heads + h) * a.length + t] = sum;
	}
}

KERNEL(TYPED(cast), cast_args)
{
	size_t i = 8 * ((size_t)BLOCK_X * THREADS + THREAD), end = i + 8 < a.n ? i + 8 : a.n;
	REAL *y = (REAL *)a.y;
	float own[8];

	if (i + 8 <= a.n && in_place(a.x) && in_place(y)) {
		get_eight_float(a.x + i, own);
		PUT_EIGHT(y + i, own);
		return;
	}
	for (; i < end; i++)
		y[i] = PUT(a.x[i]);
}
