#!/bin/bash
# How quickly a killed agent is noticed, and the run goes on: bench/kills.sh [KILLS]. Kills agents of an
# embedded cluster one after another with SIGKILL, in mid-iteration, and brings each back; prints the
# median and the worst of: kill to notice, kill to the next commit. Times are the controller's own.
set -eu
cd "$(dirname "$0")/.."
kills=${1:-50}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
acts=()
for ((i = 0; i < kills; i++)); do
	acts+=(--at "$((3 + 4 * i)):kill:$((i * 7 % 20))" --at "$((5 + 4 * i)):recover:$((i * 7 % 20))")
done
build/bin/skippipe demo --headless --format jsonl --iterations $((6 + 4 * kills)) --time-scale 0 --eval-every 0 \
	--run-dir "$dir/run" "${acts[@]}" >"$dir/events" 2>/dev/null
awk '
	function at() { match($0, /"at_s":[0-9.]+/); return substr($0, RSTART + 7, RLENGTH - 7) + 0 }
	/"event":"fault"/ && /"kind":"kill"/ { killed = at(); seen = 0; done = 0 }
	/"event":"node"/ && /"state":"dead"/ && killed && !seen { seen = 1; print "notice", at() - killed }
	/"event":"commit"/ && seen && !done { done = 1; print "commit", at() - killed }
' "$dir/events" | sort -k1,1 -k2,2n >"$dir/times"
for what in notice commit; do
	grep "^$what" "$dir/times" | awk -v what="$what" '{ t[NR] = $2 }
		END { printf "kill to %s: median %.3f s, worst %.3f s, of %d\n", what, t[int((NR + 1) / 2)], t[NR], NR }'
done
grep -E "run again without|replan" "$dir/run/log/controller.log" | wc -l | xargs echo "reruns announced:"
