#!/bin/bash
# The controller is killed with -9 in the middle of an iteration, and its successor restarts the iteration. This also
# works if an agent died just before, or if an agent dies while no controller runs. It also works if an agent that was
# declared dead wakes up meanwhile, and if an agent sends nonsense.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }
says() { # says N WORDS: checks that the controllers' log contains the words N times
	local end=$((SECONDS + 60))
	until [ "$(grep -c -- "$2" "$run/log/controller.log")" -ge "$1" ]; do
		kill -0 $demo 2>/dev/null || die "it ended before it said \"$2\" $1 times"
		[ $SECONDS -lt $end ] || die "it has not said \"$2\" $1 times"
		sleep 0.02
	done
}

# An iteration takes three seconds, so that an action in its first half second is in the middle of it.
"$bin/skippipe" demo --headless --format jsonl --eval-every 0 --iterations 15 --time-scale 0.1 \
	--run-dir "$run" --at 7:recover:16 --at 11:recover:9 --at 13:corrupt:5 >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)

wait_for "$events" 2 $demo 120
sleep 0.5
kill -KILL "$(controller_pid)" || die "no controller to kill"
says 1 "agents resume from it"

wait_for "$events" 4 $demo 60
kill -KILL "$(agent_pid "$run" 16)" || die "no agent to kill"
says 1 "run again without n16"
kill -KILL "$(controller_pid)"
says 2 "agents resume from it"

wait_for "$events" 8 $demo 60
sleep 0.3
kill -KILL "$(controller_pid)" "$(agent_pid "$run" 9)" || die "no agent to kill"
says 3 "agents resume from it"
says 2 "19 agents resume from it"

wait_for "$events" 10 $demo 60
sleeper=$(agent_pid "$run" 4)
kill -STOP "$sleeper"
says 1 "run again without n04"
kill -CONT "$sleeper"
kill -KILL "$(controller_pid)"
says 4 "agents resume from it"

says 1 "inject corruption on n05"
sleep 0.2
kill -KILL "$(controller_pid)"
says 1 "n05 .* sent numbers that no computation gives"

wait $demo || die "demo: exit status $?"
started=()
grep "has stalled" "$run/log/controller.log" && die "somebody waited for what does not come"
grep '"event":"commit"' "$events" | field n | sort -n | uniq -d | grep . && die "committed twice"
check_verify "$run" 20
[ "$(field committed <"$dir/verify.json")" = 15 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"
