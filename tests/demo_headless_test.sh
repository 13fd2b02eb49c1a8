#!/bin/bash
# A demo without a console runs 20 iterations with 20 nodes. The model learns, the plans follow the rules of scheduling,
# and verify recomputes the run bit for bit.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --iterations 20 --time-scale 0 --run-dir "$run" \
	>"$events" 2>"$dir/demo.err" || die "demo: exit status $?"
[ "$(count "$events" commit)" = 20 ] || die "$(count "$events" commit) commits"
[ "$(count "$events" iteration)" = 20 ] || die "$(count "$events" iteration) iterations"
bad=$(grep -cv '^{.*}$' "$events") || true
[ "$bad" = 0 ] || die "$bad lines are not objects"

# The loss must fall by 0.8 nats from the start of training.
grep '"event":"validation"' "$events" | field loss >"$dir/losses"
awk 'NR == 1 { first = $1 } { last = $1 }
	END { printf "validation loss %s -> %s\n", first, last; exit !(NR > 1 && first - last >= 0.8) }' \
	"$dir/losses" || die "the validation loss did not fall by 0.8"
check_plans "$run"
check_verify "$run" 20
# On a busy machine the controller may take a live node for dead, but the node must return.
[ "$(grep '"event":"iteration"' "$events" | tail -n 1 | field nodes_alive)" -ge 18 ] || die "nodes stayed lost"
check_gone "$run"

# Standard input and output are closed, as some cron jobs and init scripts leave them. The command that the demo prints
# at its end must work when it is pasted into a shell.
odd="$dir/it's a \"run\""
"$bin/skippipe" demo --headless --agents 2 --stages 1,1 --skip 0 --iterations 2 --time-scale 0 --eval-every 0 --run-dir "$odd" \
	<&- >&- 2>"$dir/closed.err" || die "demo with closed descriptors: exit status $?"
eval "$(tail -n 1 "$dir/closed.err")" >"$dir/pasted.out" 2>"$dir/pasted.err" || die "the printed command does not work"

# The controller is killed until the supervisor gives up. The last message must name the signal.
"$bin/skippipe" demo --headless --agents 2 --stages 1,1 --skip 0 --time-scale 0 --run-dir "$dir/killed" \
	>"$dir/killed.out" 2>"$dir/killed.err" &
demo=$!
started+=($demo)
end=$((SECONDS + 60))
while kill -0 $demo 2>/dev/null; do
	[ $SECONDS -lt $end ] || die "the controller is restarted without end"
	pid=$(sed -n 's/.*controller started, process //p' "$dir/killed/log/demo.log" 2>/dev/null | tail -n 1)
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
	sleep 0.05
done
wait $demo && die "a demo without a controller ended with status 0"
grep -q 'the controller ended: signal 9' "$dir/killed.err" || die "the signal is not named"
