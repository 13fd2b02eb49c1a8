#!/bin/bash
# The backward pass in two tasks, each stage's sum as soon as its gradients are there, and two agents
# that die meanwhile: every gradient counts once, and the weights are what one process computes by
# whole backward passes.
. "$(dirname "$0")/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-key skippipe-verify
events=$dir/events run=$dir/run

"$bin/skippipe" demo --headless --format jsonl --agents 9 --stages 3,3,3 --skip 1/3 --iterations 12 \
	--time-scale 0 --run-dir "$run" --split-backward --overlap-sync --at 4:kill:4 --at 7:kill:8 \
	--at 9:recover:4 >"$events" 2>"$dir/demo.err" || die "demo: exit status $?"
[ "$(count "$events" commit)" = 12 ] || die "$(count "$events" commit) commits"
grep -q '"split_backward":true' "$run"/plans/0001.json || die "the first plan is not split"
grep -q '"overlap_sync":true' "$run"/plans/0001.json || die "the first plan does not overlap"
tasks() { sqlite3 "$run/run.db" "SELECT count(*) FROM task WHERE kind = '$1' AND counted"; }
if command -v sqlite3 >"$dir/sqlite3"; then
	[ "$(tasks W)" -gt 0 ] && [ "$(tasks B)" = 0 ] || die "$(tasks W) W and $(tasks B) B counted"
fi
check_verify "$run" 8
check_gone "$run"
