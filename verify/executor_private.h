/* executor_private.h - what the two files of executor.h share. */
#ifndef VERIFY_EXECUTOR_PRIVATE_H
#define VERIFY_EXECUTOR_PRIVATE_H

#include "verify/executor.h"

struct process; /* executor_process.c */

struct executor {
	struct executor_setup setup;
	char text[STAGE_DEVICE_SIZE];
	struct process *process; /* NULL: all below is here */
	struct stage **stages;   /* (n_stages) one slot each */
	float **scratch;         /* (n_stages, B * T * C): outputs nobody wants */
	uint32_t *held;          /* (n_stages) the sum in the stage's own gradient */
	float **saved;           /* (n_sums, P) the others; NULL: nothing */
	uint32_t n_sums;
};

/* Each is the function of executor.h of that name, asked of the other process and waited for.
 * -EIO: it is gone. */
int process_begin(struct process *p, uint32_t n);
int process_forward(struct process *p, uint32_t stage, const int32_t *tokens, const float *in,
		    float *out);
int process_loss(struct process *p, uint32_t sum, const float *in, const int32_t *targets,
		 float *loss, float *grad);
int process_backward(struct process *p, uint32_t stage, uint32_t sum, const int32_t *tokens,
		     const float *in, const float *grad_out, float *grad_in);
int process_sum(struct process *p, uint32_t stage, uint32_t sum, float *to);
int process_set_weights(struct process *p, uint32_t stage, const float *weights);
/* Ends the process and waits for it; NULL is allowed. */
void process_end(struct process *p);

#endif
