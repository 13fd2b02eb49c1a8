#!/bin/bash
# Activations, gradients and sums travel in 6 bits. From about iteration 4 on, sums travel in 4 bits, and from about
# iteration 9 on activations in fp32. One agent and the controller are killed with -9, and one agent sends nonsense.
# From iteration 13 on, microbatches stay in stage 0, so that no activation travels. The weights equal those of one
# process that rounds as recorded, and differ from those of a process that does not round. If a cluster describes the
# bandwidth of links, plans and predictions count the bytes that travel.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

pid_of() { sed -n "s/.*$1 started, process \\([0-9]*\\)\$/\\1/p" "$run/log/demo.log" | tail -n 1; }

"$bin/skippipe" demo --headless --format jsonl --agents 9 --stages 3,3,3 --skip 0/3 --iterations 16 --time-scale 0 \
	--wire q6 --sum-wire q6 --at 4:sum-wire:q4 --at 9:wire:fp32 --at 10:corrupt:7 --at 13:skip:2 --run-dir "$run" >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 3 $demo 120
kill -KILL "$(pid_of 'agent 4')" || die "agent 4 was not there"
wait_for "$events" 5 $demo 120
kill -KILL "$(pid_of controller)" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()

[ "$(grep -c 'controller started' "$run/log/demo.log")" = 2 ] || die "the controller was not started again"
grep '"event":"node"' "$events" | grep -q '"node":4,.*"state":"dead"' || die "the death of node 4 was not noticed"
grep '"event":"node"' "$events" | grep -q '"node":7,.*"state":"failed","why":"sent numbers that no computation gives' ||
	die "node 7 sent nonsense and is not found out"
grep -q '"event":"plan".*"path_length":1' "$events" || die "no plan of stage 0 alone"
check_verify "$run" 8
# All microbatches of an iteration use one pair of formats, and the resumed run keeps the formats.
grep '"event":"iteration"' "$events" >"$dir/iterations"
formats() { sed -n 's/.*"wire":"\([a-z0-9]*\)","sum_wire":"\([a-z0-9]*\)".*/\1 \2/p' "$dir/iterations" | uniq | tr '\n' ','; }
[ "$(formats)" = "q6 q6,q6 q4,fp32 q4," ] || die "formats: $(formats)"
grep -q 'sum-wire q6 -> q4 (--at)' "$run/log/controller.log" || die "the journal has no change of sums"
[ "$(field committed <"$dir/verify.json")" = 16 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"

# A resumed run refuses an option that would change its record.
expect 2 '--wire: a resumed run keeps' "$bin/skippipe" controller --resume "$run" \
	--key "$run/keys/controller.key" --admitted "$run/keys/admitted" --wire fp32
if command -v sqlite3 >"$dir/sqlite3"; then
	sqlite3 "$run/run.db" "UPDATE commits SET wire = 'fp32' WHERE iteration = 2"
	"$bin/skippipe" verify "$run" --format json >"$dir/other.json" 2>"$dir/other.err"
	[ $? = 1 ] || die "verify does not notice that nothing was rounded"
	grep -q '"first_difference":{"iteration":2,' "$dir/other.json" || die "no difference: $(cat "$dir/other.json")"
	sqlite3 "$run/run.db" "UPDATE commits SET wire = 'q6' WHERE iteration = 2" \
		"UPDATE commits SET sum_wire = 'q8' WHERE iteration = 14"
	"$bin/skippipe" verify "$run" --format json >"$dir/sums.json" 2>"$dir/sums.err"
	[ $? = 1 ] || die "verify does not notice another format of sums"
fi

# pair_of KEY FILE: prints the first number off the diagonal of the matrix KEY
pair_of() { sed -n 's/.*"'"$1"'":\[\[[0-9.]*,\([-+0-9.e]*\).*/\1/p' "$2"; }
# delay WHERE OPTIONS...: prints the delay between the first two nodes, from the cluster file in the run's folder. A
# controller writes this file before it gives up for lack of agents.
delay() {
	local to=$dir/$1
	shift
	"$bin/skippipe" controller --run-dir "$to" --key "$run/keys/controller.key" --admitted "$run/keys/admitted" \
		--gather-s 0 --time-scale 1 "$@" >"$dir/delay.out" 2>"$dir/delay.err" && die "it went on without agents"
	pair_of delay_s "$to/cluster.json"
}
cat >"$dir/links.json" <<END
{"format": "skippipe.cluster/1", "name": "links", "stages": [1, 1], "nodes": [
  {"id": 0, "location": "a", "forward_s": 1, "backward_s": 2, "loss_s": 0.5, "memory": 2},
  {"id": 1, "location": "b", "forward_s": 1, "backward_s": 2, "loss_s": 0.5, "memory": 2}],
 "links": {"latency_s": [[0, 0.5], [0.5, 0]], "bandwidth_bytes_per_s": [[0, 100], [100, 0]]},
 "activation_bytes": 1000, "transfer_overhead_s": 0.125, "weights_bytes_per_stage": 51200, "microbatches_per_data_node": 3}
END
[ "$(delay file32 --emulate "$dir/links.json" --wire fp32)" = 10.625 ] ||
	die "a delay of $(delay again32 --emulate "$dir/links.json" --wire fp32)"
[ "$(delay file16 --emulate "$dir/links.json" --wire bf16)" = 5.625 ] ||
	die "a delay of $(delay again16 --emulate "$dir/links.json" --wire bf16) in bf16"
[ "$(delay file6 --emulate "$dir/links.json" --wire q6 --sum-wire fp32)" = 2.65625 ] ||
	die "a delay of $(delay again6 --emulate "$dir/links.json" --wire q6 --sum-wire fp32) in 6 bits"
awk -v whole="$(delay regions32 --emulate regions --wire fp32)" -v half="$(delay regions16 --emulate regions --wire bf16)" \
	'BEGIN { print "between regions: " whole " s, " half " s in bf16"; exit !(half > 0 && half < whole) }' ||
	die "the regions' delays do not know"
sum=$(pair_of sync_pair_s "$dir/file6/cluster.json")
[ "$sum" = 512.5 ] || die "an fp32 sum of $sum"
delay sum6 --emulate "$dir/links.json" --sum-wire q6 >"$dir/sum6.out"
sum=$(pair_of sync_pair_s "$dir/sum6/cluster.json")
[ "$sum" = 98.5 ] || die "a sum of $sum in 6 bits"

# The planner and the simulator use the same formats. Two waves of four transfers each take less time in 6 bits.
plan=("$bin/skippipe" plan "$dir/links.json" --skip 0 --evaluations 100)
"${plan[@]}" -o "$dir/32.plan" || die "no plan"
"${plan[@]}" --wire q6 --sum-wire q6 -o "$dir/6.plan" || die "no plan in 6 bits"
predicted() { sed -n 's/.*"predicted":{"iteration_s":\([0-9.]*\),.*/\1/p' "$1"; }
awk -v whole="$(predicted "$dir/32.plan")" -v less="$(predicted "$dir/6.plan")" \
	'BEGIN { exit !(less > 0 && whole - less == 8 * (10.625 - 2.65625)) }' || die "the plan does not count 6 bits"
"$bin/skippipe" simulate "$dir/links.json" "$dir/32.plan" --wire q6 >"$dir/6.out" || die "not simulated"
grep -q "iteration_s $(predicted "$dir/6.plan")" "$dir/6.out" || die "the simulation does not count 6 bits: $(cat "$dir/6.out")"
# The file in the run's folder has the delays of 6 bits. A plan must take as long with this file as with the original file
# and --wire q6, also where bytes occupy a link for long.
sed 's/"memory": 2/"memory": 3/g' "$dir/links.json" >"$dir/busy.json"
delay busy --emulate "$dir/busy.json" --wire q6 >"$dir/busy.out"
"$bin/skippipe" simulate "$dir/busy.json" "$dir/6.plan" --wire q6 | grep iteration_s >"$dir/busy.out"
"$bin/skippipe" simulate "$dir/busy/cluster.json" "$dir/6.plan" | grep iteration_s | diff "$dir/busy.out" - ||
	die "another time in the cluster of the run's folder"
