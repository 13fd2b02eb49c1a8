#!/bin/bash
# Stages that microbatches begin to visit take the weights of trained stages, in the last commit before the phase. One
# of their nodes dies while it fetches a trained stage, and the controller dies in the iteration of this commit. One
# process recomputes the run. If there is no time to fetch a stage before a phase of a recipe, the phase begins later.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
events=$dir/events run=$dir/run

# check_stacked RUN LENGTH STAGES...: LENGTH is the length of paths before the phase. Checks that STAGES took trained
# weights at the commit just before the first longer path, and that their weights were equal then
check_stacked() {
	local at first stages=${*:3}
	at=$(sqlite3 "$1/run.db" 'SELECT group_concat(iteration) FROM commits WHERE stack_from <> 0')
	first=$(sqlite3 "$1/run.db" "SELECT min(iteration) FROM commits WHERE path_length > $2")
	[ -n "$at" ] && [ "$at" = $((first - 1)) ] || die "the stages start after $at and are visited from $first on"
	[ "$(sqlite3 "$1/run.db" "SELECT count(DISTINCT hash) FROM hash WHERE iteration = $at AND stage IN (${stages// /,})")" = 1 ] ||
		die "stages $stages do not start with the same weights"
}

"$bin/skippipe" demo --headless --format jsonl --iterations 14 --time-scale 0 --run-dir "$run" --always 5 \
	--skip-schedule 4@0,0@8 --stack --at 3:kill:7 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 7 $demo 120
pid=$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)
kill -KILL "$pid" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()
check_verify "$run" 19
[ "$(field committed <"$dir/verify.json")" = 14 ] || die "$(field committed <"$dir/verify.json") commits"
check_stacked "$run" 2 1 3
check_stacked "$run" 2 2 4
check_gone "$run"

"$bin/skippipe" demo --headless --format jsonl --iterations 7 --time-scale 0 --run-dir "$dir/late" \
	--recipe speed >"$events" 2>"$dir/late.err" || die "demo: exit status $?"
check_verify "$dir/late" 20
check_stacked "$dir/late" 2 1 3
check_gone "$dir/late"

expect 1 '--stack: it needs a --skip-schedule whose first phase skips all stages' "$bin/skippipe" demo --headless \
	--skip-schedule 3,0 --stack --iterations 2 --run-dir "$dir/none"
expect 1 '--stack: it needs a --skip-schedule' "$bin/skippipe" demo --headless --stack --iterations 2 --run-dir "$dir/no2"
expect 1 '--recipe quick: expected speed or robust' "$bin/skippipe" demo --headless --recipe quick --iterations 9 \
	--run-dir "$dir/no3"
expect 2 '--recipe speed: not with' "$bin/skippipe" demo --headless --recipe speed --stack --run-dir "$dir/no4"
