/* network.c - delays and failures of the simulated network: losses, cuts, resets, deaths of
 * processes. */
#include <string.h>

#include "tests/sim/net.h"

struct net net;

void network_begin(int64_t usual_us, double loss)
{
	memset(&net, 0, sizeof(net));
	net.loss = loss;
	for (uint32_t i = 0; i < SIM_PROCESSES; i++)
		for (uint32_t k = 0; k <= i; k++)
			net.delay_us[i][k] = net.delay_us[k][i] =
				sim_draw(usual_us / 4, usual_us * 2);
}

void network_flip(uint32_t process)
{
	net.flips_bit[process] = true;
}

void network_cut(uint32_t a, uint32_t b, int64_t until_us)
{
	net.cut_us[a][b] = net.cut_us[b][a] = until_us;
	for (int i = 0; i < POSTS; i++)
		for (int k = 0; net.posts[i] && k < PEERS; k++) {
			struct peer *r = &net.posts[i]->peers[k];

			if (r->id && r->up && r->other && r->silent_us == INT64_MAX &&
			    net_is_cut(r->post->process, r->process))
				r->silent_us = sim.now_us;
		}
}

void network_narrow(uint32_t from, uint32_t to, int64_t until_us)
{
	net.narrow_us[from][to] = until_us;
}

static bool joins(const struct peer *r, uint32_t a, uint32_t b)
{
	uint32_t from = r->post->process, to = r->process;

	return (from == a && to == b) || (from == b && to == a);
}

void network_reset(uint32_t a, uint32_t b)
{
	for (int i = 0; i < POSTS; i++)
		for (int k = 0; net.posts[i] && k < PEERS; k++) {
			struct peer *r = &net.posts[i]->peers[k];

			if (!r->id || !r->dialed || !r->other || !joins(r, a, b))
				continue;
			r->other->post->broken++;
			net_unjoin(r);
			net_connect_soon(r, sim_draw(1000, 300000));
		}
}

void network_dies(uint32_t process, bool silently)
{
	net.dies_silently[process] = silently;
}
