/* Counts the nodes of a cluster file. The supervisor makes a key and a command line for each node
 * before the controller reads the file. */
#include "cli/cluster_size.h"

#include <errno.h>

#include <jansson.h>

#include "base/json.h"

enum { FILE_MOST = 64 << 20 };

int cluster_size(const char *path, uint32_t *nodes, uint32_t *stages, struct error *err)
{
	json_t *root, *list, *counts;
	int rc = json_read_object(path, FILE_MOST, &root, err);

	if (rc != 0)
		return rc;
	list = json_object_get(root, "nodes");
	counts = json_object_get(root, "stages");
	if (json_array_size(list) == 0 || json_array_size(counts) == 0) {
		rc = error_set(err, -EINVAL,
			       "%s: expected the nodes and stages of a skippipe.cluster/1", path);
	} else {
		*nodes = (uint32_t)json_array_size(list);
		*stages = (uint32_t)json_array_size(counts);
	}
	json_decref(root);
	return rc;
}
