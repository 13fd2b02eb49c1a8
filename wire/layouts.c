/* layouts.c - the tables of all messages: for each field its kind, its offset in the struct, and
 * its limit. The functions of msg.c use only these tables, so a field without a row here is not
 * sent. */
#include "wire/layouts.h"

#include "base/tensor_format.h"
#include "wire/keys.h"

#include <stddef.h>

#define N(k, s, f)          { k, offsetof(struct s, f), 0, 0, U8, NULL, false }
#define NMAX(k, s, f, m)    { k, offsetof(struct s, f), 0, m, U8, NULL, false }
#define TXT(s, f) \
	{ TEXT, offsetof(struct s, f), 0, sizeof(((struct s *)0)->f), U8, NULL, false }
#define BIN(s, f) \
	{ RAW, offsetof(struct s, f), 0, sizeof(((struct s *)0)->f), U8, NULL, false }
#define LIST(w, s, c, f, k, m, l, i) \
	{ w, offsetof(struct s, f), offsetof(struct s, c), m, k, l, i }
#define ARR(s, c, f, k, m)  LIST(ARRAY, s, c, f, k, m, NULL, false)
#define SHR(s, c, f, k, m)  LIST(SHARED, s, c, f, k, m, NULL, false)
#define SUB(s, c, f, l, m)  LIST(ARRAY, s, c, f, U8, m, &l, false)
#define GPU(s) \
	NMAX(U8, s, gpu.known, GPU_ALL), NMAX(U8, s, gpu.utilisation, 100), \
	NMAX(U8, s, gpu.temperature_c, GPU_TEMPERATURE_MOST_C), \
	NMAX(U8, s, gpu.throttling, GPU_THROTTLING_ALL), \
	NMAX(U32, s, gpu.power_mw, GPU_POWER_MOST_MW), \
	NMAX(U32, s, gpu.power_limit_mw, GPU_POWER_MOST_MW), \
	NMAX(U32, s, gpu.memory_used_mib, GPU_MEMORY_MOST_MIB), \
	NMAX(U32, s, gpu.memory_mib, GPU_MEMORY_MOST_MIB)
#define DEVICE_TIME(s) \
	N(U64, s, spent.us[DEVICE_BUSY]), N(U64, s, spent.us[DEVICE_HOST]), \
	N(U64, s, spent.us[DEVICE_NETWORK]), N(U64, s, spent.us[DEVICE_OTHERS])
#define LAYOUT(name) \
	static const struct layout name##_layout = { name##_fields, \
		sizeof(name##_fields) / sizeof(name##_fields[0]), sizeof(struct name) }

static const struct field route_fields[] = {
	N(U32, route, microbatch), NMAX(U32, route, attempt, 1u << 30), N(U32, route, shard),
	N(U32, route, wave), LIST(ARRAY, route, n_hops, nodes, U16, ROUTE_HOPS, NULL, true),
	LIST(SHARED, route, n_hops, stages, U8, ROUTE_HOPS, NULL, true),
	NMAX(U32, route, since, 1u << 30),
};
LAYOUT(route);

static const struct field msg_rank_fields[] = {
	N(U32, msg_rank, microbatch), NMAX(U8, msg_rank, kind, TASK_BACKWARD),
};
LAYOUT(msg_rank);

static const struct field msg_task_event_fields[] = {
	NMAX(U8, msg_task_event, type, WORK_ENDS), NMAX(U8, msg_task_event, kind, TASK_EVALUATE),
	NMAX(U16, msg_task_event, node, MSG_NODES - 1), N(U16, msg_task_event, blocker_node),
	N(U32, msg_task_event, microbatch), N(U32, msg_task_event, attempt),
	N(U32, msg_task_event, blocker), N(U64, msg_task_event, at_us),
	N(U64, msg_task_event, arrived_us),
	N(U32, msg_task_event, late_us),
	N(F32, msg_task_event, loss), NMAX(U8, msg_task_event, counted, 1),
	N(U8, msg_task_event, slots),
};
LAYOUT(msg_task_event);

static const struct field msg_hello_fields[] = {
	N(U32, msg_hello, protocol),
	N(U32, msg_hello, node),
	N(U64, msg_hello, incarnation),
	TXT(msg_hello, address),
	TXT(msg_hello, device),
	TXT(msg_hello, host),
	N(U64, msg_hello, pid),
	N(U64, msg_hello, run),
	NMAX(U8, msg_hello, stage, MSG_STAGES - 1),
	N(U64, msg_hello, committed),
	N(U64, msg_hello, hash),
	N(U8, msg_hello, keeps),
	N(U64, msg_hello, kept),
	N(U64, msg_hello, kept_hash),
	NMAX(U8, msg_hello, saves, 1),
	N(U64, msg_hello, memory_bytes),
	N(U64, msg_hello, machine_bytes),
	N(U32, msg_hello, cores),
	N(U32, msg_hello, quota),
	TXT(msg_hello, machine),
	N(U64, msg_hello, network),
	TXT(msg_hello, inside),
	TXT(msg_hello, place),
	TXT(msg_hello, card),
};
LAYOUT(msg_hello);

static const struct field msg_ready_fields[] = {
	N(U64, msg_ready, assignment), NMAX(U8, msg_ready, stage, MSG_STAGES - 1),
	N(U64, msg_ready, iteration),
	N(U64, msg_ready, hash), N(F64, msg_ready, forward_s), N(F64, msg_ready, backward_s),
	N(F64, msg_ready, loss_s), N(U64, msg_ready, corpus_hash),
};
LAYOUT(msg_ready);

static const struct field msg_stuck_fields[] = {
	NMAX(U16, msg_stuck, to, MSG_NODES - 1), N(U32, msg_stuck, ms),
	N(U32, msg_stuck, expected_ms), NMAX(U8, msg_stuck, small_passes, 1),
	NMAX(U8, msg_stuck, large_lost, 1),
};
LAYOUT(msg_stuck);

static const struct field msg_heartbeat_fields[] = {
	N(U64, msg_heartbeat, beat),
	N(U64, msg_heartbeat, now_us),
	N(U64, msg_heartbeat, echo_us),
	N(U64, msg_heartbeat, echo_age_us),
	N(U64, msg_heartbeat, iteration),
	N(U64, msg_heartbeat, committed),
	N(U64, msg_heartbeat, hash),
	N(U8, msg_heartbeat, stage),
	N(U8, msg_heartbeat, slots),
	NMAX(U8, msg_heartbeat, running, 1),
	NMAX(U8, msg_heartbeat, blocked, 1),
	NMAX(U8, msg_heartbeat, drains, 1),
	N(U32, msg_heartbeat, queued),
	N(U32, msg_heartbeat, in_flight),
	N(U64, msg_heartbeat, tasks_done),
	N(U64, msg_heartbeat, rss_bytes),
	N(U64, msg_heartbeat, ran_us),
	N(U64, msg_heartbeat, waited_us),
	GPU(msg_heartbeat),
	N(U64, msg_heartbeat, sent_bytes),
	N(U64, msg_heartbeat, received_bytes),
	N(U64, msg_heartbeat, resent),
	N(U64, msg_heartbeat, refused),
	NMAX(U16, msg_heartbeat, awaits, MSG_NODES),
	SUB(msg_heartbeat, n_stuck, stuck, msg_stuck_layout, MSG_STUCK),
};
LAYOUT(msg_heartbeat);

static const struct field msg_report_fields[] = {
	N(U64, msg_report, iteration),
	SUB(msg_report, n_events, events, msg_task_event_layout, 4096),
};
LAYOUT(msg_report);

static const struct field msg_reduced_fields[] = {
	N(U64, msg_reduced, iteration),
	N(U32, msg_reduced, attempt),
	NMAX(U8, msg_reduced, stage, MSG_STAGES - 1),
	N(F64, msg_reduced, sum_squares),
	N(U64, msg_reduced, elapsed_us),
	ARR(msg_reduced, n_slices, slices, U64, MSG_NODES),
};
LAYOUT(msg_reduced);

static const struct field msg_committed_fields[] = {
	N(U64, msg_committed, iteration),
	NMAX(U8, msg_committed, stage, MSG_STAGES - 1),
	N(U64, msg_committed, hash),
	NMAX(U8, msg_committed, copy, 1),
	DEVICE_TIME(msg_committed),
};
LAYOUT(msg_committed);

static const struct field msg_kept_fields[] = {
	N(U64, msg_kept, assignment), NMAX(U8, msg_kept, stage, MSG_STAGES - 1),
	N(U64, msg_kept, iteration),  N(U64, msg_kept, hash),
	TXT(msg_kept, text),
};
LAYOUT(msg_kept);

static const struct field msg_saved_fields[] = {
	N(U64, msg_saved, iteration), NMAX(U8, msg_saved, stage, MSG_STAGES - 1),
	N(U64, msg_saved, hash),      N(U64, msg_saved, bytes),
	TXT(msg_saved, text),
};
LAYOUT(msg_saved);

static const struct field msg_unready_fields[] = {
	N(U64, msg_unready, assignment),
	TXT(msg_unready, text),
};
LAYOUT(msg_unready);

static const struct field msg_measured_fields[] = {
	N(U64, msg_measured, id), N(U16, msg_measured, to),
	NMAX(U8, msg_measured, reached, 1), N(F32, msg_measured, latency_s),
	N(F32, msg_measured, spread_s), N(F32, msg_measured, bandwidth_bytes_per_s),
	TXT(msg_measured, text),
};
LAYOUT(msg_measured);

static const struct field msg_connected_fields[] = { N(U64, msg_connected, id) };
LAYOUT(msg_connected);

static const struct field msg_join_fields[] = {
	N(U32, msg_join, protocol),
	BIN(msg_join, key),
	NMAX(U8, msg_join, role, KEYS_WATCHER),
	TXT(msg_join, name),
	NMAX(U8, msg_join, is_exact, 1),
};
LAYOUT(msg_join);

static const struct field msg_admitted_fields[] = { TXT(msg_admitted, name) };
LAYOUT(msg_admitted);

static const struct field msg_evaluated_fields[] = {
	N(U64, msg_evaluated, iteration), N(U32, msg_evaluated, microbatch),
	N(F32, msg_evaluated, loss),
};
LAYOUT(msg_evaluated);

static const struct field msg_trouble_fields[] = {
	NMAX(U8, msg_trouble, fatal, 1), N(U32, msg_trouble, refused_node),
	N(U64, msg_trouble, epoch), TXT(msg_trouble, text),
};
LAYOUT(msg_trouble);

static const struct field msg_log_fields[] = {
	NMAX(U8, msg_log, level, LOG_ERROR),
	N(U32, msg_log, dropped),
	TXT(msg_log, text),
};
LAYOUT(msg_log);

static const struct field msg_link_fields[] = {
	NMAX(U16, msg_link, from, MSG_NODES - 1), NMAX(U16, msg_link, to, MSG_NODES - 1),
	N(F32, msg_link, latency_s), N(F32, msg_link, spread_s),
	N(F32, msg_link, bandwidth_bytes_per_s), N(F32, msg_link, loss),
	N(F32, msg_link, planned_delay_s), N(F32, msg_link, measured_delay_s),
	N(F32, msg_link, snr_db),
};
LAYOUT(msg_link);

static const struct field msg_links_fields[] = {
	SUB(msg_links, n_links, links, msg_link_layout, MSG_NODES),
	NMAX(U8, msg_links, wire, FORMAT_Q6),
	N(F32, msg_links, encode_s),
	N(F32, msg_links, decode_s),
};
LAYOUT(msg_links);

static const struct field msg_welcome_fields[] = {
	NMAX(U16, msg_welcome, node, MSG_NODES - 1),
	NMAX(U32, msg_welcome, n_nodes, MSG_NODES),
	N(U64, msg_welcome, run),
	N(U64, msg_welcome, seed),
	TXT(msg_welcome, model),
	NMAX(U32, msg_welcome, batch, 1u << 16),
	NMAX(U32, msg_welcome, sequence, 1u << 20),
	N(U32, msg_welcome, n_shards),
	NMAX(U32, msg_welcome, threads, 1024),
	NMAX(U32, msg_welcome, slots, 255),
	N(F64, msg_welcome, time_scale),
	N(F64, msg_welcome, forward_s),
	N(F64, msg_welcome, backward_s),
	N(F64, msg_welcome, loss_s),
	N(F64, msg_welcome, dispatch_overhead_s),
	N(F64, msg_welcome, serialise),
	ARR(msg_welcome, n_delays, delay_s, F32, MSG_NODES),
	ARR(msg_welcome, n_bytes, bytes_s, F32, MSG_NODES),
	ARR(msg_welcome, n_syncs, sync_s, F32, MSG_NODES),
	N(U64, msg_welcome, steps_before),
	NMAX(U8, msg_welcome, has_tokenizer, 1),
	ARR(msg_welcome, n_corpus, corpus, U8, 1u << 16),
};
LAYOUT(msg_welcome);

static const struct field msg_refused_fields[] = {
	TXT(msg_refused, reason), NMAX(U8, msg_refused, final, 1),
};
LAYOUT(msg_refused);

static const struct field msg_peer_fields[] = {
	NMAX(U16, msg_peer, node, MSG_NODES - 1), BIN(msg_peer, key), TXT(msg_peer, address),
	NMAX(U8, msg_peer, absence, PEER_EXCLUDED), NMAX(U8, msg_peer, elsewhere, 1),
};
LAYOUT(msg_peer);

static const struct field msg_peers_fields[] = {
	SUB(msg_peers, n_peers, peers, msg_peer_layout, MSG_NODES),
};
LAYOUT(msg_peers);

static const struct field msg_assign_fields[] = {
	N(U64, msg_assign, assignment),
	NMAX(U8, msg_assign, stage, MSG_STAGES - 1),
	NMAX(U8, msg_assign, fetch, 1),
};
LAYOUT(msg_assign);

static const struct field msg_keep_fields[] = {
	N(U64, msg_keep, assignment),
	N(U8, msg_keep, stage),
	NMAX(U16, msg_keep, source, MSG_NODES - 1),
};
LAYOUT(msg_keep);

static const struct field msg_save_fields[] = { N(U64, msg_save, iteration),
						N(U64, msg_save, oldest), N(U64, msg_save, last) };
LAYOUT(msg_save);

static const struct field msg_restore_fields[] = {
	N(U64, msg_restore, assignment),
	NMAX(U8, msg_restore, stage, MSG_STAGES - 1),
	NMAX(U8, msg_restore, kind, RESTORE_AVERAGE),
	N(U64, msg_restore, iteration),
	N(U64, msg_restore, hash),
	NMAX(U8, msg_restore, on_controller, 1),
	ARR(msg_restore, n_from, nodes, U16, 2),
	SHR(msg_restore, n_from, stages, U8, 2),
	SHR(msg_restore, n_from, weights, F32, 2),
	SHR(msg_restore, n_from, hashes, U64, 2),
};
LAYOUT(msg_restore);

static const struct field msg_plan_fields[] = {
	N(U64, msg_plan, epoch),
	SUB(msg_plan, n_routes, routes, route_layout, MSG_MICROBATCHES),
	SUB(msg_plan, n_ranks, ranks, msg_rank_layout, 3 * MSG_MICROBATCHES),
};
LAYOUT(msg_plan);

static const struct field msg_start_fields[] = {
	N(U64, msg_start, iteration),
	N(U64, msg_start, epoch),
	N(U32, msg_start, per_shard),
	N(U64, msg_start, position),
	NMAX(U8, msg_start, wire, FORMAT_Q6),
};
LAYOUT(msg_start);

static const struct field msg_reroute_fields[] = {
	N(U64, msg_reroute, iteration),
	N(U64, msg_reroute, epoch),
	SUB(msg_reroute, n_routes, routes, route_layout, MSG_MICROBATCHES),
	ARR(msg_reroute, n_gone, gone, U16, MSG_NODES),
	NMAX(U8, msg_reroute, wire, FORMAT_Q6),
};
LAYOUT(msg_reroute);

static const struct field msg_reduce_fields[] = {
	N(U64, msg_reduce, iteration),
	N(U32, msg_reduce, attempt),
	NMAX(U8, msg_reduce, stage, MSG_STAGES - 1),
	NMAX(U8, msg_reduce, when_counted, 1),
	NMAX(U8, msg_reduce, sum_wire, FORMAT_Q4),
	ARR(msg_reduce, n_nodes, nodes, U16, MSG_NODES),
	ARR(msg_reduce, n_copies, copies, U16, MSG_NODES),
};
LAYOUT(msg_reduce);

static const struct field msg_commit_fields[] = {
	N(U64, msg_commit, iteration), N(U32, msg_commit, attempt), N(F32, msg_commit, scale),
	N(F32, msg_commit, lr), N(F32, msg_commit, beta1), N(F32, msg_commit, beta2),
	N(F32, msg_commit, eps),
	N(F32, msg_commit, weight_decay),
	N(U64, msg_commit, stack_from),
	LIST(ARRAY, msg_commit, visits.n, visits.of, U16, MSG_STAGES, NULL, true),
};
LAYOUT(msg_commit);

static const struct field msg_evaluate_fields[] = {
	N(U64, msg_evaluate, iteration),
	SUB(msg_evaluate, n_routes, routes, route_layout, MSG_MICROBATCHES),
	NMAX(U8, msg_evaluate, wire, FORMAT_Q6),
};
LAYOUT(msg_evaluate);

static const struct field msg_fault_fields[] = {
	N(U32, msg_fault, fault), NMAX(U8, msg_fault, kind, FAULT_LAST), N(U32, msg_fault, peer),
	N(F32, msg_fault, factor), N(U32, msg_fault, ttl_ms),
};
LAYOUT(msg_fault);

static const struct field msg_ping_fields[] = {
	N(U64, msg_ping, now_us),
	N(U64, msg_ping, offset_us),
	NMAX(U8, msg_ping, is_measured, 1),
};
LAYOUT(msg_ping);


static const struct field msg_stop_fields[] = { TXT(msg_stop, reason) };
LAYOUT(msg_stop);

static const struct field msg_measure_fields[] = {
	N(U64, msg_measure, id), N(U16, msg_measure, to), N(U32, msg_measure, most_ms),
};
LAYOUT(msg_measure);

static const struct field msg_connect_to_fields[] = {
	NMAX(U16, msg_connect_to, node, MSG_NODES - 1),
	NMAX(U8, msg_connect_to, use, CONNECT_SPARE),
};
LAYOUT(msg_connect_to);

static const struct field msg_connect_fields[] = {
	N(U64, msg_connect, id),
	SUB(msg_connect, n_nodes, nodes, msg_connect_to_layout, MSG_CONNECT_MOST),
};
LAYOUT(msg_connect);

static const struct field msg_file_ask_fields[] = {
	NMAX(U8, msg_file_ask, kind, FILE_CORPUS), N(U64, msg_file_ask, iteration),
	N(U32, msg_file_ask, index), N(U64, msg_file_ask, offset),
};
LAYOUT(msg_file_ask);

static const struct field msg_file_part_fields[] = {
	NMAX(U8, msg_file_part, kind, FILE_CORPUS), N(U64, msg_file_part, iteration),
	N(U32, msg_file_part, index), N(U64, msg_file_part, offset),
	N(U64, msg_file_part, total), N(U64, msg_file_part, modified_us),
	TXT(msg_file_part, text),
};
LAYOUT(msg_file_part);

static const struct field msg_tensor_fields[] = {
	NMAX(U8, msg_tensor, kind, TENSOR_PROBE),
	NMAX(U8, msg_tensor, evaluate, 1),
	NMAX(U16, msg_tensor, from, MSG_NODES - 1),
	N(U64, msg_tensor, iteration),
	N(U32, msg_tensor, attempt),
	N(U32, msg_tensor, index),
	NMAX(U8, msg_tensor, stage, MSG_STAGES - 1),
	N(U64, msg_tensor, hash),
	N(U64, msg_tensor, offset),
	N(U64, msg_tensor, computed_us),
	N(U64, msg_tensor, encoded_us),
	SUB(msg_tensor, n_routes, routes, route_layout, 1),
};
LAYOUT(msg_tensor);

static const struct field msg_fetch_fields[] = {
	NMAX(U16, msg_fetch, from, MSG_NODES - 1),
	NMAX(U8, msg_fetch, stage, MSG_STAGES - 1),
	N(U32, msg_fetch, piece),
};
LAYOUT(msg_fetch);

static const struct field msg_packet_train_fields[] = {
	NMAX(U16, msg_packet_train, from, MSG_NODES - 1),
	BIN(msg_packet_train, token),
};
LAYOUT(msg_packet_train);

static const struct field msg_packet_train_heard_fields[] = {
	NMAX(U16, msg_packet_train_heard, from, MSG_NODES - 1),
	BIN(msg_packet_train_heard, token),
	N(U32, msg_packet_train_heard, packets),
	N(F32, msg_packet_train_heard, bytes_per_s),
};
LAYOUT(msg_packet_train_heard);

static const struct field msg_attach_fields[] = {
	N(U32, msg_attach, protocol), TXT(msg_attach, name), NMAX(U8, msg_attach, readonly, 1),
};
LAYOUT(msg_attach);

static const struct field msg_command_fields[] = {
	N(U64, msg_command, id), NMAX(U8, msg_command, verb, COMMAND_LAST),
	N(U32, msg_command, node),
	N(U32, msg_command, peer), N(U64, msg_command, value),
	NMAX(U8, msg_command, fault, FAULT_LAST),
	N(F32, msg_command, factor), N(U32, msg_command, ttl_ms), TXT(msg_command, text),
};
LAYOUT(msg_command);

static const struct field msg_see_run_fields[] = {
	TXT(msg_see_run, name), TXT(msg_see_run, model), N(U64, msg_see_run, run),
	N(U64, msg_see_run, parameters),
	NMAX(U32, msg_see_run, n_nodes, MSG_NODES), NMAX(U32, msg_see_run, n_stages, MSG_STAGES),
	N(U64, msg_see_run, always),
	NMAX(U32, msg_see_run, microbatches, MSG_MICROBATCHES), N(U32, msg_see_run, per_data_node),
	N(U64, msg_see_run, tokens_per_iteration), N(U64, msg_see_run, iterations),
	N(F64, msg_see_run, time_scale),
	N(U64, msg_see_run, started_wall_us), N(F64, msg_see_run, baseline_s),
	N(U32, msg_see_run, embedded),
	NMAX(U8, msg_see_run, emulated, 1), N(U32, msg_see_run, rehearsal),
	NMAX(U8, msg_see_run, replay, 1), N(U64, msg_see_run, first_us),
	N(U64, msg_see_run, last_us),
};
LAYOUT(msg_see_run);

static const struct field msg_see_status_fields[] = {
	NMAX(U8, msg_see_status, phase, PHASE_LAST),
	NMAX(U8, msg_see_status, paused, 1),
	N(U64, msg_see_status, iteration),
	N(U64, msg_see_status, committed),
	N(U64, msg_see_status, epoch),
	N(U32, msg_see_status, alive),
	N(U32, msg_see_status, n_nodes),
	N(U32, msg_see_status, skip_phase),
	N(U32, msg_see_status, n_skip_phases),
	N(U32, msg_see_status, next_skip),
	N(U64, msg_see_status, next_phase_from),
	NMAX(U8, msg_see_status, wire, FORMAT_Q6),
	NMAX(U8, msg_see_status, sum_wire, FORMAT_Q4),
	N(U32, msg_see_status, path_length),
	NMAX(U32, msg_see_status, skip_share, 99),
	N(U32, msg_see_status, n_stages),
	N(U64, msg_see_status, now_us),
	N(U64, msg_see_status, iteration_started_us),
	TXT(msg_see_status, lease),
	N(U64, msg_see_status, lease_us),
	N(U64, msg_see_status, refused),
	N(U64, msg_see_status, resent),
	N(U64, msg_see_status, dropped),
	N(U32, msg_see_status, faults),
	TXT(msg_see_status, doing),
	NMAX(U8, msg_see_status, steps, (1 << (GATHER_BUILD + 1)) - 1),
	NMAX(U8, msg_see_status, step, GATHER_BUILD),
	N(U32, msg_see_status, part),
	N(U32, msg_see_status, parts),
	N(F32, msg_see_status, left_s),
	N(U64, msg_see_status, checkpoint),
	N(U64, msg_see_status, checkpoint_failure.iteration),
	N(U32, msg_see_status, checkpoint_failure.node),
	TXT(msg_see_status, checkpoint_failure.why),
};
LAYOUT(msg_see_status);

static const struct field msg_see_node_fields[] = {
#define SCALAR(kind, type, field, most) NMAX(kind, msg_see_node, field, most),
#define TEXT_FIELD(field, size) TXT(msg_see_node, field),
	NODE_FIELDS(SCALAR, TEXT_FIELD)
#undef SCALAR
#undef TEXT_FIELD
	GPU(msg_see_node),
	DEVICE_TIME(msg_see_node),
};
LAYOUT(msg_see_node);

static const struct field msg_see_plan_fields[] = {
	N(U64, msg_see_plan, epoch),
	N(U64, msg_see_plan, iteration),
	NMAX(U32, msg_see_plan, path_length, MSG_STAGES),
	NMAX(U32, msg_see_plan, skip_share, 99),
	NMAX(U32, msg_see_plan, n_stages, MSG_STAGES),
	N(F32, msg_see_plan, iteration_s),
	N(F32, msg_see_plan, sync_s),
	N(F32, msg_see_plan, wait_s),
	N(F32, msg_see_plan, lower_bound_s),
	N(F32, msg_see_plan, idle_fraction),
	N(U32, msg_see_plan, collisions),
	TXT(msg_see_plan, algorithm),
	TXT(msg_see_plan, reason),
	NMAX(U8, msg_see_plan, candidate, 1),
	TXT(msg_see_plan, name),
	N(F32, msg_see_plan, elapsed_s),
	ARR(msg_see_plan, n_visits, visits, U32, MSG_STAGES),
	SUB(msg_see_plan, n_routes, routes, route_layout, MSG_MICROBATCHES),
	SUB(msg_see_plan, n_planned, planned, msg_task_event_layout, 1u << 20),
};
LAYOUT(msg_see_plan);

static const struct field msg_see_tasks_fields[] = {
	N(U64, msg_see_tasks, iteration), NMAX(U8, msg_see_tasks, whole, 1),
	SUB(msg_see_tasks, n_events, events, msg_task_event_layout, 4096),
};
LAYOUT(msg_see_tasks);

static const struct field msg_see_iteration_fields[] = {
	N(U64, msg_see_iteration, iteration),
	N(U64, msg_see_iteration, epoch),
	N(F32, msg_see_iteration, loss),
	N(F32, msg_see_iteration, iteration_s),
	N(F32, msg_see_iteration, predicted_s),
	N(F32, msg_see_iteration, sync_s),
	N(F32, msg_see_iteration, predicted_sync_s),
	N(F32, msg_see_iteration, real_s),
	N(U32, msg_see_iteration, collisions),
	N(F32, msg_see_iteration, wait_s),
	N(F32, msg_see_iteration, idle_fraction),
	N(F32, msg_see_iteration, gradient_norm),
	N(F32, msg_see_iteration, clip),
	N(F32, msg_see_iteration, lr),
	N(F32, msg_see_iteration, tokens_per_s),
	N(U32, msg_see_iteration, alive),
	N(U32, msg_see_iteration, path_length),
	NMAX(U32, msg_see_iteration, skip_share, 99),
	NMAX(U32, msg_see_iteration, n_stages, MSG_STAGES),
	N(U32, msg_see_iteration, rerun),
	N(U64, msg_see_iteration, at_us),
	N(U64, msg_see_iteration, wall_us),
	TXT(msg_see_iteration, algorithm),
	NMAX(U8, msg_see_iteration, wire, FORMAT_Q6),
	NMAX(U8, msg_see_iteration, sum_wire, FORMAT_Q4),
};
LAYOUT(msg_see_iteration);

static const struct field msg_see_validation_fields[] = {
	N(U64, msg_see_validation, iteration), N(F32, msg_see_validation, loss),
	N(F32, msg_see_validation, accuracy),
};
LAYOUT(msg_see_validation);

static const struct field msg_see_note_fields[] = {
	N(U64, msg_see_note, id), N(U64, msg_see_note, at_us), N(U64, msg_see_note, wall_us),
	N(U64, msg_see_note, iteration), NMAX(U8, msg_see_note, kind, NOTE_LAST),
	NMAX(U8, msg_see_note, acknowledged, 1), NMAX(U8, msg_see_note, mark, 127),
	N(U32, msg_see_note, node),
	N(U64, msg_see_note, command), TXT(msg_see_note, text),
};
LAYOUT(msg_see_note);

static const struct field msg_see_fault_fields[] = {
	N(U32, msg_see_fault, fault), NMAX(U8, msg_see_fault, kind, FAULT_LAST),
	NMAX(U8, msg_see_fault, active, 1), N(U32, msg_see_fault, node),
	N(U32, msg_see_fault, peer),
	N(F32, msg_see_fault, factor), N(U64, msg_see_fault, ends_us),
};
LAYOUT(msg_see_fault);

static const struct field msg_see_preview_fields[] = {
	N(U64, msg_see_preview, command),
	NMAX(U8, msg_see_preview, verb, COMMAND_LAST),
	NMAX(U8, msg_see_preview, feasible, 1),
	N(U64, msg_see_preview, iteration),
	N(F32, msg_see_preview, before_iteration_s),
	N(F32, msg_see_preview, after_iteration_s),
	N(F32, msg_see_preview, before_sync_s),
	N(F32, msg_see_preview, after_sync_s),
	N(F32, msg_see_preview, before_wait_s),
	N(F32, msg_see_preview, after_wait_s),
	N(U32, msg_see_preview, before_peak_slots),
	N(U32, msg_see_preview, after_peak_slots),
	N(U32, msg_see_preview, memory),
	N(U32, msg_see_preview, least_stage),
	N(U32, msg_see_preview, before_least_visits),
	N(U32, msg_see_preview, after_least_visits),
	N(U32, msg_see_preview, paths_changed),
	N(F32, msg_see_preview, median_error),
	N(U32, msg_see_preview, n_predictions),
	N(U32, msg_see_preview, before_path_length),
	N(U32, msg_see_preview, after_path_length),
	N(F32, msg_see_preview, elapsed_s),
	TXT(msg_see_preview, text),
};
LAYOUT(msg_see_preview);

static const struct field msg_see_reply_fields[] = {
	N(U64, msg_see_reply, command), N(U32, msg_see_reply, status), TXT(msg_see_reply, text),
};
LAYOUT(msg_see_reply);

static const struct field msg_see_links_fields[] = {
	SUB(msg_see_links, n_links, links, msg_link_layout, 1u << 20),
};
LAYOUT(msg_see_links);

static const struct field msg_see_synced_fields[] = {
	N(U64, msg_see_synced, sequence), TXT(msg_see_synced, name),
	NMAX(U8, msg_see_synced, watches, 1),
};
LAYOUT(msg_see_synced);

static const struct message messages[] = {
#define ROW(NAME, member, number, body) { MSG_##NAME, #member, &msg_##member##_layout, body },
	MESSAGE_KINDS(ROW)
#undef ROW
};

const struct message *layouts_find(enum msg_type type)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		if (messages[i].type == type)
			return &messages[i];
	return NULL;
}
