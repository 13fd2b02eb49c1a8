#!/bin/bash
# Measures how quickly the controller notices a killed agent and resumes: bench/kills.sh [KILLS]. The
# script kills agents of an embedded cluster one after another with SIGKILL during an iteration, and
# restarts each. It prints the median and the worst time of each step, on the controller's clock.
# Arguments after KILLS go to `skippipe demo`.
. "$(dirname "$0")/../tests/lib.sh"
need skippipe skippipe-controller skippipe-agent
kills=${1:-50}
[ $# -gt 0 ] && shift
acts=()
for ((i = 0; i < kills; i++)); do
	acts+=(--at "$((3 + 4 * i)):kill:$((i * 7 % 20))" --at "$((5 + 4 * i)):recover:$((i * 7 % 20))")
done
"$bin/skippipe" demo --headless --format jsonl --iterations $((6 + 4 * kills)) --time-scale 0 --eval-every 0 \
	--run-dir "$dir/run" "${acts[@]}" "$@" 2>"$dir/demo.err" >"$dir/events" || die "demo: exit status $?"
awk '
	function value(key) {
		match($0, "\"" key "\":[0-9.]+")
		return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
	}
	/"event":"plan"/ { next }
	/"event":"fault"/ && /"kind":"kill"/ { killed = value("at_s"); noticed = started = done = 0 }
	/"event":"node"/ && /"state":"dead"/ && killed && !noticed {
		noticed = value("at_s"); print "1 noticed, after the kill", noticed - killed
	}
	/"step":"rerun"/ && noticed { print "2 ordered to run again, after that", value("step_at_s") - noticed }
	/"step":"planned"/ && noticed { print "3 replanned, after that", value("step_at_s") - noticed }
	/"step":"started"/ && noticed && !started {
		started = 1; print "4 first microbatch runs again, after the kill", value("step_at_s") - killed
	}
	/"event":"commit"/ && noticed && !done { done = 1; print "5 next commit, after the kill", value("at_s") - killed }
' "$dir/events" | sort -k1,1n -s | awk '
	function print_step() { if (n) { sort_times(n); printf "%-45s median %.3f s, worst %.3f s, of %d\n", what, t[int((n + 1) / 2)], t[n], n } }
	function sort_times(n,   i, k, x) { for (i = 2; i <= n; i++) { x = t[i]; for (k = i; k > 1 && t[k - 1] > x; k--) t[k] = t[k - 1]; t[k] = x } }
	{ v = $NF; name = $0; sub(/^[0-9] /, "", name); sub(/ [-0-9.e]+$/, "", name) }
	name != what { print_step(); n = 0; what = name }
	{ t[++n] = v }
	END { print_step() }'
