#!/bin/bash
# A node computes numbers that are not finite. With --skip-bad-steps the controller skips the data of the iteration and
# repeats it with the next data, before it excludes the node. The record and the checkpoints count the skipped data. A
# controller that resumes the run continues after the skipped data, and verify recomputes the run.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 1/3 --iterations 14 --time-scale 0 \
	--silence-ms 5000 --checkpoint-every 5 --skip-bad-steps 2 --at 4:corrupt:1 --run-dir "$run" \
	>"$events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$events" 6 $demo 120
kill -KILL "$(sed -n 's/.*controller started, process \([0-9]*\)$/\1/p' "$run/log/demo.log" | tail -n 1)" ||
	die "no controller to kill"
wait $demo || die "demo: exit status $?"
started=()
grep -q 'it4: n01 .*: its data is skipped (1 of 2 times)' "$run/log/controller.log" || die "no first skip"
grep -q 'it4: n01 .*: its data is skipped (2 of 2 times)' "$run/log/controller.log" || die "no second skip"
grep -q '"event":"node","node":1,.*"state":"failed"' "$events" || die "the node was not excluded"

skipped() {
	python3 - "$run/run.db" "$@" <<-'END'
	import sqlite3, sys
	with sqlite3.connect(sys.argv[1]) as db:
	    if len(sys.argv) > 2:
	        db.execute('update commits set skipped = skipped - 1 where iteration = ?', sys.argv[2:])
	    print(*(row[0] for row in db.execute('select skipped from commits order by iteration')))
	END
}
[ "$(skipped)" = "0 0 0 2 2 2 2 2 2 2 2 2 2 2" ] || die "recorded as skipped: $(skipped)"
# An iteration takes 12 microbatches: 2 data nodes send 6 each. 10 committed and 2 skipped iterations take 144.
grep -q '"position": 144,' "$run/checkpoints/00000010/manifest.json" || die "the checkpoint is at another position"
check_verify "$run" 6
skipped 9 >/dev/null
"$bin/skippipe" verify "$run" >"$dir/other" 2>&1 && die "verify accepts other data"
check_gone "$run"
