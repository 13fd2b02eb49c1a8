#!/bin/bash
# Measures the goodput of a run whose nodes are lost and return: bench/churn.sh [ITERATIONS [SCALE]]. Twenty agents of
# a rehearsal compute nothing, and their tasks and transfers take the times of 12 cloud regions. Iterations take about
# 30 s of rehearsed time. In each hour of this time, the script kills two agents (10%) with SIGKILL, and two killed
# agents join again. A rehearsed second lasts SCALE real seconds. The controller's own times (0.2 s to notice a death,
# 0.1 s to plan) are real, so a small SCALE exaggerates them. Arguments after SCALE go to `skippipe rehearse`.
#
# Goodput is the time that the committed iterations would have taken without a disturbance, divided by the time that
# passed from the first commit to the last. The time of an undisturbed iteration with n nodes is a median of measured
# times from commit to commit. It is taken over the iterations with n nodes during which no node was lost and none
# joined.
. "$(dirname "$0")/../tests/lib.sh"
need skippipe skippipe-controller skippipe-agent skippipe-verify
iterations=${1:-200} scale=${2:-0.03}
shift $(($# > 2 ? 2 : $#))
hour=120 # iterations in an hour of the rehearsed time
acts=() kills=()
for ((at = 6, i = 0; at < iterations - 5; at += hour / 2, i++)); do
	kills+=("$at $((i * 7 % 20)) 0.$((15 + i * 37 % 80))") # iteration, node, and part of the iteration that passes before the kill
	[ $((at + hour / 4)) -lt $((iterations - 2)) ] && acts+=(--at "$((at + hour / 4)):recover:$((i * 7 % 20))")
done
"$bin/skippipe" rehearse --headless --format jsonl --iterations "$iterations" --time-scale "$scale" \
	--run-dir "$dir/run" "${acts[@]}" "$@" 2>"$dir/demo.err" >"$dir/events" &
rehearsal=$!
started+=($rehearsal)
for one in "${kills[@]}"; do
	read -r at node part <<<"$one"
	wait_for "$dir/events" $((at - 1)) $rehearsal 600
	sleep "$(awk -v x="$part" -v scale="$scale" 'BEGIN { print 30 * scale * x }')"
	kill -KILL "$(agent_pid "$dir/run" "$node")" || die "agent $node was not there"
done
wait $rehearsal || die "rehearse: exit status $?"
started=()
[ -n "${CHURN_EVENTS:-}" ] && cp "$dir/events" "$CHURN_EVENTS"
awk -v scale="$scale" '
	function value(key) {
		match($0, "\"" key "\":[0-9.]+")
		return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
	}
	function median(list, n,   i, k, x) {
		for (i = 2; i <= n; i++) { x = list[i]; for (k = i; k > 1 && list[k - 1] > x; k--) list[k] = list[k - 1]; list[k] = x }
		return list[int((n + 1) / 2)]
	}
	/"event":"node"/ && /"state":"dead"/ { lost++; disturbed = 1 }
	/"event":"node"/ && /"state":"live"/ { disturbed = 1 }
	/"event":"commit"/ { committed = value("at_s") }
	/"event":"iteration"/ {
		if (!last) first = committed
		else {
			took[++n] = committed - last
			alive[n] = value("nodes_alive")
			quiet[n] = !disturbed
			again += value("tasks_again"); tasks += value("tasks")
		}
		last = committed
		disturbed = 0
	}
	END {
		for (i = 1; i <= n; i++) if (quiet[i]) { of[alive[i]]++; each[alive[i], of[alive[i]]] = took[i] }
		for (a in of) {
			for (i = 1; i <= of[a]; i++) list[i] = each[a, i]
			usual[a] = median(list, of[a])
			printf "%d nodes: %d undisturbed iterations, median %.1f s\n", a, of[a], usual[a] / scale
		}
		for (i = 1; i <= n; i++) ideal += alive[i] in usual ? usual[alive[i]] : took[i]
		printf "%d iterations in %.2f hours, %d nodes lost, %.2f%% of the tasks ran again\n", n, (last - first) / scale / 3600,
			lost, 100 * again / tasks
		printf "goodput %.1f%%\n", 100 * ideal / (last - first)
	}' "$dir/events"
check_verify "$dir/run" 15 | sed 's/,"losses.*//'
