#!/bin/bash
# A resumed run keeps its recorded options. The first controller is killed before an agent has joined, and the second
# controller during the run. The supervisor of the demo starts the third controller without the options about plans;
# the plans of this controller must follow the recorded options. Options that are part of the run cannot be given
# again.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

controller_pid() { sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1; }

"$bin/skippipe" demo --headless --format jsonl --agents 9 --stages 3,3,3 --skip 1/3 --iterations 14 --time-scale 0 \
	--sums late --eval-every 7 --checkpoint-every 4 --ahead 0 --silence-ms 1750 --overdue-s 70 --run-dir "$run" \
	>"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
for _ in $(seq 600); do [ -e "$run/run.db" ] && break; sleep 0.02; done
kill -KILL "$(controller_pid)" || die "no controller to kill"
wait_for "$events" 5 $demo 120
grep -q 'the run had not started' "$run/log/controller.log" || die "the first controller lived too long"
kill -KILL "$(controller_pid)" || die "no second controller to kill"
wait $demo || die "demo: exit status $?"
started=()

[ "$(grep -c 'controller started' "$run/log/demo.log")" = 3 ] || die "it was not started three times"
grep -q '"event":"plan".*the run was taken over' "$events" || die "no plan after the takeover"
for plan in "$run"/plans/*.json; do
	grep -q overlap_sync "$plan" && die "${plan##*/} sums early"
	grep -q '"path_length":2' "$plan" || die "${plan##*/} skips another number of stages"
done
for n in 4 8 12; do
	grep -q "checkpoint of it$n: " "$run/log/controller.log" || die "no checkpoint of iteration $n"
done
[ "$(grep '"event":"validation"' "$events" | field n | sort -nu | tr '\n' ' ')" = "0 7 14 " ] ||
	die "validations at other iterations"
check_verify "$run" 9
check_gone "$run"

resume=("$bin/skippipe" controller --resume "$run" --key "$run/keys/controller.key" --admitted "$run/keys/admitted")
expect 2 '--seed: a resumed run keeps' "${resume[@]}" --iterations 20 --seed 3
# The log names the options that this resume changes. All other options stay as they were at the first start.
"${resume[@]}" --iterations 20 --gather-s 9 >/dev/null 2>"$dir/again.err" &
again=$!
started+=($again)
wait_text "$dir/again.err" 'options changed: iterations 20, .*silence 1.75 s, overdue 70 s, plans ahead 0 s' $again 60
kill -TERM $again
wait $again
