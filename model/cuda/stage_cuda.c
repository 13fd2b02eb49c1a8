/* Implements a stage on a GPU. Memory is divided as on the CPU, passes.c queues the work, and the
 * host waits for the device only when it needs a result. A pass that is run often is recorded as a
 * graph and replayed. */
#include "model/cuda/stage_cuda.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "model/cuda/trial.h"

enum {
	ALIGN = 256,
	LOGITS_MOST = 256 << 20, /* limit of the logits that are computed at a time, in floats */
	PIECE_MOST = 1 << 20,    /* floats that are copied at a time through pinned memory */
	SPARE = 512 << 20,       /* bytes of device memory reserved for code */
	LOSS_PASSES = 3,
};

/* ---- construction ---- */

static void carve_scratch(struct cuda_stage *s, struct carver *c)
{
	const struct model_config *m = &s->l->config;
	size_t r = s->rows, w = s->width, last = s->l->index == 0;
	struct cuda_scratch *t = &s->t;

	*t = (struct cuda_scratch){
		.leaves = t->leaves,
		.xn = carve_array(c, r * m->dim, w),
		.h = carve_array(c, r * m->ffn_dim, w),
		.dgu = carve_array(c, r * 2 * m->ffn_dim, w),
		.dh = carve_array(c, r * m->ffn_dim, w),
		.dqkv = carve_array(c, r * s->packed, w),
		.datt = carve_array(c, r * m->dim, w),
		.dxn = carve_array(c, r * m->dim, w),
		.dx = carve_floats(c, r * m->dim),
		.dot = carve_floats(c, r * m->n_heads),
		.parts = carve_floats(c, (r < NORM_PARTS ? r : NORM_PARTS) * m->dim),
		.in = carve_floats(c, last * r * m->dim),
		.logits = carve_floats(c, last * s->chunk * s->vocab_stride),
		.losses = carve_floats(c, last * r),
		.rstd = carve_floats(c, last * r),
		.targets = carve_array(c, last * (r + 1), sizeof(int32_t)),
	};
	t->dx_real = s->l->bf16 ? carve_array(c, r * m->dim, w) : t->dx;
	t->dlogits = s->l->bf16 ? carve_array(c, last * s->chunk * s->vocab_stride, w)
				: t->logits;
}

/* Returns the bytes of a buffer through which an activation crosses the bus; 0: activations stay on
 * the device. The buffer is large enough for any format. A format may also carry the mean of each
 * channel, so a small activation may need more bytes than its floats. */
static size_t crossing_bytes(const struct cuda_stage *s)
{
	return s->l->activations_stay ? 0 : s->rows * s->l->config.dim * sizeof(float) + ALIGN;
}

/* A stage with only_steps has no gradient of its own, so its gradient's array holds the sum. */
static void carve_sums(struct cuda_stage *s, struct carver *c)
{
	s->sums = (struct cuda_sums){
		.array = s->l->only_steps ? s->array[ARRAY_GRADIENT]
					  : carve_floats(c, s->l->parameters),
		.part = carve_floats(c, s->l->only_steps ? 0 : s->pieces.size),
		.bytes = carve_array(c, s->pieces.size, sizeof(float)),
	};
}

static size_t carve_device(struct cuda_stage *s, char *base)
{
	struct carver c = { .base = base, .align = ALIGN };
	size_t half = model_head_size(&s->l->config) / 2, n = s->l->parameters;

	for (int i = 0; i < ARRAY_COUNT; i++)
		s->array[i] = carve_floats(&c, n);
	s->t.leaves = carve_array(&c, hash_leaves(n * sizeof(float)), HASH_DIGEST);
	if (s->l->sums)
		carve_sums(s, &c);
	if (s->l->only_steps)
		return c.used;
	s->rounded = s->l->bf16 ? carve_array(&c, n, sizeof(uint16_t)) : NULL;
	for (int i = 0; i < CROSSINGS; i++) {
		s->crossing.in[i].device = carve_array(&c, crossing_bytes(s), 1);
		s->crossing.out[i] = carve_array(&c, crossing_bytes(s), 1);
	}
	s->cosines = carve_floats(&c, s->l->sequence * half);
	s->sines = carve_floats(&c, s->l->sequence * half);
	carve_scratch(s, &c);
	s->t.attention = carve_array(&c, s->t.attention_bytes, 1);
	carve_slots(&c, s->l, s->width, s->t.xn, s->t.h, s->saved);
	if (s->l->index == 0) {
		s->tokens = carve_array(&c, (s->l->slots + 1) * s->rows, sizeof(int32_t));
		s->order = carve_array(&c, s->l->slots * s->rows, sizeof(int32_t));
	}
	return c.used;
}

static void free_passes(struct pass *passes, size_t n)
{
	for (size_t i = 0; passes && i < n; i++)
		device_graph_free(passes[i].graph);
	free(passes);
}

static void cuda_free(void *self)
{
	struct cuda_stage *s = self;

	free_passes(s->passes.forward, s->l->slots + 1);
	for (int i = 0; i < 2; i++)
		free_passes(s->passes.backward[i], s->l->slots);
	free_passes(s->passes.loss, LOSS_PASSES);
	downloads_close(s->crossing.downloads);
	device_close(s->d);
	free(s->saved);
	free(s);
}

static int fill_angles(struct cuda_stage *s, struct error *err)
{
	size_t n = s->l->sequence * model_head_size(&s->l->config) / 2;
	float *angles = malloc(2 * n * sizeof(*angles));
	int rc;

	if (!angles)
		return error_set(err, -ENOMEM, "no memory for a table of angles");
	model_angles(&s->l->config, s->l->sequence, angles, angles + n);
	device_put(s->d, s->cosines, angles, n * sizeof(*angles));
	device_put(s->d, s->sines, angles + n, n * sizeof(*angles));
	rc = device_status(s->d);
	free(angles);
	return rc ? error_set(err, rc, "the device failed at its first copy: %s",
			      device_failure(s->d))
		  : 0;
}

/* Walks over the host's arrays. A first call with base NULL measures them, and a second call places
 * them. out: receives the buffers of outputs. */
static size_t carve_host(struct cuda_stage *s, char *base, unsigned char *out[CROSSINGS])
{
	struct carver c = { .base = base, .align = ALIGN };
	size_t last = s->l->index == 0;

	s->pieces.at[0] = carve_floats(&c, s->pieces.size);
	s->pieces.at[1] = carve_floats(&c, s->pieces.size);
	s->host_leaves =
		carve_array(&c, hash_leaves(s->l->parameters * sizeof(float)), HASH_DIGEST);
	if (s->l->only_steps)
		return c.used;
	for (int i = 0; i < CROSSINGS; i++) {
		s->crossing.in[i].pinned = carve_array(&c, crossing_bytes(s), 1);
		out[i] = carve_array(&c, crossing_bytes(s), 1);
	}
	s->host_losses = carve_floats(&c, s->rows);
	s->host_tokens = carve_array(&c, last * (s->rows + 1), sizeof(int32_t));
	s->host_order =
		carve_array(&c, last * (s->rows + s->l->config.vocab + 1), sizeof(int32_t));
	return c.used;
}

/* Compares the need for pinned memory with the free memory. Pinned memory cannot be swapped, so a
 * system stalls if too much is pinned. */
static int check_host(const struct cuda_stage *s, struct error *err)
{
	size_t left = s->l->memory_bytes ? s->l->memory_bytes : memory_usable();

	if (s->host_bytes <= left)
		return 0;
	return error_set(err, -ENOMEM,
			 "needs %.1f MiB of pinned host memory, but only %.1f MiB are free",
			 (double)s->host_bytes / 0x1p20, (double)left / 0x1p20);
}

static int allocate_device(struct cuda_stage *s, struct error *err)
{
	void *memory = NULL, *host = NULL;
	unsigned char *out[CROSSINGS];
	int rc;

	s->bytes = carve_device(s, NULL);
	s->host_bytes = carve_host(s, NULL, out);
	rc = check_host(s, err);
	if (!rc)
		rc = device_allocate(s->d, s->bytes, SPARE, &memory, err);
	if (!rc)
		rc = device_allocate_host(s->d, s->host_bytes, &host, err);
	if (rc)
		return error_prefix(err, rc,
				    "stage %u, %u slots of %u x %u tokens, recompute %s",
				    s->l->index, s->l->slots, s->l->batch, s->l->sequence,
				    recompute_name(s->l->recompute));
	carve_device(s, memory);
	carve_host(s, host, out);
	s->crossing.downloads = s->l->only_steps ? NULL : downloads_new(s->d, out);
	for (int i = 0; i < ARRAY_COUNT; i++)
		device_clear(s->d, s->array[i], s->l->parameters * sizeof(float));
	return s->l->only_steps ? 0 : fill_angles(s, err);
}

static int check_heads(const struct stage_layout *l, struct error *err)
{
	uint32_t size = model_head_size(&l->config);

	if (size > HEAD_MOST)
		return error_set(err, -EINVAL, "head size %u: at most %d on the GPU", size,
				 HEAD_MOST);
	if (l->bf16 && size % 16)
		return error_set(err, -EINVAL,
				 "head size %u: a multiple of 16 in bf16 on the GPU", size);
	return 0;
}

/* Checks that the GPU has enough shared memory for a norm's backward pass, and for the attention
 * kernel of the gradients of keys and values. Every other kernel needs less than one of these
 * two. */
static int check_shared(const struct cuda_stage *s, struct error *err)
{
	size_t norm = cuda_norm_shared(s), most = device_shared_most(s->d);
	struct attention_launch l;

	if (norm > most)
		return error_set(err, -EINVAL,
				 "dim %u: a block needs %zu bytes of shared memory, this GPU has "
				 "%zu",
				 s->l->config.dim, norm * sizeof(float), most * sizeof(float));
	if (attention_launch_of(&l, s->d, KERNEL_ATTENTION_DKV, s->l->bf16,
				model_head_size(&s->l->config)))
		return 0;
	return error_set(
		err, -EINVAL,
		"head size %u%s: a block needs %zu KiB of shared memory, this GPU has %zu",
		model_head_size(&s->l->config), s->l->bf16 ? " in bf16" : "",
		l.shared * sizeof(float) >> 10, most * sizeof(float) >> 10);
}

/* Returns how many rows of logits are computed at a time. If all rows fit into LOGITS_MOST, this is
 * all of them. Otherwise the rows are divided into chunks of nearly equal size, if possible
 * multiples of 128, which is a product's tile.
 */
static size_t chunk_of(size_t rows, size_t vocab)
{
	size_t most = LOGITS_MOST / vocab, times, n;

	if (most >= rows)
		return rows;
	most = most > 128 ? most / 128 * 128 : most;
	times = (rows + most - 1) / most;
	n = (rows + times - 1) / times;
	n = (n + 127) / 128 * 128;
	return n < most ? n : most;
}

/* Appends the chosen trials to a device's text, because they change bits. cuDNN's version is named
 * because its code differs between versions. */
static int name_trials(unsigned trials, struct stage_device *out, struct error *err)
{
	size_t used = strlen(out->text), left = sizeof(out->text) - used;
	struct cudnn_functions f;
	int rc;

	if (trials & TRIAL_LOGITS)
		snprintf(out->text + used, left, " logits");
	if (!(trials & TRIAL_ATTENTION))
		return 0;
	rc = cudnn_library(&f, err);
	if (rc == 0)
		rc = cudnn_check(&f, err);
	if (rc != 0)
		return error_prefix(err, rc, "SKIPPIPE_GPU_TRY=attention");
	used = strlen(out->text);
	snprintf(out->text + used, sizeof(out->text) - used, " cuDNN %zu", f.version());
	return 0;
}

static int cuda_look(struct device_name *name, struct stage_device *out, struct error *err)
{
	uint64_t host = memory_usable();
	int rc = device_look(name->number, out->text, sizeof(out->text), &out->free_bytes, err);
	unsigned trials = 0;

	if (!rc)
		rc = trial_read(&trials, err);
	if (!rc)
		rc = name_trials(trials, out, err);
	device_bus_id(name->number, out->bus_id, sizeof(out->bus_id));
	out->device_bytes = out->free_bytes;
	/* The smaller of the free device memory and the free host memory limits the stage. An agent
	 * needs about as much host memory as device memory, for the parts of a sum and for copies
	 * of the stage. */
	if (!rc && host < out->free_bytes)
		out->free_bytes = host;
	out->machine_bytes = host == SIZE_MAX ? UINT64_MAX : host;
	return rc;
}

/* Plans cuDNN's attention, if it was chosen and the stage computes passes in bf16. */
static int plan_attention(struct cuda_stage *s, struct error *err)
{
	const struct model_config *c = &s->l->config;
	const struct cudnn_shape shape = {
		.batch = s->l->batch,
		.length = s->l->sequence,
		.heads = c->n_heads,
		.kv_heads = c->n_kv_heads,
		.size = model_head_size(c),
		.stride = (int64_t)s->packed,
	};
	int rc;

	if (!s->l->bf16 || s->l->only_steps)
		s->trials &= ~(unsigned)TRIAL_ATTENTION;
	if (!(s->trials & TRIAL_ATTENTION))
		return 0;
	rc = device_plan_attention(s->d, &shape, &s->t.attention_bytes, err);
	return rc ? error_prefix(err, rc, "SKIPPIPE_GPU_TRY=attention") : 0;
}

/* Computes sizes from the layout, then makes the host's tables and opens the device. Allocates the
 * device's memory last, once it is known that the kernels have enough shared memory. */
static int cuda_make(void **self, const struct stage_layout *l, struct error *err)
{
	const struct model_config *c = &l->config;
	struct cuda_stage *s;
	int rc = l->only_steps ? 0 : check_heads(l, err);
	unsigned trials = 0;

	if (!rc)
		rc = trial_read(&trials, err);
	if (rc)
		return rc;
	s = alloc_new(sizeof(*s));
	s->trials = trials;
	s->l = l;
	s->rows = (size_t)l->batch * l->sequence;
	s->kv = (size_t)c->n_kv_heads * model_head_size(c);
	s->packed = c->dim + 2 * s->kv;
	s->width = l->bf16 ? sizeof(uint16_t) : sizeof(float);
	s->scale = 1.0f / sqrtf((float)model_head_size(c));
	s->chunk = chunk_of(s->rows, c->vocab);
	s->vocab_stride = ((size_t)c->vocab + 7) / 8 * 8;
	s->pieces.size = l->parameters < PIECE_MOST ? l->parameters : PIECE_MOST;
	s->saved = calloc((size_t)l->slots * l->n_layers + 1, sizeof(*s->saved));
	s->passes.forward = calloc((size_t)l->slots + 1, sizeof(*s->passes.forward));
	for (int i = 0; i < 2; i++)
		s->passes.backward[i] =
			calloc((size_t)l->slots + 1, sizeof(*s->passes.backward[i]));
	s->passes.loss = calloc(LOSS_PASSES, sizeof(*s->passes.loss));
	rc = s->saved && s->passes.forward && s->passes.backward[0] && s->passes.backward[1] &&
			     s->passes.loss
		     ? device_open(&s->d, l->device.number, !l->only_steps, err)
		     : error_set(err, -ENOMEM, "no memory for the slots of a stage");
	if (!rc && !l->only_steps)
		rc = check_shared(s, err);
	if (!rc)
		rc = plan_attention(s, err);
	if (!rc)
		rc = allocate_device(s, err);
	if (rc)
		cuda_free(s);
	else
		*self = s;
	return rc;
}

/* ---- arrays ---- */

/* Marks the host's copies of arrays as outdated, because the device's arrays change. */
static void take_back(struct cuda_stage *s)
{
	for (int i = 0; i < ARRAY_COUNT; i++)
		s->lent[i] = false;
}

/* Pinned memory for an array is allocated at its first use, because pinning some gigabytes takes a
 * second, and most kinds of training request no array. If the machine has too little free memory,
 * the stage fails, and the caller gets an array of zeros whose pages need no memory. */
static float *host_array(struct cuda_stage *s, enum stage_array which)
{
	size_t size = s->l->parameters * sizeof(float);
	struct error err = { "" };
	void *memory = NULL;

	if (s->host[which])
		return s->host[which];
	if (size > memory_usable()) /* pinning so much would stall the system */
		error_set(&err, -ENOMEM, "no %.1f MiB are free", (double)size / 0x1p20);
	else
		device_allocate_host(s->d, size, &memory, &err);
	if (!memory) {
		device_fail(s->d, "an array on the host", err.text);
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			abort();
	}
	s->host[which] = memory;
	return memory;
}

static float *cuda_array(void *self, enum stage_array which)
{
	struct cuda_stage *s = self;

	host_array(s, which);
	device_get(s->d, s->host[which], s->array[which], s->l->parameters * sizeof(float));
	device_status(s->d);
	s->lent[which] = true;
	return s->host[which];
}

/* Updates numbers [at, at + n) of the bf16 copy of the weights, which products read. The first
 * number is rounded down to a multiple of eight, because the kernel reads eight numbers at a
 * time. */
static void round_weights(struct cuda_stage *s, size_t at, size_t n)
{
	size_t first = at / 8 * 8;
	struct cast_args a = { .x = s->array[ARRAY_WEIGHTS] + first, .n = at + n - first };

	if (!s->rounded)
		return;
	a.y = s->rounded + first;
	cuda_each(s, KERNEL_CAST, (a.n + 7) / 8, &a);
}

static void cuda_changed(void *self)
{
	struct cuda_stage *s = self;

	for (int i = 0; i < ARRAY_COUNT; i++)
		if (s->lent[i])
			device_put(s->d, s->array[i], s->host[i],
				   s->l->parameters * sizeof(float));
	round_weights(s, 0, s->l->parameters);
	device_status(s->d);
}

static float *cuda_own(void *self, enum stage_array which)
{
	struct cuda_stage *s = self;

	return s->array[which];
}

/* Copies numbers from the caller's memory to the device. There are two pieces of pinned memory:
 * while one is sent, the next numbers are copied into the other. If the caller's memory is on a
 * GPU, the device copies it without these pieces. */
static void put_numbers(struct cuda_stage *s, float *to, const float *from, size_t n)
{
	if (device_holds(s->d, from)) {
		device_put(s->d, to, from, n * sizeof(*to));
		return;
	}
	for (size_t at = 0, part; at < n; at += part) {
		float *piece = s->pieces.at[s->pieces.next];

		s->pieces.next ^= 1;
		part = n - at < s->pieces.size ? n - at : s->pieces.size;
		memcpy(piece, from + at, part * sizeof(*piece));
		device_status(s->d); /* waits until the other piece is sent */
		device_put(s->d, to + at, piece, part * sizeof(*piece));
	}
}

/* Copies numbers to the caller's memory, and is done on return. While one piece comes from the
 * device, the previous piece is copied to the caller. */
static void get_numbers(struct cuda_stage *s, float *to, const float *from, size_t n)
{
	size_t before = 0, at = 0, part;

	do {
		const float *arrived = s->pieces.at[!s->pieces.next];

		part = n - at < s->pieces.size ? n - at : s->pieces.size;
		device_get(s->d, s->pieces.at[s->pieces.next], from + at, part * sizeof(*to));
		memcpy(to + at - before, arrived, before * sizeof(*to));
		device_status(s->d);
		s->pieces.next ^= 1;
		before = part;
		at += part;
	} while (before > 0);
}

static const enum stage_array state_arrays[] = { ARRAY_WEIGHTS, ARRAY_MOMENT1, ARRAY_MOMENT2 };

/* As after a step, arrays that the caller received earlier are outdated, and changes that the
 * caller has made in these arrays are lost. */
static void cuda_put_state(void *self, size_t at, size_t n, const float *const state[3])
{
	struct cuda_stage *s = self;

	take_back(s);
	for (int k = 0; k < 3; k++)
		if (state[k])
			put_numbers(s, s->array[state_arrays[k]] + at, state[k], n);
	if (state[0])
		round_weights(s, at, n);
	device_status(s->d);
}

static void cuda_get_state(void *self, size_t at, size_t n, float *const state[3])
{
	struct cuda_stage *s = self;

	device_status(s->d); /* waits until no copy uses the pinned pieces */
	for (int k = 0; k < 3; k++)
		if (state[k])
			get_numbers(s, state[k], s->array[state_arrays[k]] + at, n);
}

static uint64_t cuda_hash(void *self)
{
	struct cuda_stage *s = self;
	uint64_t hash;

	cuda_hash_array(s, s->array[ARRAY_WEIGHTS], s->l->parameters, &hash);
	return hash;
}

static const char *cuda_failure(const void *self)
{
	const struct cuda_stage *s = self;

	return device_failure(s->d);
}

static size_t cuda_memory(const void *self)
{
	const struct cuda_stage *s = self;

	return s->bytes;
}

static size_t cuda_host_memory(const void *self)
{
	const struct cuda_stage *s = self;

	return s->host_bytes;
}

static int cuda_zero_gradient(void *self)
{
	struct cuda_stage *s = self;

	take_back(s);
	device_clear(s->d, s->array[ARRAY_GRADIENT], s->l->parameters * sizeof(float));
	return device_status(s->d);
}

/* ---- passes ---- */

static void run_pass(struct cuda_stage *s, struct pass *p, uint32_t slot, bool which,
		     void (*body)(struct cuda_stage *, uint32_t, bool))
{
	if (p->state == PASS_RUN) {
		device_record(s->d);
		body(s, slot, which);
		p->graph = device_recorded(s->d);
		p->state = p->graph ? PASS_REMEMBERED : PASS_PLAIN;
	}
	if (p->state == PASS_REMEMBERED)
		device_replay(s->d, p->graph);
	else
		body(s, slot, which);
	/* The first run is not recorded, because it loads code, and loading cannot be recorded. */
	if (p->state == PASS_NEW)
		p->state = PASS_RUN;
}

static void put_tokens(struct cuda_stage *s, int32_t *to, const int32_t *tokens)
{
	memcpy(s->host_tokens, tokens, s->rows * sizeof(*tokens));
	device_put(s->d, to, s->host_tokens, s->rows * sizeof(*tokens));
}

static float *cuda_room(void *self, struct error *err)
{
	struct cuda_stage *s = self;
	void *room = NULL;

	if (device_allocate(s->d, s->rows * s->l->config.dim * sizeof(float), SPARE, &room, err))
		return NULL;
	return room;
}

/* Stores the encoded activation in t.dx, which no pass uses at this time. */
static int cuda_round(void *self, float *room, const struct codec *codec)
{
	struct cuda_stage *s = self;

	cuda_encode(s, codec, s->t.dx, room, s->rows * s->l->config.dim);
	cuda_decode(s, codec, room, s->t.dx, s->rows * s->l->config.dim);
	return device_status(s->d);
}

/* Sorts the rows by token, on the host by counting. The backward pass then adds up a token's rows
 * in a fixed order without a search. */
static void sort_rows(struct cuda_stage *s, const int32_t *tokens, int32_t *to)
{
	size_t vocab = s->l->config.vocab;
	int32_t *from = s->host_order, *next = from + s->rows;

	memset(next, 0, (vocab + 1) * sizeof(*next));
	for (size_t r = 0; r < s->rows; r++)
		next[tokens[r] + 1]++;
	for (size_t v = 0; v < vocab; v++)
		next[v + 1] += next[v];
	for (size_t r = 0; r < s->rows; r++)
		from[next[tokens[r]]++] = (int32_t)r;
	device_put(s->d, to, from, s->rows * sizeof(*from));
}

static int run_forward(struct cuda_stage *s, struct stage_task *t)
{
	uint32_t at = t->keep ? t->slot : s->l->slots; /* the last slot is for evaluation */
	float *x = s->l->n_layers == 0 ? s->t.dx : s->saved[at * s->l->n_layers].x;

	if (t->tokens) {
		int32_t *to = s->tokens + at * s->rows;
		struct embed_args a = { .tokens = to,
					.table = s->array[ARRAY_WEIGHTS] + s->l->embed,
					.out = x,
					.c = s->l->config.dim };

		put_tokens(s, to, t->tokens);
		cuda_rows(s, KERNEL_EMBED, s->rows, &a);
	} else {
		cuda_put_input(s, x, t);
	}
	run_pass(s, &s->passes.forward[at], t->slot, t->keep, cuda_layers_forward);
	cuda_get_output(s, t, s->t.dx);
	/* The host sorts while the device computes: only the backward pass reads the order. */
	if (t->tokens && t->keep)
		sort_rows(s, t->tokens, s->order + t->slot * s->rows);
	return cuda_finish_pass(s, t);
}

static int run_backward(struct cuda_stage *s, struct stage_task *t)
{
	take_back(s);
	cuda_put_input(s, s->t.dx, t);
	run_pass(s, &s->passes.backward[t->count][t->slot], t->slot, t->count,
		 cuda_layers_backward);
	cuda_get_output(s, t, s->t.dx);
	if (s->l->index == 0 && t->count) {
		unsigned c = s->l->config.dim;
		struct embed_backward_args a = { .tokens = s->tokens + t->slot * s->rows,
						 .order = s->order + t->slot * s->rows,
						 .dx = s->t.dx,
						 .gradient = s->array[ARRAY_GRADIENT] + s->l->embed,
						 .rows = (unsigned)s->rows,
						 .c = c };

		device_launch(s->d, KERNEL_EMBED_BACKWARD, false, s->rows,
			      (c + ROW_THREADS - 1) / ROW_THREADS, ROW_THREADS, ROW_THREADS,
			      &a);
	}
	return cuda_finish_pass(s, t);
}

static bool has_output(const struct stage_task *t)
{
	return t->out || t->leaves;
}

/* Works in chunks of rows, because the logits of all rows would be the stage's largest array. */
static void loss_pass(struct cuda_stage *s, uint32_t gradient, bool count)
{
	const float *scale = (const float *)(const void *)(s->t.targets + s->rows);
	bool rounded = s->l->bf16 && (s->trials & TRIAL_LOGITS);

	device_clear(s->d, s->t.dx, s->rows * s->l->config.dim * sizeof(float));
	for (size_t first = 0, n; first < s->rows; first += n) {
		struct cross_entropy_args a = {
			.logits = rounded ? s->t.dlogits : s->t.logits,
			.rounded = rounded,
			.gradient = s->t.dlogits,
			.targets = s->t.targets + first,
			.losses = s->t.losses + first,
			.scale = gradient ? scale : NULL,
			.vocab = s->l->config.vocab,
			.stride = (unsigned)s->vocab_stride,
		};

		n = s->rows - first < s->chunk ? s->rows - first : s->chunk;
		cuda_head(s, first, n, rounded);
		device_launch(s->d, KERNEL_CROSS_ENTROPY, s->l->bf16, n, 1, LOSS_THREADS,
			      LOSS_THREADS, &a);
		if (gradient)
			cuda_head_backward(s, first, n, count);
	}
}

/* Copies the targets to the device, followed by the factor of the gradient. The factor depends on
 * the targets, so a recorded pass must read it from memory. Returns the number of targets that
 * count. */
static size_t put_targets(struct cuda_stage *s, const int32_t *targets)
{
	size_t counted = 0;
	float scale;

	for (size_t i = 0; i < s->rows; i++)
		counted += targets[i] >= 0;
	scale = 1.0f / (float)(counted ? counted : 1);
	memcpy(s->host_tokens, targets, s->rows * sizeof(*targets));
	memcpy(s->host_tokens + s->rows, &scale, sizeof(scale));
	device_put(s->d, s->t.targets, s->host_tokens, (s->rows + 1) * sizeof(*targets));
	return counted;
}

/* The losses of all rows are copied to the host once, at the end, and added there. */
static int run_loss(struct cuda_stage *s, struct stage_task *t)
{
	bool gradient = has_output(t);
	size_t counted;
	double sum = 0;
	int rc;

	take_back(s);
	cuda_put_input(s, s->t.in, t);
	counted = put_targets(s, t->tokens);
	run_pass(s, &s->passes.loss[gradient ? 1 + t->count : 0], gradient, t->count, loss_pass);
	cuda_get_output(s, t, s->t.dx);
	device_get(s->d, s->host_losses, s->t.losses, s->rows * sizeof(float));
	rc = cuda_finish_pass(s, t);
	for (size_t i = 0; i < s->rows && !rc; i++)
		sum += (double)s->host_losses[i];
	if (!rc)
		t->loss = counted ? (float)(sum / (double)counted) : 0;
	return rc;
}

static int cuda_run(void *self, struct stage_task *t)
{
	if (t->kind == TASK_FORWARD)
		return run_forward(self, t);
	return t->kind == TASK_LOSS ? run_loss(self, t) : run_backward(self, t);
}

/* Copies the first n rows of the chunk. */
static void get_logits(struct cuda_stage *s, float *to, size_t n)
{
	size_t v = s->l->config.vocab;

	if (s->vocab_stride == v)
		device_get(s->d, to, s->t.logits, n * v * sizeof(*to));
	for (size_t r = 0; r < n && s->vocab_stride != v; r++)
		device_get(s->d, to + r * v, s->t.logits + r * s->vocab_stride, v * sizeof(*to));
}

static int cuda_logits(void *self, const float *in, float *logits)
{
	struct cuda_stage *s = self;
	struct stage_task t = { .in = in };
	size_t v = s->l->config.vocab;

	cuda_put_input(s, s->t.in, &t);
	for (size_t first = 0, n; first < s->rows; first += n) {
		n = s->rows - first < s->chunk ? s->rows - first : s->chunk;
		cuda_head(s, first, n, false);
		get_logits(s, logits + first * v, n);
	}
	return device_status(s->d);
}

/* ---- the optimizer ---- */

static int cuda_squares(void *self, double *sum)
{
	struct cuda_stage *s = self;

	return cuda_square_array(s, s->array[ARRAY_GRADIENT], s->l->parameters, sum);
}

/* Makes an optimizer's step. gradient: NULL for the stage's own gradient; stage_summed for the
 * sum on the device; or an array in host memory, which is first copied over the stage's own
 * gradient. */
static int cuda_step(void *self, const float *gradient, float scale, const struct adamw *h,
		     uint64_t t)
{
	struct cuda_stage *s = self;
	bool is_sum = gradient && gradient == s->sums.array;
	const float *g = is_sum ? gradient : s->array[ARRAY_GRADIENT];

	take_back(s);
	if (gradient && !is_sum)
		put_numbers(s, s->array[ARRAY_GRADIENT], gradient, s->l->parameters);
	for (size_t i = 0; i < s->l->n_tensors; i++) {
		const struct tensor *x = &s->l->tensors[i];
		struct adamw_args a = {
			.w = s->array[ARRAY_WEIGHTS] + x->offset,
			.m = s->array[ARRAY_MOMENT1] + x->offset,
			.v = s->array[ARRAY_MOMENT2] + x->offset,
			.g = g + x->offset,
			.n = x->count,
			.f = adamw_factors(h, scale, x->dims > 1 ? h->weight_decay : 0, t),
		};

		cuda_each(s, KERNEL_ADAMW, a.n, &a);
	}
	round_weights(s, 0, s->l->parameters);
	return device_status(s->d);
}

const struct backend backend_cuda = {
	.name = "cuda",
	.look = cuda_look,
	.make = cuda_make,
	.free = cuda_free,
	.failure = cuda_failure,
	.room = cuda_room,
	.round = cuda_round,
	.run = cuda_run,
	.logits = cuda_logits,
	.zero_gradient = cuda_zero_gradient,
	.memory = cuda_memory,
	.host_memory = cuda_host_memory,
	.array = cuda_array,
	.own = cuda_own,
	.changed = cuda_changed,
	.put_state = cuda_put_state,
	.get_state = cuda_get_state,
	.hash = cuda_hash,
	.squares = cuda_squares,
	.encode_gradient = cuda_encode_gradient,
	.add_parts = cuda_add_parts,
	.put_sum = cuda_put_sum,
	.check_sum = cuda_check_sum,
	.summed = cuda_summed,
	.step = cuda_step,
};
