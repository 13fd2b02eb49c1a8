/* Compares the numbers by which a fleet is chosen with the model's table of tensors. Also compares
 * them with the device memory of stages on the emulated GPU, which docs/gpu.md lists. */
#include "base/tests/test.h"
#include "model/shape.h"
#include "model/tensor.h"

static const char *const names[] = { "tiny", "30m", "124m", "500m", "1.5b", "7b" };

TEST(weights_are_those_of_the_table_of_tensors)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct model_config c;
		struct hyperparameters r;
		struct model_shape shape;
		struct tensor_table t;

		assert_int_equal(model_preset(names[i], &c, &r, NULL), 0);
		model_shape_of(&c, &r, &shape);
		assert_int_equal(tensor_table_new(&t, &c, NULL), 0);
		for (uint32_t s = 0; s < c.n_stages; s++) {
			double expected = model_layer_count(&c, s) * shape.layer_weights +
					  (s == 0 ? shape.end_weights : 0);

			assert_true((double)tensor_table_parameters(&t, s) == expected);
		}
		tensor_table_free(&t);
	}
}

/* Compares the device memory, in MiB, of stages with three slots: of stage 0, and of another
 * stage. */
static void compare_memory(const char *name, double first_mib, double other_mib)
{
	struct model_config c;
	struct hyperparameters r;
	struct model_shape s;

	assert_int_equal(model_preset(name, &c, &r, NULL), 0);
	/* docs/gpu.md counts the tokens of one context for each slot */
	r.batch = 1;
	r.sequence = c.context;
	model_shape_of(&c, &r, &s);
	for (uint32_t stage = 0; stage < 2; stage++) {
		double layers = model_layer_count(&c, stage);
		double expected = stage ? other_mib : first_mib;
		double bytes = s.weight_bytes * layers * s.layer_weights + s.scratch_bytes +
			       3 * layers * s.kept_bytes[SHAPE_NORMS];

		if (stage == 0)
			bytes += s.weight_bytes * s.end_weights + s.end_scratch_bytes +
				 s.logits_bytes + 3 * s.slot_bytes;
		assert_true(bytes / 0x1p20 > 0.99 * expected && bytes / 0x1p20 < 1.01 * expected);
	}
}

TEST(memory_is_that_of_stages_that_were_made)
{
	compare_memory("124m", 1789, 680);
	compare_memory("500m", 3450, 1882);
	compare_memory("1.5b", 10997, 7461);
}

/* In fp32, numbers have twice the bytes, there is no copy of the weights in bf16, and no memory
 * is reserved for a GPU. */
TEST(an_agent_in_fp32_needs_its_own_memory_alone)
{
	struct model_config c;
	struct hyperparameters r;
	struct model_shape gpu, cpu;

	assert_int_equal(model_preset("124m", &c, &r, NULL), 0);
	model_shape_of(&c, &r, &gpu);
	model_shape_in_fp32(&c, &r, &cpu);
	assert_true(cpu.weight_bytes == 4 * (4 + 2 + 4));
	assert_true(cpu.fixed_bytes == 0);
	assert_true(cpu.kept_bytes[SHAPE_NORMS] > gpu.kept_bytes[SHAPE_NORMS]);
	assert_true(cpu.kept_bytes[SHAPE_BLOCK] == gpu.kept_bytes[SHAPE_BLOCK]);
	assert_true(cpu.layer_flop == gpu.layer_flop);
}

TEST(work_is_counted_as_the_benchmark_counts_it)
{
	struct model_config c;
	struct hyperparameters r;
	struct model_shape s;
	double expected, found;

	assert_int_equal(model_preset("1.5b", &c, &r, NULL), 0);
	model_shape_of(&c, &r, &s);
	/* For each token (6 N + 12 layers dim T) floating-point operations. N does not count the
	 * embedding, which is looked up, nor norms, which are in no matrix product. */
	expected = 6 * (c.n_layers * s.layer_weights + (double)c.vocab * c.dim) +
		   12.0 * c.n_layers * c.dim * r.sequence;
	found = 3 * (c.n_layers * s.layer_flop + s.head_flop) / s.tokens;
	assert_true(found > 0.9999 * expected && found < 1.0001 * expected);
}
