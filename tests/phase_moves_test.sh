#!/bin/bash
# When a phase of the skip schedule begins, nodes move between stages. One of them dies before it can move. The
# controller dies twice: in the first iteration after a move, and in the middle of a phase. One process recomputes the
# run.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
events=$dir/events run=$dir/run

kill_controller() { # kills the controller that was started last
	local pid
	pid=$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)
	kill -KILL "$pid" || die "no controller to kill"
}
moves() { sqlite3 "$run/run.db" "SELECT count(*) FROM note WHERE text LIKE 'n__ moves from S_ to S_ with it%'"; }

"$bin/skippipe" demo --headless --format jsonl --iterations 24 --run-dir "$run" --always 5 --time-scale 0.1 \
	--skip-schedule 4@0,2@10,0@17 --phase-moves --at 8:kill:7 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 2 $demo 240
until [ "$(moves 2>/dev/null)" -ge 1 ] 2>/dev/null; do
	kill -0 $demo 2>/dev/null || die "it ended before any move"
	sleep 0.05
done
kill_controller
wait_for "$events" 14 $demo 240
kill_controller
wait_for "$events" 18 $demo 240
wait $demo || die "demo: exit status $?"
started=()
check_verify "$run" 19
[ "$(field committed <"$dir/verify.json")" = 24 ] || die "$(field committed <"$dir/verify.json") commits"
[ "$(moves)" -ge 4 ] || die "only $(moves) moves"
check_gone "$run"

expect 1 '--phase-moves: it needs a --skip-schedule' "$bin/skippipe" demo --headless --phase-moves --iterations 2 \
	--run-dir "$dir/none"
expect 1 '--phase-moves: this run is planned by dtfm-skip' "$bin/skippipe" demo --headless --phase-moves \
	--skip-schedule 4,0 --algorithm dtfm-skip --iterations 2 --run-dir "$dir/no2"
