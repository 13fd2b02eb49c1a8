/* An executor in a process of its own: requests and answers go through a socket, their arrays
 * lie in memory that both have. The child is forked, and holds the executor that computes. */
#include "verify/executor_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/tensor.h"

enum operation { OP_START, OP_BEGIN, OP_FORWARD, OP_LOSS, OP_BACKWARD, OP_SUM, OP_SET_WEIGHTS };

struct request {
	enum operation operation;
	uint32_t stage, sum; /* BEGIN: sum is their number */
};

struct answer {
	int rc;
	float loss;
	char text[STAGE_DEVICE_SIZE]; /* START */
	struct error err;             /* START */
};

struct process {
	pid_t pid;
	int fd;
	pthread_mutex_t lock; /* one request at a time */
	size_t tokens, activation; /* of an array */
	size_t *parameters;        /* (n_stages) */
	/* Shared. */
	void *memory;
	size_t size;
	int32_t *token, *target;
	float *in, *grad, *out; /* (activation) */
	float *big;             /* (the largest stage's parameters) */
};

/* One mapping made before the fork, in this order: tokens, targets, input, gradient, output, and
 * room for the largest stage's weights or sum. Requests and answers on the socket are small
 * then. */
static int share_memory(struct process *p, const struct executor_setup *setup,
			struct error *err)
{
	struct tensor_table table;
	int rc = tensor_table_new(&table, &setup->config, err);
	size_t most = 0;
	char *at;

	if (rc)
		return rc;
	p->parameters = calloc(setup->config.n_stages, sizeof(*p->parameters));
	for (uint32_t s = 0; p->parameters && s < setup->config.n_stages; s++) {
		p->parameters[s] = tensor_table_parameters(&table, s);
		most = p->parameters[s] > most ? p->parameters[s] : most;
	}
	tensor_table_free(&table);
	if (!p->parameters)
		return error_set(err, -ENOMEM, "out of memory");
	p->tokens = (size_t)setup->batch * setup->sequence;
	p->activation = p->tokens * setup->config.dim;
	p->size = 2 * p->tokens * sizeof(int32_t) +
		  (3 * p->activation + most) * sizeof(float);
	p->memory = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->memory == MAP_FAILED) {
		p->memory = NULL;
		return error_set(err, -ENOMEM, "no memory to share with another process");
	}
	at = p->memory;
	p->token = (int32_t *)(void *)at;
	p->target = p->token + p->tokens;
	p->in = (float *)(void *)(p->target + p->tokens);
	p->grad = p->in + p->activation;
	p->out = p->grad + p->activation;
	p->big = p->out + p->activation;
	return 0;
}

/* ---- the child ---- */

/* In the other process: the operation asked for, on what lies in shared memory. */
static void perform_request(const struct process *p, struct executor *e,
			    const struct request *q, struct answer *a)
{
	bool first = q->stage == 0;
	const int32_t *tokens = first ? p->token : NULL;
	const float *in = first ? NULL : p->in;

	switch (q->operation) {
	case OP_START:
		break;
	case OP_BEGIN:
		a->rc = executor_begin(e, q->sum);
		break;
	case OP_FORWARD:
		a->rc = executor_forward(e, q->stage, tokens, in, p->out);
		break;
	case OP_LOSS:
		a->rc = executor_loss(e, q->sum, p->in, p->target, &a->loss, p->out);
		break;
	case OP_BACKWARD:
		a->rc = executor_backward(e, q->stage, q->sum, tokens, in, p->grad,
					  first ? NULL : p->out);
		break;
	case OP_SUM:
		a->rc = executor_sum(e, q->stage, q->sum, p->big);
		break;
	case OP_SET_WEIGHTS:
		a->rc = executor_set_weights(e, q->stage, p->big);
		break;
	}
}

static bool transfer_bytes(int fd, void *data, size_t size, bool out)
{
	ssize_t n;

	do
		n = out ? send(fd, data, size, MSG_NOSIGNAL) : recv(fd, data, size, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

/* Until the parent shuts the socket, or ends. */
static void serve_requests(const struct process *p, int fd, const struct executor_setup *setup,
			   const char *device)
{
	struct executor *e = NULL;
	struct request q;

	while (transfer_bytes(fd, &q, sizeof(q), false)) {
		struct answer a = { .rc = 0 };

		if (q.operation == OP_START) {
			a.rc = executor_new(&e, setup, device, &a.err);
			if (a.rc == 0)
				snprintf(a.text, sizeof(a.text), "%s", executor_text(e));
		} else {
			perform_request(p, e, &q, &a);
		}
		if (!transfer_bytes(fd, &a, sizeof(a), true))
			break;
	}
	_exit(0);
}

/* ---- the parent ---- */

/* Locked. */
static int ask_process(struct process *p, struct request q, struct answer *a)
{
	if (!transfer_bytes(p->fd, &q, sizeof(q), true) ||
	    !transfer_bytes(p->fd, a, sizeof(*a), false))
		return -EIO;
	return a->rc;
}

static int start_process(struct process *p, const struct executor_setup *setup,
			 const char *device, struct error *err)
{
	pid_t parent = getpid();
	int fds[2];

	/* Packets: whole or not at all. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return error_set(err, -errno, "socketpair: %s", strerror(errno));
	fflush(NULL); /* the child has nothing to say of what waits */
	p->pid = fork();
	if (p->pid == 0) {
		close(fds[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		serve_requests(p, fds[1], setup, device);
	}
	close(fds[1]);
	p->fd = fds[0];
	return p->pid < 0 ? error_set(err, -errno, "fork: %s", strerror(errno)) : 0;
}

void process_end(struct process *p)
{
	if (!p)
		return;
	if (p->fd >= 0) {
		shutdown(p->fd, SHUT_RDWR); /* younger processes have it, too */
		close(p->fd);
	}
	while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (p->memory)
		munmap(p->memory, p->size);
	pthread_mutex_destroy(&p->lock);
	free(p->parameters);
	free(p);
}

/* The memory first, then the fork, then one request that says whether the executor could be made
 * there. */
int executor_new_process(struct executor **out, const struct executor_setup *setup,
			 const char *device, struct error *err)
{
	struct executor *e = calloc(1, sizeof(*e));
	struct process *p = calloc(1, sizeof(*p));
	struct answer a;
	int rc = 0;

	if (!e || !p) {
		free(e);
		free(p);
		return error_set(err, -ENOMEM, "out of memory");
	}
	p->fd = -1;
	pthread_mutex_init(&p->lock, NULL);
	e->setup = *setup;
	e->process = p;
	rc = share_memory(p, setup, err);
	if (rc == 0)
		rc = start_process(p, setup, device, err);
	if (rc == 0) {
		rc = ask_process(p, (struct request){ .operation = OP_START }, &a);
		if (rc == -EIO)
			error_set(err, rc, "%s: the process that was to compute ended", device);
		else if (rc != 0)
			error_set(err, rc, "%s", a.err.text);
	}
	if (rc != 0) {
		executor_free(e);
		return rc;
	}
	snprintf(e->text, sizeof(e->text), "%s", a.text);
	*out = e;
	return 0;
}

int process_begin(struct process *p, uint32_t n)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = ask_process(p, (struct request){ .operation = OP_BEGIN, .sum = n }, &a);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static void put_input(struct process *p, const int32_t *tokens, const float *in)
{
	if (tokens)
		memcpy(p->token, tokens, p->tokens * sizeof(*tokens));
	if (in)
		memcpy(p->in, in, p->activation * sizeof(*in));
}

static void get_output(const struct process *p, float *out)
{
	if (out)
		memcpy(out, p->out, p->activation * sizeof(*out));
}

int process_forward(struct process *p, uint32_t stage, const int32_t *tokens, const float *in,
		    float *out)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	put_input(p, tokens, in);
	rc = ask_process(p, (struct request){ .operation = OP_FORWARD, .stage = stage }, &a);
	get_output(p, out);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int process_loss(struct process *p, uint32_t sum, const float *in, const int32_t *targets,
		 float *loss, float *grad)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	put_input(p, NULL, in);
	memcpy(p->target, targets, p->tokens * sizeof(*targets));
	rc = ask_process(p, (struct request){ .operation = OP_LOSS, .sum = sum }, &a);
	get_output(p, grad);
	pthread_mutex_unlock(&p->lock);
	if (rc == 0)
		*loss = a.loss;
	return rc;
}

int process_backward(struct process *p, uint32_t stage, uint32_t sum, const int32_t *tokens,
		     const float *in, const float *grad_out, float *grad_in)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	put_input(p, tokens, in);
	memcpy(p->grad, grad_out, p->activation * sizeof(*grad_out));
	rc = ask_process(
		p, (struct request){ .operation = OP_BACKWARD, .stage = stage, .sum = sum },
		&a);
	get_output(p, grad_in);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int process_sum(struct process *p, uint32_t stage, uint32_t sum, float *to)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = ask_process(p, (struct request){ .operation = OP_SUM, .stage = stage, .sum = sum },
			 &a);
	memcpy(to, p->big, p->parameters[stage] * sizeof(*to));
	pthread_mutex_unlock(&p->lock);
	return rc;
}

int process_set_weights(struct process *p, uint32_t stage, const float *weights)
{
	struct answer a;
	int rc;

	pthread_mutex_lock(&p->lock);
	memcpy(p->big, weights, p->parameters[stage] * sizeof(*weights));
	rc = ask_process(p, (struct request){ .operation = OP_SET_WEIGHTS, .stage = stage },
			 &a);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
