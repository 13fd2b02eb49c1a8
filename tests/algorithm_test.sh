#!/bin/bash
# A published baseline plans a run instead of the best search. While DT-FM's straight pipelines run, an agent and then
# the controller are killed. Every plan must be DT-FM's, and the weights must equal those that one process computes. The
# baselines that skip stages run for a shorter time. Options that a baseline cannot follow are refused.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }

# check_algorithm EVENTS RUN NAME LENGTH: checks that the algorithm made every plan, and that paths have this length
check_algorithm() {
	local plan
	grep '"event":"plan"' "$1" | grep -qv "\"reason\":\"[^\"]*\",\"algorithm\":\"$3\",\"path_length\":$4," &&
		die "a plan is not one of $3's: $(grep '"event":"plan"' "$1" | cut -c 1-160)"
	for plan in "$2"/plans/*.json; do
		grep -q "\"algorithm\":\"$3\"" "$plan" || die "${plan##*/} is not one of $3's"
	done
}

"$bin/skippipe" demo --headless --format jsonl --agents 9 --stages 3,3,3 --algorithm dtfm --iterations 14 --time-scale 0 \
	--budget 20 --eval-every 7 --run-dir "$run" >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 3 $demo 120
kill -KILL "$(agent_pid "$run" 4)" || die "no agent to kill"
wait_for "$events" 7 $demo 120
kill -KILL "$(controller_pid)" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()
grep -q '"event":"node".*"node":4,.*"state":"dead"' "$events" || die "the death of node 4 was not noticed"
[ "$(count "$events" plan)" -ge 3 ] || die "no plan without node 4"
grep -q '"event":"plan".*the run was taken over' "$events" || die "no plan after the takeover"
grep -q '"event":"iteration","n":14,' "$events" || die "it did not come to iteration 14"
check_algorithm "$events" "$run" dtfm 3
check_plans "$run"
check_verify "$run" 9
check_gone "$run"
expect 2 '--algorithm: a resumed run keeps' "$bin/skippipe" controller --resume "$run" \
	--key "$run/keys/controller.key" --admitted "$run/keys/admitted" --algorithm best

for name in dtfm-skip no-tc2; do
	"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 1/3 --algorithm $name \
		--iterations 4 --time-scale 0 --budget 20 --eval-every 0 --at 3:fail:5 --run-dir "$dir/$name" \
		>"$dir/events-$name" 2>"$dir/$name.err" || die "demo: exit status $?"
	[ "$(count "$dir/events-$name" commit)" = 4 ] || die "$name: $(count "$dir/events-$name" commit) commits"
	check_algorithm "$dir/events-$name" "$dir/$name" $name 2
	check_verify "$dir/$name" 4 # a baseline may leave a node without work
	check_gone "$dir/$name"
done

expect 2 'dtfm visits every stage' "$bin/skippipe" demo --headless --algorithm dtfm --skip 2/6
