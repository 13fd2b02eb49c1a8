#!/bin/bash
# Faults in a demo. One agent is killed with -9 around iteration 4, and another agent is marked failed at iteration 11.
# One agent sends NaN at iteration 14 and another agent sends 1e30 at iteration 17; the controller excludes both. One
# agent is cut off from the other agents at iteration 7 and is excluded too. The run commits 22 iterations, each
# microbatch counts once, and the weights equal those that one process computes.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --iterations 22 --time-scale 0 --run-dir "$run" \
	--at 7:partition:9 --at 11:fail:11 --at 14:corrupt:4 --at 17:corrupt:1 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 4 $demo 120
victim=$(agent_pid "$run" 7)
kill -KILL "$victim" || die "agent 7 (process $victim) was not there"
wait $demo || die "demo: exit status $?"
started=()

[ "$(count "$events" commit)" = 22 ] || die "$(count "$events" commit) commits"
alive=$(grep '"event":"iteration"' "$events" | tail -n 1 | field nodes_alive)
[ "$alive" -le 19 ] || die "$alive nodes alive at the end"
grep '"event":"node"' "$events" | grep -q '"node":7,.*"state":"dead"' || die "the death of node 7 was not noticed"
grep '"event":"node"' "$events" | grep -q '"node":11,.*"state":"failed"' || die "node 11 is not marked"
for node in 4 1; do
	grep '"event":"node"' "$events" | grep -q "\"node\":$node,.*\"state\":\"failed\",\"why\":\"sent numbers that no computation gives" ||
		die "node $node sent nonsense and is not found out"
done
grep '"event":"node"' "$events" | grep -q '"node":9,.*"state":"dead","why":"is cut off from' ||
	die "it was not noticed that node 9 is cut off"
steps() { grep -c "\"event\":\"recovery\",\"step\":\"$1\"" "$events"; }
[ "$(steps planned)" -ge 1 ] || die "no plan without node 7"
[ "$(steps rerun)" = 0 ] || [ "$(steps started)" -ge 1 ] || die "no microbatch of node 7 ran again"
check_verify "$run" 20
check_gone "$run"
