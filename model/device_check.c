/* device_check.c - computes one microbatch on a device and on the CPU. Without this check, a card
 * that computes wrong numbers would be found only iterations later, by comparing hashes. */
#include "model/device_check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/device_name.h"

enum { BATCH = 2, SEQUENCE = 32, ROWS = BATCH * SEQUENCE };

static const struct model_config small = { .vocab = 300,
					   .dim = 192,
					   .n_layers = 4,
					   .n_heads = 3,
					   .n_kv_heads = 1,
					   .ffn_dim = 160,
					   .context = 128,
					   .n_stages = 2,
					   .rope_theta = 10000,
					   .norm_eps = 1e-5f,
					   .init_std = 0.02f };

static int make_trainer(struct trainer **out, const char *device, struct error *err)
{
	const struct hyperparameters hyper = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f },
					       .clip = 1 };
	const struct stage_options o = {
		.batch = BATCH, .sequence = SEQUENCE, .threads = 1, .seed = 3, .device = device
	};

	return trainer_new(out, &small, &hyper, &o, err);
}

static int run_microbatch(struct trainer *t, double *loss)
{
	static const uint32_t path[] = { 1 };
	int32_t tokens[ROWS], targets[ROWS];
	float value = NAN;
	struct rng r;
	int rc;

	rng_init(&r, 1);
	for (int i = 0; i < ROWS; i++) {
		tokens[i] = (int32_t)rng_below(&r, small.vocab);
		targets[i] = (int32_t)rng_below(&r, small.vocab);
	}
	rc = trainer_microbatch(t, path, 1, tokens, targets, &value);
	*loss = (double)value;
	return rc;
}

double device_check_furthest(struct trainer *device, struct trainer *cpu, uint32_t stages,
			     float *(*array)(struct stage *))
{
	double worst = 0;

	for (uint32_t s = 0; s < stages; s++) {
		size_t n;
		const struct tensor *t = stage_tensors(trainer_stages(cpu)[s], &n);
		const float *g = array(trainer_stages(device)[s]);
		const float *c = array(trainer_stages(cpu)[s]);

		for (size_t i = 0; i < n; i++) {
			double difference = 0, size = 0;

			for (size_t k = t[i].offset; k < t[i].offset + t[i].count; k++) {
				double d = (double)g[k] - (double)c[k];

				difference += d * d;
				size += (double)c[k] * (double)c[k];
			}
			/* NaN must remain NaN, but fmax would return the other number. */
			difference = sqrt(difference / (size + 1e-300));
			worst = difference > worst || isnan(difference) ? difference : worst;
		}
	}
	return worst;
}

static int judge(const struct device_check *c, const char *device, double most, struct error *err)
{
	if (!(fabs(c->loss - c->loss_on_cpu) <= most / 10 * c->loss_on_cpu))
		return error_set(
			err, -EIO,
			"device %s: it computes wrong numbers: the loss of a microbatch is "
			"%.6g, and %.6g on the CPU: the card or its memory is faulty, or "
			"its driver",
			device, c->loss, c->loss_on_cpu);
	if (!(c->gradient_error <= most))
		return error_set(err, -EIO,
				 "device %s: it computes wrong numbers: the gradients of a "
				 "microbatch differ by %.2g of their size from the CPU's: the card "
				 "or its memory is faulty, or its driver",
				 device, c->gradient_error);
	return 0;
}

/* Compares the loss on a CPU with the known loss of an untrained model, the logarithm of the
 * vocabulary's size. */
static int judge_cpu(struct device_check *c, const char *device, struct error *err)
{
	c->loss_on_cpu = log(small.vocab);
	if (fabs(c->loss - c->loss_on_cpu) <= 0.1 * c->loss_on_cpu)
		return 0;
	return error_set(err, -EIO,
			 "device %s: it computes wrong numbers: the loss of an untrained model is "
			 "%.6g, and should be near %.6g: the processor or its memory is faulty",
			 device, c->loss, c->loss_on_cpu);
}

int device_check(struct device_check *out, const char *device, struct error *err)
{
	struct trainer *here = NULL, *cpu = NULL;
	struct device_check c = { .gradient_error = 0 };
	struct device_name name;
	int rc = device_name_parse(&name, device, err);

	if (rc == 0)
		rc = make_trainer(&here, device, err);
	if (rc == 0 && name.cuda)
		rc = make_trainer(&cpu, "cpu", err);
	if (rc == 0 && run_microbatch(here, &c.loss) != 0)
		rc = error_set(err, -EIO, "device %s: a microbatch failed: %s", device,
			       trainer_failure(here));
	if (rc == 0 && cpu) {
		run_microbatch(cpu, &c.loss_on_cpu);
		c.gradient_error = device_check_furthest(here, cpu, small.n_stages, stage_gradient);
		rc = trainer_failure(here)[0]
			     ? error_set(err, -EIO, "%s", trainer_failure(here))
			     : judge(&c, device, name.bf16 ? DEVICE_CHECK_BF16 : DEVICE_CHECK_FP32,
				     err);
	} else if (rc == 0) {
		rc = judge_cpu(&c, device, err);
	}
	trainer_free(here);
	trainer_free(cpu);
	if (rc == 0)
		*out = c;
	return rc;
}
