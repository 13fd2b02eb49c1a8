/* Compares complete agents on an emulated GPU with the same training by the model's code alone.
 * The GPU itself encodes and decodes activations and the parts of sums. The model's code rounds
 * these tensors with the CPU's codec, and adds on the CPU. The weights must have the same
 * bits. */
#include "agent/tests/cluster.h"
#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

/* Returns a cluster of two or three nodes, because the emulated GPU is slow. The third node is a
 * replica of stage 1. */
static struct cluster *cluster_of_gpus(uint32_t n_nodes, enum tensor_format wire)
{
	static const uint8_t stages[] = { 0, 1, 1 };
	struct cluster *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->options.device = c->options.twin_device = "cuda";
	c->options.wire = wire;
	c->options.patience_us = (int64_t)600 * 1000000;
	cluster_init(c, n_nodes, stages);
	cluster_gather(c);
	for (uint32_t m = 0; m < 2; m++)
		cluster_route(c, m, 2, (uint16_t[]){ 0, (uint16_t)(1 + m % (n_nodes - 1)) });
	return c;
}

TEST(test_training_in_all_formats)
{
	static const enum tensor_format formats[][2] = { { FORMAT_BF16, FORMAT_Q6 },
							 { FORMAT_Q8, FORMAT_FP32 },
							 { FORMAT_Q6, FORMAT_Q4 } };
	struct cluster *c = cluster_of_gpus(3, FORMAT_Q6);
	long encoded = launches[KERNEL_QUANTISE], added = launches[KERNEL_ADD];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		c->options.wire = formats[i][0];
		c->options.sum_wire = formats[i][1];
		cluster_iterate(c);
	}
	assert_true(launches[KERNEL_QUANTISE] > encoded);
	assert_true(launches[KERNEL_ADD] > added);
	cluster_evaluate(c, 1);
	assert_true(c->now.evaluated[0] == cluster_twin_evaluation(c, 0));
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* A node whose outputs are damaged is reported, whatever its device. */
TEST(test_a_damaged_output_is_refused)
{
	struct cluster *c = cluster_of_gpus(2, FORMAT_Q8);

	c->options.may_give_up = true;
	cluster_fault(c, 1, 1, FAULT_CORRUPT, -1, 1);
	cluster_turns(c, 50);
	cluster_start(c);
	cluster_until(c, cluster_any_trouble, "a report of the damage");
	cluster_unmake(c);
}
