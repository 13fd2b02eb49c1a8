#!/bin/bash
# `finish` ends a run of no fixed length: the learning rate falls over the next iterations, then the run saves its model
# and ends. In a second run the controller is killed with -9 while the learning rate falls. Both runs must give the same
# bits. Therefore an iteration has one microbatch and each stage has one node. With more microbatches or nodes, the
# order in which gradients are added, and hence the rounding, could differ between the two runs.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify

controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }
run_demo() { # run_demo NAME: starts a demo in the background; sets $demo to its process and $run to its folder
	run=$dir/$1
	events=$dir/$1.events
	"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 1,1,1,1,1,1 --skip 0/6 --microbatches 1 \
		--eval-every 0 --time-scale 0 --at 9:finish:30 --run-dir "$run" \
		>"$events" 2>"$dir/$1.err" &
	demo=$!
	started+=($demo)
}
end_demo() {
	wait $demo || die "$1: exit status $?"
	started=()
	check_verify "$run" 6
	[ "$(field committed <"$dir/verify.json")" = 39 ] || die "$1: $(field committed <"$dir/verify.json") commits"
	grep -q '"iterations": 39' "$run/checkpoints/00000039/manifest.json" || die "$1: the last checkpoint has another recipe"
}

run_demo whole
end_demo whole
grep -q 'finish 30 (--at): the rate falls from it10 to it39; the run ends' "$run/log/controller.log" || die "no receipt"
grep -q 'the learning rate falls from it10, and the run ends with it39' "$run/log/controller.log" || die "no mark"
rates=$(grep '"event":"commit"' "$events" | sed 's/.*"n":\([0-9]*\),.*"lr":\([0-9.e-]*\).*/\1 \2/' |
	awk '$1 == 9 || $1 == 10 || $1 == 24 || $1 == 39 { printf "%.2f ", 1000 * $2 }')
[ "$rates" = "5.00 4.85 2.75 0.50 " ] || die "rates $rates"

run_demo killed
wait_for "$events" 14 $demo 120
kill -KILL "$(controller_pid)" || die "no controller to kill"
end_demo killed
[ "$(grep -c 'controller started' "$run/log/demo.log")" = 2 ] || die "the controller was not started again"
hashes() { sed -n 's/.*"hash": *"\([0-9a-f]*\)".*/\1/p' "$dir/$1/checkpoints/00000039/manifest.json"; }
[ -n "$(hashes whole)" ] || die "no hashes"
[ "$(hashes whole)" = "$(hashes killed)" ] || die "the runs end with other bits"
