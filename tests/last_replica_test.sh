#!/bin/bash
# The last replica of a stage is killed with -9. Another node has a standby copy of the stage after the last commit, and
# the run continues from this copy: on a restarted node, or on a node that another stage can spare. No commit is lost.
# verify compares the standby copies too.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify

# lose NAME DEMO-OPTIONS...: in a run of 16 iterations, kills the only node of the last stage around iteration 6
lose() {
	local name=$1 demo pid
	shift
	events=$dir/$name.events run=$dir/$name
	"$bin/skippipe" demo --headless --format jsonl --iterations 16 --time-scale 0 --silence-ms 1500 \
		--eval-every 0 --run-dir "$run" "$@" >"$events" 2>"$dir/$name.err" &
	demo=$!
	started+=($demo)
	wait_for "$events" 6 $demo 120
	victim=$(grep '"event":"plan"' "$events" | head -n 1 | sed 's/.*"assignment":\[[^:]*\[\([0-9]*\)\]\],.*/\1/')
	pid=$(agent_pid "$run" "$victim")
	kill -KILL "$pid" || die "agent $victim (process $pid) was not there"
	wait $demo || die "$name: exit status $?"
	started=()
	[ "$(grep '"event":"commit"' "$events" | field n | sort -nu | wc -l)" = 16 ] || die "$name: lost commits"
	grep -Eq "n0$victim S[0-9]* (hung up|heartbeat lost|holds the weights of another iteration)" "$run/log/controller.log" || die "$name: the death was not noticed"
	grep -q "has lost its last replica" "$run/log/controller.log" || die "$name: it was not the last"
	check_verify "$run" 4
	check_gone "$run"
}

lose alone --agents 4 --stages 1,1,1,1 --skip 1/4
# After every commit, the replica and the standby copy of each stage have the same bits.
[ "$(field hashes <"$dir/verify.json")" -ge $((15 * 4 * 2 - 8)) ] || die "copies were not announced"
grep -q "n0$victim is started again" "$run/log/controller.log" || die "it was not started again"

lose spare --agents 6 --stages 2,1,1,1,1 --skip 2/5
grep -q "takes S4 over, from the copy" "$run/log/controller.log" || die "no node took S4 over"
grep -q "is started again" "$run/log/controller.log" && die "it was started again in vain"
exit 0
