#!/bin/bash
# The embedded cluster from one command: 40 iterations, 20 nodes; it learns, obeys the rules of
# scheduling, and what it did can be computed again to the same bits.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --iterations 40 --time-scale 0 --run-dir "$run" \
	>"$events" 2>"$dir/demo.err" || die "demo: exit status $?"
[ "$(count "$events" commit)" = 40 ] || die "$(count "$events" commit) commits"
[ "$(count "$events" iteration)" = 40 ] || die "$(count "$events" iteration) iterations"
bad=$(grep -cv '^{.*}$' "$events") || true
[ "$bad" = 0 ] || die "$bad lines are not objects"

# The mark below is 0.8 nats from the start of training.
grep '"event":"validation"' "$events" | field loss >"$dir/losses"
awk 'NR == 1 { first = $1 } { last = $1 }
	END { printf "validation loss %s -> %s\n", first, last; exit !(NR > 1 && first - last >= 0.8) }' \
	"$dir/losses" || die "the validation loss did not fall by 0.8"
check_plans "$run"
check_verify "$run" 20
grep '"event":"iteration"' "$events" | field nodes_alive | grep -qv '^20$' && die "a node was lost"
check_gone "$run"
