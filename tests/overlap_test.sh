#!/bin/bash
# Each stage sums its gradients as soon as it has counted all of them. Two agents die meanwhile. Even so, every
# gradient counts once, and the weights equal those that one process computes. The journal says how much time the
# early sums save.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify sqlite3
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --agents 9 --stages 3,3,3 --skip 1/3 --iterations 12 \
	--time-scale 0 --run-dir "$run" --at 4:kill:4 --at 7:kill:8 \
	--at 9:recover:4 >"$events" 2>"$dir/demo.err" || die "demo: exit status $?"
[ "$(count "$events" commit)" = 12 ] || die "$(count "$events" commit) commits"
grep -q '"overlap_sync":true' "$run"/plans/0001.json || die "the first plan does not overlap"
sqlite3 "$run/run.db" 'select text from note' | grep -q "sums begin early" || die "the journal does not say it"
check_verify "$run" 8
check_gone "$run"
