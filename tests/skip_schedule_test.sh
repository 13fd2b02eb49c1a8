#!/bin/bash
# A run follows its skip schedule. Every phase begins at its iteration, although an agent is killed in the first phase
# and the controller in the second. A change by the operator holds until the next phase. One process recomputes the run.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --iterations 16 --time-scale 0 --run-dir "$run" --always 5 \
	--grad-norm visits --skip-schedule 4@0,2@25%,0@9,1@75% --at 3:kill:7 --at 11:skip:3 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 6 $demo 120
pid=$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)
kill -KILL "$pid" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()

# The events lack an iteration whose commit no controller could announce.
grep '"event":"iteration"' "$events" | sed 's/.*"n":\([0-9]*\),.*"path_length":\([0-9]*\).*/\1 \2/' |
	awk '{ skipped = 6 - $2; expected = $1 <= 4 ? 4 : $1 <= 9 ? 2 : $1 == 10 ? 0 : $1 <= 12 ? -1 : 1
	       if (expected >= 0 ? skipped != expected : skipped != 0 && skipped != 3) { print $1, skipped; bad = 1 } n++ }
	     END { exit bad || n < 15 }' || die "an iteration does not follow the schedule"
grep '"event":"iteration"' "$events" | sed 's/.*"n":12,.*"path_length":\([0-9]*\).*/\1/' | grep -qx 3 ||
	die "the change of the ratio does not hold until the next phase"
[ "$(sqlite3 "$run/run.db" "select count(*) from commits where visits like '30 % 30'")" = 16 ] ||
	die "the commits do not hold the visits of each stage"
check_verify "$run" 19 # node 7 may have counted no gradient, because it died while all microbatches skipped its stage
[ "$(field committed <"$dir/verify.json")" = 16 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"

expect 1 'phase 2 of the skip schedule: expected 0 to 4 stages' "$bin/skippipe" demo --headless --always 5 \
	--skip-schedule 4,5 --iterations 2 --run-dir "$dir/none"
