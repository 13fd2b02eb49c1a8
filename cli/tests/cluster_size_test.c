/* Tests counting the nodes in a cluster file. Files without nodes are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "cli/cluster_size.h"

static int size_of(const char *text, uint32_t *nodes, uint32_t *stages, struct error *err)
{
	char path[] = "/tmp/cluster_size_test.XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
	rc = cluster_size(path, nodes, stages, err);
	unlink(path);
	return rc;
}

TEST(nodes_and_stages_are_counted)
{
	uint32_t nodes = 0, stages = 0;

	assert_int_equal(size_of("{\"stages\": [2, 1], \"nodes\": [{}, {}, {}]}", &nodes, &stages,
				 NULL), 0);
	assert_int_equal(nodes, 3);
	assert_int_equal(stages, 2);
}

TEST(other_files_are_refused_by_name)
{
	static const char *const texts[] = { "", "{", "[]", "{\"nodes\": 3, \"stages\": [1]}",
					     "{\"nodes\": [{}]}" };
	uint32_t nodes, stages;
	struct error err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(size_of(texts[i], &nodes, &stages, &err), -EINVAL);
		assert_non_null(strstr(err.text, "/tmp/cluster_size_test."));
	}
	assert_int_equal(cluster_size("/tmp/there/is/none", &nodes, &stages, &err), -ENOENT);
}
