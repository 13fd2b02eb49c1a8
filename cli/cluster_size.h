/* cluster_size.h - the size of the cluster in a file, for which `skippipe rehearse` starts agents.
 */
#ifndef CLI_CLUSTER_SIZE_H
#define CLI_CLUSTER_SIZE_H

#include <stdint.h>

#include "base/error.h"

/* Counts the nodes and the stages of a skippipe.cluster/1. -EINVAL: there are none; the controller
 * checks everything else. Other errors are those of file_read. */
int cluster_size(const char *path, uint32_t *nodes, uint32_t *stages, struct error *err);

#endif
