#!/bin/bash
# A run of six agents with many kinds of faults in twenty seconds, for tests/tsan.sh and tests/mutants.sh. One agent is
# killed and returns, one sends nonsense, one is slow, and links lose and delay messages. Fourteen iterations are
# committed, and the weights equal those that one process computes.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 1/3 --iterations 14 --time-scale 0 \
	--silence-ms 5000 --checkpoint-every 5 --run-dir "$dir/run" \
	--at 3:slow-node:2 --at 4:kill:4 --at 6:corrupt:3 --at 7:slow-link:1 --at 8:loss:0 --at 10:recover:4 \
	>"$dir/events" 2>"$dir/demo.err" || die "demo: exit status $?"
grep -l 'WARNING: ThreadSanitizer' "$dir"/run/log/*.log "$dir/demo.err" && die "a finding, above"
[ "$(count "$dir/events" commit)" = 14 ] || die "$(count "$dir/events" commit) commits"
check_verify "$dir/run" 5
check_gone "$dir/run"
