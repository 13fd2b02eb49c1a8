#!/bin/bash
# In a phase of the schedule, only a share of each data node's microbatches skips stages. An agent and the controller
# are killed in this phase, and the operator changes the share. One process recomputes the run. A published method
# refuses a share.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --iterations 14 --time-scale 0 --run-dir "$run" --always 5 --stack \
	--skip-schedule 4@0,30%:2@4,0@12 --at 6:kill:7 --at 10:skip:50%:3 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 8 $demo 120
pid=$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)
kill -KILL "$pid" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()

# check_share FROM TO STAGES N: in these iterations, N of the 6 microbatches of each data node visit STAGES stages
check_share() {
	local bad
	bad=$(sqlite3 "$run/run.db" "WITH r AS (SELECT iteration, shard,
		length(stages) - length(replace(stages, ' ', '')) + 1 AS n FROM route WHERE iteration BETWEEN $1 AND $2)
		SELECT iteration, shard, sum(n = $3), sum(n = 6) FROM r GROUP BY iteration, shard
		HAVING sum(n = $3) <> $4 OR sum(n = 6) <> 6 - $4")
	[ -z "$bad" ] || die "iterations $1 to $2: $bad"
}
check_share 5 9 4 2
grep '"event":"iteration","n":5,' "$events" | grep -q '"skip_share":30' || die "iteration 5 does not report the share"
check_share 12 12 3 3 # the changed plan may take effect during iteration 11 only
check_share 13 14 0 0
[ "$(sqlite3 "$run/run.db" 'SELECT group_concat(iteration) FROM commits WHERE stack_from <> 0')" = 4 ] ||
	die "the stages do not start from trained stages with commit 4"
sqlite3 "$run/run.db" 'SELECT text FROM note' | grep -q 'skip 4/6 -> 2/6 in 30%' || die "the journal lacks the phase"
sqlite3 "$run/run.db" 'SELECT text FROM note' | grep -q 'skip 2/6 in 30% -> 3/6 in 50%' ||
	die "the journal lacks the operator's change"
check_verify "$run" 19
[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"

expect 1 'dtfm-skip, which gives all microbatches paths of one length' "$bin/skippipe" demo --headless \
	--algorithm dtfm-skip --skip-share 30%:2 --iterations 2 --run-dir "$dir/none"
expect 2 'expected a share of 1% to 99%' "$bin/skippipe" demo --headless --skip-share 0%:2 --run-dir "$dir/no2"
