#!/bin/bash
# The controller is killed with -9, twice. It is started again and resumes the run from the store with the same agents.
# No committed iteration is lost or computed twice. A run that is paused when its controller is killed stays paused.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }

"$bin/skippipe" demo --headless --format jsonl --iterations 12 --time-scale 0 --run-dir "$run" \
	>"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
for n in 3 7; do
	wait_for "$events" $n $demo 120
	kill -KILL "$(controller_pid)" || die "no controller to kill"
done
wait $demo || die "demo: exit status $?"
started=()

[ "$(grep -c 'controller started' "$run/log/demo.log")" = 3 ] || die "it was not started three times"
[ "$(grep -c 'agent .* started' "$run/log/demo.log")" = 20 ] || die "agents were started again"
grep '"event":"commit"' "$events" | field n | sort -n | uniq -d | grep . && die "committed twice"
# Every event has both times: at_s, which begins at 0 with each controller, and the time of day, which continues.
[ "$(grep -c '"at_s":.*"time":"2\|"time":"2.*"at_s":' "$events")" = "$(wc -l <"$events")" ] || die "an event has no time"
field time <"$events" | sort -c || die "the times of the events do not ascend"
# If a controller died between recording and announcing a commit, this commit is not in the events.
check_verify "$run" 20
[ "$(field committed <"$dir/verify.json")" = 12 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"

# ---- in a pause
events=$dir/paused.events run=$dir/paused
"$bin/skippipe" demo --headless --format jsonl --agents 4 --stages 2,2 --time-scale 0 --run-dir "$run" --at 4:pause \
	>"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 3 $demo 120
is_paused() { "$bin/skippipe" status "$run" >"$dir/status"; grep -q 'an operator has paused the run' "$dir/status"; }
end=$((SECONDS + 60))
until is_paused; do
	[ $SECONDS -lt $end ] || { cat "$dir/status"; die "the run is not paused within 60 s"; }
	sleep 0.1
done
kill -KILL "$(controller_pid)" || die "no controller to kill"
wait_text "$run/log/controller.log" 'the run is still paused' $demo 60
wait_text "$run/log/controller.log" '4 agents resume from it3' $demo 60
sleep 2
is_paused || { cat "$dir/status"; die "the run is not paused after the restart"; }
[ "$(grep '"event":"commit"' "$events" | field n | tail -n 1)" = 3 ] || die "the run goes on after the restart"
kill -TERM $demo
wait $demo
started=()
check_gone "$run"
