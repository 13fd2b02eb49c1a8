/* chain.c - converts between a task of a microbatch and its position in the chain (chain.h).
 * Agents, the controller and consoles share these functions, so that all these programs number
 * tasks alike. */
#include "wire/chain.h"

uint32_t chain_hop(uint32_t n_hops, uint32_t position)
{
	if (position < n_hops)
		return position;
	return position == n_hops || position >= 2 * n_hops ? 0 : 2 * n_hops - position;
}

enum task_kind chain_kind(uint32_t n_hops, uint32_t position)
{
	if (position < n_hops)
		return TASK_FORWARD;
	return position == n_hops ? TASK_LOSS : TASK_BACKWARD;
}

uint32_t chain_position(uint32_t n_hops, uint32_t hop, enum task_kind kind)
{
	if (kind == TASK_FORWARD)
		return hop;
	return kind == TASK_LOSS ? n_hops : 2 * n_hops - hop;
}

int chain_find(const uint16_t *nodes, uint32_t n_hops, uint16_t node)
{
	for (uint32_t h = 0; h < n_hops; h++)
		if (nodes[h] == node)
			return (int)h;
	return -1;
}
