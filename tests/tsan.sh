#!/bin/bash
# tests/tsan.sh BUILD: ThreadSanitizer over what has threads: the unit tests of the folders that talk and
# compute side by side, then a small embedded cluster with faults, whose programs end at the first finding.
# BUILD is a folder made with SANITIZE=thread (make tsan).
set -u
cd "$(dirname "$0")/.."
build=$1
export TSAN_OPTIONS="halt_on_error=1 exitcode=66${TSAN_OPTIONS:+ $TSAN_OPTIONS}"
tests=()
for folder in wire store agent controller verify; do tests+=("$build/$folder"/tests/*_test); done
tests/run.sh --unit "$build" "${tests[@]}" || exit 1

export SKIPPIPE_BUILD=$PWD/$build
. tests/lib.sh
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 1/3 --iterations 14 --time-scale 0 \
	--silence-ms 5000 --checkpoint-every 5 --run-dir "$dir/run" --split-backward --overlap-sync \
	--at 3:slow-node:2 --at 4:kill:4 --at 6:corrupt:3 --at 7:slow-link:1 --at 8:loss:0 --at 10:recover:4 \
	>"$dir/events" 2>"$dir/demo.err" || die "demo: exit status $?"
grep -l 'WARNING: ThreadSanitizer' "$dir"/run/log/*.log "$dir/demo.err" && die "a finding, above"
[ "$(count "$dir/events" commit)" = 14 ] || die "$(count "$dir/events" commit) commits"
check_verify "$dir/run" 5
check_gone "$dir/run"
