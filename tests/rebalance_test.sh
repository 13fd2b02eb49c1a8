#!/bin/bash
# Two of a stage's three nodes die, and a node of another stage moves there. Then the two return, one after the other or
# together. At the end every node has the stage that the first plan gave it. Meanwhile the controller is killed. Its
# successor still knows these stages, and that the operator has marked a node failed.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run log=$dir/run/log/controller.log
args=(--headless --format jsonl --agents 9 --stages 3,3,3 --skip 0 --time-scale 0 --eval-every 0 --microbatches 2 --sequence 32)
places() { # places first|last EVENTS: prints the first or the last stage that the events report for each node
	grep '"event":"node"' "$2" | sed 's/.*"node":\([0-9]*\),"stage":\([-0-9]*\),"state":"\([a-z]*\)".*/\1 \2 \3/' |
		awk -v which="$1" '$2 >= 0 && (which == "last" || !($1 in stage)) { stage[$1] = $2 } $2 >= 0 { state[$1] = $3 }
			END { for (i = 0; i < 9; i++) printf "%d S%d%s\n", i, stage[i], which == "last" ? " " state[i] : "" }'
}
"$bin/skippipe" demo "${args[@]}" --iterations 1 --run-dir "$dir/first" >"$events" 2>"$dir/demo.err" || die "the first: exit status $?"
places first "$events" >"$dir/first.places"
of() { sed -n "s/ S$1\$//p" "$dir/first.places" | sed -n "$2p"; }
marked=$(of 0 2)

# If one of the two returns first, the node that has moved goes back as soon as its present stage can spare it.
events=$dir/alone.events
"$bin/skippipe" demo "${args[@]}" --iterations 50 --run-dir "$dir/alone" \
	--at "6:kill:$(of 1 1)" --at "6:kill:$(of 1 2)" --at "18:recover:$(of 1 2)" --at "40:recover:$(of 1 1)" \
	>"$events" 2>"$dir/demo.err" || die "alone: exit status $?"
grep -q "returns to S" "$dir/alone/log/controller.log" || die "no node goes back alone"
places last "$events" >"$dir/last.places"
sed "s/\$/ live/" "$dir/first.places" | diff - "$dir/last.places" || die "not all are where the first plan had them"
check_verify "$dir/alone" 9

events=$dir/events
"$bin/skippipe" demo "${args[@]}" --iterations 60 --run-dir "$run" --at "3:fail:$marked" \
	--at "6:kill:$(of 1 1)" --at "6:kill:$(of 1 2)" \
	--at "24:recover:$(of 1 1)" --at "24:recover:$(of 1 2)" >"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 18 $demo 120
grep -q "S1 is down to one replica: n.. moves there" "$log" || die "no node moved"
kill -KILL "$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)" || die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()
grep -q "are to exchange their stages: S" "$log" || die "no node goes back"
places last "$events" >"$dir/last.places"
sed "s/\$/ live/; s/^\($marked .*\) live/\1 failed/" "$dir/first.places" | diff - "$dir/last.places" ||
	die "not all are where the first plan had them, or the mark was lost"
check_verify "$run" 9
[ "$(field committed <"$dir/verify.json")" = 60 ] || die "$(field committed <"$dir/verify.json") commits"
check_gone "$run"
