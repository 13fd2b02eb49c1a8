/* cluster_size.h - counts the nodes in a cluster file; `skippipe rehearse` starts an agent for
 * each. */
#ifndef CLI_CLUSTER_SIZE_H
#define CLI_CLUSTER_SIZE_H

#include <stdint.h>

#include "base/error.h"

/* Counts the nodes and the stages of a file in the format skippipe.cluster/1. -EINVAL: the file
 * lists no nodes or no stages. Only the controller checks the rest of the file. Other errors are
 * those of file_read. */
int cluster_size(const char *path, uint32_t *nodes, uint32_t *stages, struct error *err);

#endif
