/* state.c - makes and frees the parts of an agent that need only memory. Gives each part pointers
 * to the parts that it works on. */
#include "agent/state.h"

#include <stdlib.h>

#include "agent/execution/tasks.h"
#include "agent/heartbeat.h"
#include "agent/network/connections.h"
#include "agent/network/gpu_monitor.h"
#include "agent/network/measure.h"
#include "agent/network/report.h"
#include "agent/network/packet_trains.h"
#include "agent/orders.h"
#include "agent/sums/reduction.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/outputs.h"
#include "agent/weights/corpus_files.h"
#include "agent/weights/files.h"
#include "agent/weights/restore.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "base/alloc.h"

/* Gives the iteration pointers to the modules, which must exist by now. */
static void set_iteration_uses(struct agent *a, const struct agent_options *options)
{
	a->iteration.uses = (struct iteration_uses){ .memory_bytes = options->memory_bytes,
						     .saves = options->run_dir != NULL,
						     .tell = &a->tell,
						     .run = &a->run,
						     .held = &a->held,
						     .progress = &a->progress,
						     .requests = &a->requests,
						     .report = a->modules.report,
						     .misuse = &a->modules.misuse,
						     .link_times = &a->modules.link_times,
						     .links = &a->modules.links,
						     .outputs = a->modules.outputs,
						     .plans = &a->modules.plans,
						     .tasks = a->modules.tasks,
						     .device_clock = a->modules.device_clock,
						     .reduction = a->modules.reduction,
						     .standby = a->modules.standby };
}

/* Makes the modules that measure and connect. */
static void make_links(struct agent *a)
{
	const struct agent_options *options = &a->options;

	a->modules.link_times.peers = &a->peers;
	a->modules.link_times.progress = &a->progress;
	a->modules.misuse = (struct misuse){ &a->peers, &a->held, &a->progress };
	a->modules.trains = packet_trains_new(&a->peers, a->self.bound);
	a->modules.measure = measure_new(&a->peers, a->modules.trains, &a->modules.link_times);
	a->modules.connections = connections_new(&a->peers);
	a->modules.delay_queue = delay_queue_new();
	a->modules.links = (struct links){ .message_bytes = options->message_bytes,
					   .piece_bytes = options->piece_bytes,
					   .threads_from_bytes = options->threads_from_bytes,
					   .peers = &a->peers,
					   .link_times = &a->modules.link_times,
					   .delay_queue = a->modules.delay_queue,
					   .run = &a->run,
					   .held = &a->held,
					   .progress = &a->progress,
					   .faults = &a->faults,
					   .tell = &a->tell };
}

struct agent *state_new(const struct agent_options *options)
{
	struct agent *a = alloc_new(sizeof(*a));

	a->options = *options;
	a->tell.log = options->log;
	a->held.stage = MSG_NO_STAGE;
	a->admitted = keys_list_new();
	a->peers.run = &a->run;
	a->peers.faults = &a->faults;
	a->peers.tell = &a->tell;
	a->iteration.routes = alloc_array(MSG_MICROBATCHES, sizeof(a->iteration.routes[0]));
	a->modules.orders = orders_new();
	a->modules.report = report_new(&a->tell, &a->run, &a->progress);
	a->modules.heartbeat = heartbeat_new();
	make_links(a);
	a->modules.outputs = outputs_new();
	a->modules.plans = (struct plans){ .run = &a->run, .tell = &a->tell };
	a->modules.device_clock = device_clock_new();
	a->modules.tasks = tasks_new(&(struct tasks_uses){ .tell = &a->tell,
							   .run = &a->run,
							   .held = &a->held,
							   .progress = &a->progress,
							   .requests = &a->requests,
							   .faults = &a->faults,
							   .outputs = a->modules.outputs,
							   .report = a->modules.report,
							   .links = &a->modules.links,
							   .device_clock =
								   a->modules.device_clock });
	a->modules.reduction = reduction_new(&(struct reduction_uses){
		.tell = &a->tell,
		.run = &a->run,
		.held = &a->held,
		.requests = &a->requests,
		.report = a->modules.report,
		.links = &a->modules.links,
		.delay_queue = a->modules.delay_queue,
	});
	a->modules.standby = standby_new(&(struct standby_uses){ .tell = &a->tell,
								 .run = &a->run,
								 .requests = &a->requests,
								 .peers = &a->peers,
								 .links = &a->modules.links });
	a->modules.files = files_new(&a->tell, options->run_dir);
	a->modules.corpus_files =
		corpus_files_new(&a->tell, a->modules.files, options->corpus, options->n_corpus);
	a->modules.restore = restore_new(&(struct restore_uses){
		.tell = &a->tell,
		.run = &a->run,
		.held = &a->held,
		.progress = &a->progress,
		.requests = &a->requests,
		.peers = &a->peers,
		.links = &a->modules.links,
		.files = a->modules.files,
		.run_dir = options->run_dir,
	});
	a->modules.weight_server = weight_server_new(&(struct weight_server_uses){
		.tell = &a->tell,
		.run = &a->run,
		.held = &a->held,
		.standby = a->modules.standby,
		.links = &a->modules.links,
		.delay_queue = a->modules.delay_queue,
	});
	set_iteration_uses(a, options);
	return a;
}

void state_free(struct agent *a)
{
	if (!a)
		return;
	orders_free(a->modules.orders);
	report_free(a->modules.report);
	heartbeat_free(a->modules.heartbeat);
	gpu_monitor_free(a->modules.gpu_monitor);
	measure_free(a->modules.measure);
	connections_free(a->modules.connections);
	packet_trains_free(a->modules.trains);
	outputs_free(a->modules.outputs);
	delay_queue_free(a->modules.delay_queue);
	tasks_free(a->modules.tasks);
	device_clock_free(a->modules.device_clock);
	reduction_free(a->modules.reduction);
	standby_free(a->modules.standby);
	restore_free(a->modules.restore);
	files_free(a->modules.files);
	corpus_files_free(a->modules.corpus_files);
	weight_server_free(a->modules.weight_server);
	free(a->iteration.routes);
	keys_list_free(a->admitted);
	free(a);
}
